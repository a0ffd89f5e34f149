//! Contact sheets: decode many WebP files, put them side by side, and encode them as one file.
//!
//! The cells are existing WebP files, so a page of thumbnails does not need the originals. Lossy cells are
//! copied as luminance and chrominance, and the sheet is then lossy too.
//!
//! ```
//! use filestore_pictures::sheet::{Grid, assemble};
//! use filestore_pictures::{Settings, Wanted, thumbnail};
//!
//! # fn example(photos: Vec<Vec<u8>>) -> Result<(), Box<dyn std::error::Error>> {
//! let settings = Settings::default();
//! let mut cells = Vec::new();
//! for photo in &photos {
//!     // A photograph that cannot be shown leaves its cell empty.
//!     cells.push(thumbnail(photo, Wanted::inside(200), &settings).ok());
//! }
//! let sheet = assemble(Grid::new(cells.len(), 200)?, &cells, &settings)?;
//! std::fs::write("sheet.webp", sheet.webp)?;
//! # Ok(())
//! # }
//! ```

mod blank;

use std::io::Cursor;

use bytes::Bytes;
use image_webp::WebPDecoder;

use blank::transparent;

use crate::Dimensions;
use crate::error::{Error, ErrorKind, Result, invalid, too_large};
use crate::geometry::{Geometry, Rectangle, area};
use crate::pipeline::encode::{encode_planes, encode_quickly};
use crate::pipeline::guard::guarded;
use crate::pipeline::image_file::Deadline;
use crate::pipeline::libwebp::Yuv;
use crate::pipeline::resize::{resize, resize_planes};
use crate::pixels::{Layout, Picture, Pixels, Planes};
use crate::settings::Settings;
use crate::webp::WebP;

/// The longest side of a WebP, in pixels.
const MAX_SIDE: u64 = 16_383;
/// The bytes for each pixel of a sheet: the pixel, the encoder's planes, and pixels and hash chains of
/// lossless alpha.
const BYTES_PER_PIXEL: u64 = 20;
/// Additional bytes: tables, and the cell that is being decoded.
const OVERHEAD_BYTES: u64 = 24 << 20;

/// A grid of equal square cells, filled row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grid {
    cell: u32,
    columns: u32,
    rows: u32,
}

impl Grid {
    /// Lays out `cells` cells of `side` pixels as nearly square as their number allows. Errors are the same
    /// as for [`with_columns`](Self::with_columns).
    pub fn new(cells: usize, side: u32) -> Result<Self> {
        let columns = cells.isqrt() + usize::from(cells.isqrt().pow(2) < cells);
        Self::with_columns(cells, columns, side)
    }

    /// Lays out `cells` cells of `side` pixels in rows of `columns`. Returns an error if `cells` or `columns`
    /// is 0, if `side` is not even, or if the sheet would have more than 16383 pixels a side, which is WebP's
    /// maximum.
    pub fn with_columns(cells: usize, columns: usize, side: u32) -> Result<Self> {
        if cells == 0 || columns == 0 || side == 0 || !side.is_multiple_of(2) {
            let message = format!(
                "a sheet needs cells, columns and an even side, not {cells} cells of {side} pixels in {columns} columns"
            );
            return Err(invalid(message));
        }
        let sides = [columns, cells.div_ceil(columns)].map(|cells| u32::try_from(cells).ok());
        let [Some(columns), Some(rows)] = sides else {
            return Err(invalid(format!("a sheet cannot have {cells} cells")));
        };
        if u64::from(columns.max(rows)) * u64::from(side) > MAX_SIDE {
            let message = format!(
                "{columns} × {rows} cells of {side} pixels exceed the maximum size of a WebP"
            );
            return Err(invalid(message).with_limit(MAX_SIDE));
        }
        Ok(Self { cell: side, columns, rows })
    }

    /// Returns a cell's side, in pixels.
    pub const fn cell(self) -> u32 {
        self.cell
    }

    /// Returns the number of cells in a row.
    pub const fn columns(self) -> u32 {
        self.columns
    }

    /// Returns the number of cell rows.
    pub const fn rows(self) -> u32 {
        self.rows
    }

    /// Returns the sheet's size.
    pub const fn size(self) -> Dimensions {
        Dimensions { width: self.columns * self.cell, height: self.rows * self.cell }
    }

    /// Returns an upper bound for the memory of a sheet while it is made, in bytes.
    pub fn memory_bytes(self) -> u64 {
        area(self.size()) * BYTES_PER_PIXEL + OVERHEAD_BYTES
    }

    /// Places a picture of `size`, no larger than a cell, in the middle of cell `index`. The position is
    /// even, so that it starts at a sample of halved chrominance and stored planes can be copied.
    fn place(self, index: usize, size: Dimensions) -> Place {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let (column, row) = (index % self.columns, index / self.columns);
        let before = |side| (self.cell - side) / 4 * 2;
        let Dimensions { width, height } = size;
        Place {
            x: column * self.cell + before(width),
            y: row * self.cell + before(height),
            width,
            height,
        }
    }
}

/// The position of a picture within a sheet, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The distance from the left edge.
    pub x: u32,
    /// The distance from the upper edge.
    pub y: u32,
    /// The picture's width.
    pub width: u32,
    /// The picture's height.
    pub height: u32,
}

/// A finished sheet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Sheet {
    /// The bytes of the WebP file.
    pub webp: Bytes,
    /// Each picture's position. `None` for an empty cell.
    pub places: Vec<Option<Place>>,
}

/// Puts WebP files side by side, each in the middle of its cell. `None` leaves its cell empty. Empty parts
/// are transparent.
///
/// Returns an error if there are more files than cells, or if a file is larger than its cell or is not a
/// still WebP. The limits for memory and time are the same as for one picture.
pub fn assemble(grid: Grid, files: &[Option<Bytes>], settings: &Settings) -> Result<Sheet> {
    let (needed, most) = (grid.memory_bytes(), settings.limits.memory_bytes);
    if needed > most {
        let message = format!("the sheet needs too much memory: {needed} bytes");
        return Err(too_large(message).with_limit(most));
    }
    assemble_until(grid, files, settings.quality, Deadline::after(settings.limits.deadline))
}

/// Returns an empty, transparent sheet of 28 bytes. The call reads no pixel.
pub fn blank(grid: Grid) -> Bytes {
    let Dimensions { width, height } = grid.size();
    transparent(width, height)
}

fn assemble_until(
    grid: Grid,
    files: &[Option<Bytes>],
    quality: f32,
    deadline: Deadline,
) -> Result<Sheet> {
    if files.len() > (grid.columns * grid.rows) as usize {
        return Err(invalid(format!("{} files are more than the sheet has cells", files.len())));
    }
    let cells: Vec<Option<Cell<'_>>> = files
        .iter()
        .map(|file| file.as_deref().map(|file| Cell::survey(file, grid)).transpose())
        .collect::<Result<_>>()?;
    let placed = cells.iter().enumerate().map(|(index, cell)| {
        let cell = cell.as_ref()?;
        Some(grid.place(index, cell.size))
    });
    let places: Vec<Option<Place>> = placed.collect();
    let shown = || cells.iter().flatten().zip(places.iter().flatten());

    let mut sheet = Canvas::of(grid, shown());
    for (cell, place) in shown() {
        if deadline.has_passed() {
            return Err(sheet_too_slow());
        }
        match &mut sheet {
            Canvas::Planes(sheet) => paste_planes(sheet, &cell.planes()?, *place)?,
            Canvas::Pixels(sheet) => paste(sheet, &cell.decode()?, *place),
        }
    }
    let webp = match sheet {
        Canvas::Planes(mut sheet) => encode_planes(&mut sheet, quality)?,
        Canvas::Pixels(sheet) => encode_quickly(&sheet, quality)?,
    };
    Ok(Sheet { webp, places })
}

/// Returns the error for a sheet that exceeds its deadline.
fn sheet_too_slow() -> Error {
    Error::new(ErrorKind::TooSlow, "the sheet takes too long to put together")
}

/// A sheet before its pictures are copied. It is transparent.
enum Canvas {
    /// For sheets that contain only lossy pictures without alpha.
    Planes(Yuv),
    Pixels(Pixels),
}

impl Canvas {
    /// Makes a sheet for `shown`. The sheet has no alpha only if the pictures cover it completely.
    fn of<'a>(grid: Grid, shown: impl Iterator<Item = (&'a Cell<'a>, &'a Place)> + Clone) -> Self {
        let side = Dimensions { width: grid.cell, height: grid.cell };
        let covering = shown.clone().filter(|(cell, _)| cell.size == side && !cell.has_alpha);
        let is_covered = covering.count() == (grid.columns * grid.rows) as usize;
        let Dimensions { width, height } = grid.size();
        let pixels = width as usize * height as usize;

        let is_planar = shown.into_iter().all(|(cell, _)| cell.is_lossy && !cell.has_alpha);
        if is_planar {
            let chrominance = width.div_ceil(2) as usize * height.div_ceil(2) as usize;
            let [u, v] = [128, 128].map(|none| vec![none; chrominance]);
            let alpha = (!is_covered).then(|| vec![0; pixels]);
            return Self::Planes(Yuv { width, height, y: vec![16; pixels], u, v, alpha });
        }
        let layout = if is_covered { Layout::Rgb } else { Layout::Rgba };
        Self::Pixels(Pixels { layout, width, height, data: vec![0; pixels * layout.channels()] })
    }
}

/// Copies the planes of a picture to their position.
fn paste_planes(sheet: &mut Yuv, picture: &Planes, place: Place) -> Result<()> {
    let [y, u, v] = &picture.planes[..] else { return Err(broken("other planes")) };
    let Place { x, y: top, width, .. } = place;
    if let Some(alpha) = &mut sheet.alpha {
        for row in alpha
            .chunks_exact_mut(sheet.width as usize)
            .skip(top as usize)
            .take(place.height as usize)
        {
            row[x as usize..(x + width) as usize].fill(255);
        }
    }

    let half = sheet.width.div_ceil(2);
    for (to, row, plane, left, top) in [
        (&mut sheet.y, sheet.width, y, x, top),
        (&mut sheet.u, half, u, x / 2, top / 2),
        (&mut sheet.v, half, v, x / 2, top / 2),
    ] {
        let Pixels { width, ref data, .. } = plane.samples;
        let rows = to.chunks_exact_mut(row as usize).skip(top as usize);
        for (to, from) in rows.zip(data.chunks_exact(width as usize)) {
            to[left as usize..(left + width) as usize].copy_from_slice(from);
        }
    }
    Ok(())
}

/// Copies a picture to its position.
fn paste(sheet: &mut Pixels, picture: &Pixels, place: Place) {
    let (to, from) = (sheet.layout.channels(), picture.layout.channels());
    let row = sheet.width as usize * to;
    let left = place.x as usize * to;
    let rows = sheet.data.chunks_exact_mut(row).skip(place.y as usize);

    for (to_row, from_row) in rows.zip(picture.data.chunks_exact(place.width as usize * from)) {
        let to_row = &mut to_row[left..left + place.width as usize * to];
        if to == from {
            to_row.copy_from_slice(from_row);
            continue;
        }
        for (to, from) in to_row.as_chunks_mut::<4>().0.iter_mut().zip(from_row.as_chunks().0) {
            let [red, green, blue] = *from;
            *to = [red, green, blue, 255];
        }
    }
}

/// The file in a cell.
struct Cell<'a> {
    file: &'a [u8],
    size: Dimensions,
    is_lossy: bool,
    has_alpha: bool,
}

impl<'a> Cell<'a> {
    fn survey(file: &'a [u8], grid: Grid) -> Result<Self> {
        let mut decoder = WebPDecoder::new(Cursor::new(file)).map_err(broken)?;
        let (width, height) = decoder.dimensions();
        if width.max(height) > grid.cell || decoder.is_animated() {
            return Err(broken("it is animated, or larger than its cell"));
        }
        Ok(Self {
            file,
            size: Dimensions { width, height },
            is_lossy: decoder.is_lossy(),
            has_alpha: decoder.has_alpha(),
        })
    }

    /// Returns the whole picture, in its size.
    fn whole(&self) -> Geometry {
        let Dimensions { width, height } = self.size;
        let crop = Rectangle { left: 0, top: 0, width, height };
        Geometry { crop, target: self.size }
    }

    /// Decodes the picture of a lossy file.
    fn still(&self) -> Result<Picture> {
        let still = WebP::survey(self.file).decode(self.size, &[self.whole()], &|| false);
        still.map(|still| still.picture).map_err(|failure| broken(format!("{failure:?}")))
    }

    /// Decodes a lossy file without alpha to planes. Chrominance has half the size, rounded up.
    fn planes(&self) -> Result<Planes> {
        match self.still()? {
            Picture::Planes(planes) => resize_planes(&planes, self.whole(), (false, false)),
            other => Err(broken(format!("no planes of {} pixels", other.longest_side()))),
        }
    }

    /// Decodes the file to RGB or RGBA pixels of its size.
    fn decode(&self) -> Result<Pixels> {
        let Dimensions { width, height } = self.size;
        if self.is_lossy {
            return resize(&self.still()?, self.whole());
        }

        let mut decoder = WebPDecoder::new(Cursor::new(self.file)).map_err(broken)?;
        let layout = if self.has_alpha { Layout::Rgba } else { Layout::Rgb };
        let mut data = vec![0; width as usize * height as usize * layout.channels()];
        guarded(|| decoder.read_image(&mut data)).map_err(broken)?.map_err(broken)?;
        Ok(Pixels { layout, width, height, data })
    }
}

/// Returns the error for a file that cannot be a cell.
fn broken(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    invalid("a file of the sheet is not a still WebP, or is larger than its cell".to_owned())
        .with_source(why)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pipeline::encode::encode;

    fn square(side: u32, color: [u8; 4], layout: Layout) -> Bytes {
        let data = color[..layout.channels()].repeat((side * side) as usize);
        encode(&Pixels { layout, width: side, height: side, data }, 80.0).unwrap()
    }

    fn grid(cells: usize) -> Grid {
        Grid::new(cells, 200).unwrap()
    }

    fn made(grid: Grid, files: &[Option<Bytes>]) -> Result<Sheet> {
        assemble_until(grid, files, 80.0, Deadline::NONE)
    }

    fn sheet_of(files: &[Option<Bytes>]) -> (image::DynamicImage, Vec<Option<Place>>) {
        let Sheet { webp, places } = made(grid(files.len()), files).unwrap();
        (image::load_from_memory(&webp).unwrap(), places)
    }

    #[test]
    fn each_variant_stands_in_its_cell_and_the_rest_is_transparent() {
        let files = [
            Some(square(200, [200, 0, 0, 255], Layout::Rgb)),
            None,
            Some(square(120, [0, 200, 0, 255], Layout::Rgba)),
        ];
        let (sheet, places) = sheet_of(&files);
        let sheet = sheet.to_rgba8();
        assert_eq!(sheet.dimensions(), (400, 400));
        assert_eq!(places[2], Some(Place { x: 40, y: 240, width: 120, height: 120 }));
        assert_eq!(places[1], None);

        let at = |x, y| sheet.get_pixel(x, y).0;
        assert!(at(100, 100)[0] > 180 && at(100, 100)[3] == 255);
        assert!(at(100, 300)[1] > 180, "{:?}", at(100, 300));
        for (x, y) in [(300, 100), (300, 300), (20, 300), (100, 220)] {
            assert_eq!(at(x, y)[3], 0, "{x} {y}");
        }
    }

    /// A lossy picture of one colour with some grain.
    fn grainy(width: u32, height: u32, color: [u8; 3]) -> Bytes {
        let mut random = fastrand::Rng::with_seed(9);
        let pixels = (0..width * height).flat_map(|_| color.map(|light| light + random.u8(0..20)));
        let pixels = Pixels { layout: Layout::Rgb, width, height, data: pixels.collect() };
        encode(&pixels, 80.0).unwrap()
    }

    #[test]
    fn lossy_variants_keep_their_planes_and_stand_in_their_cells() {
        let colors = [[180, 20, 20], [20, 170, 30], [30, 30, 190], [200, 200, 200]];
        let near = |pixel: &image::Rgba<u8>, color: [u8; 3]| {
            pixel.0.iter().zip(color).all(|(is, want)| is.abs_diff(want + 10) < 40)
        };
        for (width, height) in [(200, 200), (200, 132), (71, 123), (200, 133)] {
            let files: Vec<_> =
                colors.map(|color| Some(grainy(width, height, color))).into_iter().collect();
            let cells: Vec<_> =
                files.iter().flatten().map(|file| Cell::survey(file, grid(4)).unwrap()).collect();
            let (sheet, places) = sheet_of(&files);
            let canvas = Canvas::of(grid(4), cells.iter().zip(places.iter().flatten()));
            assert!(matches!(canvas, Canvas::Planes(_)), "{width}×{height}");
            assert_eq!(sheet.color().has_alpha(), (width, height) != (200, 200));
            let sheet = sheet.to_rgba8();
            for (place, color) in places.iter().zip(colors) {
                let Place { x, y, width, height } = place.unwrap();
                for (x, y) in [(x + 4, y + 4), (x + width - 5, y + height - 5)] {
                    let pixel = sheet.get_pixel(x, y);
                    assert!(near(pixel, color) && pixel.0[3] == 255, "{width}×{height}: {pixel:?}");
                }
                let outside = (x > 0).then(|| sheet.get_pixel(x - 1, y).0[3]);
                assert!(x % 200 == 0 || outside == Some(0), "{width}×{height}");
            }
        }
    }

    #[test]
    fn a_sheet_that_is_covered_has_no_alpha() {
        let files = vec![Some(square(200, [9, 90, 200, 255], Layout::Rgb)); 4];
        let (sheet, _) = sheet_of(&files);
        assert_eq!(sheet.color(), image::ColorType::Rgb8);
    }

    #[test]
    fn a_sheet_is_never_lossless_however_flat() {
        let files = vec![Some(square(200, [9, 90, 200, 255], Layout::Rgb)); 3];
        let webp = made(grid(3), &files).unwrap().webp;
        assert!(!webp.windows(4).any(|name| name == b"VP8L"));
    }

    #[test]
    fn a_sheet_past_its_deadline_blames_no_picture() {
        let file = Some(square(200, [9, 90, 200, 255], Layout::Rgb));
        let late = Deadline::after(Duration::ZERO);
        let error = assemble_until(grid(1), &[file], 80.0, late).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooSlow);
    }

    #[test]
    fn a_file_that_cannot_be_a_cell_is_refused() {
        let whole = square(200, [9, 90, 200, 255], Layout::Rgb);
        let too_large = square(202, [9, 90, 200, 255], Layout::Rgb);
        for files in [
            vec![Some(Bytes::from_static(b"RIFF"))],
            vec![Some(whole.slice(..whole.len() / 2))],
            vec![Some(too_large)],
            vec![None, Some(whole)],
        ] {
            let error = made(grid(1), &files).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
        }
    }

    #[test]
    fn a_sheet_over_the_limit_of_memory_is_refused_before_its_files_are_read() {
        let mut settings = Settings::default();
        settings.limits.memory_bytes = 25 << 20;
        let error = assemble(grid(4), &[], &settings).unwrap_err();
        assert_eq!((error.kind(), error.limit()), (ErrorKind::TooLarge, Some(25 << 20)));
        assert!(assemble(grid(1), &[], &settings).is_ok());
    }

    #[test]
    fn cells_stand_in_rows_as_nearly_square_as_they_can() {
        for (files, columns, rows) in
            [(1, 1, 1), (2, 2, 1), (3, 2, 2), (5, 3, 2), (10, 4, 3), (99, 10, 10), (100, 10, 10)]
        {
            let grid = grid(files);
            assert_eq!((grid.columns(), grid.rows()), (columns, rows), "{files} files");
        }
    }

    #[test]
    fn a_grid_that_no_webp_can_have_is_refused() {
        for (cells, side) in [(0, 200), (4, 0), (4, 201), (4, 8192), (usize::MAX, 2)] {
            let error = Grid::new(cells, side).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{cells} of {side}");
        }
        assert!(Grid::new(4, 8190).is_ok());
        assert!(Grid::with_columns(100, 1, 200).is_err());
        assert!(Grid::with_columns(4, 0, 200).is_err());
    }

    #[test]
    fn a_picture_stands_in_the_middle_of_its_cell() {
        for (index, width, height, x, y) in
            [(0, 200, 200, 0, 0), (4, 200, 101, 200, 248), (4, 133, 104, 232, 248)]
        {
            let place = grid(5).place(index, Dimensions { width, height });
            assert_eq!(place, Place { x, y, width, height });
        }
    }

    #[test]
    fn all_pictures_begin_at_even_pixels_within_their_cell() {
        let grid = grid(5);
        for side in 1..=200 {
            let size = Dimensions { width: side, height: 201 - side };
            let Place { x, y, .. } = grid.place(4, size);
            assert!(x % 2 == 0 && y % 2 == 0, "{side}");
            assert!((200..=400 - side).contains(&x) && (200..=199 + side).contains(&y), "{side}");
        }
    }
}
