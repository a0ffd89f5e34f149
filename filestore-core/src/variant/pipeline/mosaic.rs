//! A contact sheet from the files of its variants: decoded, put side by side, encoded once.
//!
//! The cells are the files that the cache has of the variants, so that a page of thumbnails needs no
//! original. Lossy ones are put side by side as they are stored, as luminance and chrominance: the sheet is
//! one too.

use std::io::Cursor;

use bytes::Bytes;
use image_webp::WebPDecoder;

use super::blank::transparent;
use super::encode::{encode_planes, encode_quickly};
use super::image_file::Deadline;
use super::libwebp::Yuv;
use super::resize::{resize, resize_planes};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::record::Dimensions;
use crate::domain::sheet::{SheetGrid, SheetPlace};
use crate::variant::geometry::{Geometry, Rectangle};
use crate::variant::pixels::{Layout, Picture, Pixels, Planes};
use crate::variant::webp::WebP;

/// The bytes for each pixel of a sheet: its pixels, the encoder's planes, and the pixels and hash chains
/// of lossless alpha.
const BYTES_PER_PIXEL: u64 = 20;
/// The bytes besides: tables, and the cell that is being decoded.
const OVERHEAD_BYTES: u64 = 24 << 20;

/// Estimates the bytes that a sheet holds at most while it is made. `InvalidField` for more than
/// `budget`: it could never be made.
pub(crate) fn memory_needed(grid: SheetGrid, budget: u64) -> Result<u64> {
    let pixels = u64::from(grid.width()) * u64::from(grid.height());
    let needed = pixels * BYTES_PER_PIXEL + OVERHEAD_BYTES;
    if needed <= budget {
        return Ok(needed);
    }
    let message = format!(
        "the sheet needs too much memory, {needed} bytes: ask for fewer ids or a smaller size"
    );
    Err(Error::invalid("ids", message).with_limit(budget))
}

/// Puts the variants in `files` side by side, and tells the place of each; `None` leaves its cell
/// empty. Empty parts are transparent.
pub(crate) fn assemble(
    grid: SheetGrid,
    files: &[Option<Bytes>],
    quality: f32,
    deadline: Deadline,
) -> Result<(Bytes, Vec<Option<SheetPlace>>)> {
    let cells: Vec<Option<Cell<'_>>> = files
        .iter()
        .map(|file| file.as_deref().map(Cell::survey).transpose())
        .collect::<Result<_>>()?;
    let placed = cells.iter().enumerate().map(|(index, cell)| {
        let Dimensions { width, height } = cell.as_ref()?.size;
        Some(grid.place(index, width, height))
    });
    let places: Vec<Option<SheetPlace>> = placed.collect();
    let shown = || cells.iter().flatten().zip(places.iter().flatten());

    let mut sheet = Ground::of(grid, shown());
    for (cell, place) in shown() {
        if deadline.has_passed() {
            return Err(too_slow());
        }
        match &mut sheet {
            Ground::Planes(sheet) => paste_planes(sheet, &cell.planes()?, *place)?,
            Ground::Pixels(sheet) => paste(sheet, &cell.decode()?, *place),
        }
    }
    let webp = match sheet {
        Ground::Planes(mut sheet) => encode_planes(&mut sheet, quality)?,
        Ground::Pixels(sheet) => encode_quickly(&sheet, quality)?,
    };
    Ok((webp, places))
}

/// Writes the sheet that shows nothing: without a pixel, since ids of no file cost their sender nothing.
pub(crate) fn blank(grid: SheetGrid) -> Bytes {
    transparent(grid.width(), grid.height())
}

/// Returns the error of a sheet that is not put together in time. Its files are not at fault: each of them
/// was made.
pub(crate) fn too_slow() -> Error {
    Error::new(ErrorKind::Busy, "the sheet takes too long to put together").with_retry_after_secs(1)
}

/// A sheet without its pictures, which is transparent.
enum Ground {
    /// For lossy pictures without alpha alone.
    Planes(Yuv),
    Pixels(Pixels),
}

impl Ground {
    /// Makes a sheet for `shown`, without alpha only if they leave nothing uncovered.
    fn of<'a>(
        grid: SheetGrid,
        shown: impl Iterator<Item = (&'a Cell<'a>, &'a SheetPlace)> + Clone,
    ) -> Self {
        let side = Dimensions { width: grid.cell(), height: grid.cell() };
        let covering = shown.clone().filter(|(cell, _)| cell.size == side && !cell.has_alpha);
        let is_covered = covering.count() == (grid.columns() * grid.rows()) as usize;
        let (width, height) = (grid.width(), grid.height());
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

/// Copies the planes of a picture to their place.
fn paste_planes(sheet: &mut Yuv, picture: &Planes, place: SheetPlace) -> Result<()> {
    let [y, u, v] = &picture.planes[..] else { return Err(broken("other planes")) };
    let SheetPlace { x, y: top, width, .. } = place;
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

/// Copies a picture to its place.
fn paste(sheet: &mut Pixels, picture: &Pixels, place: SheetPlace) {
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

/// The file of a variant.
struct Cell<'a> {
    file: &'a [u8],
    size: Dimensions,
    is_lossy: bool,
    has_alpha: bool,
}

impl<'a> Cell<'a> {
    fn survey(file: &'a [u8]) -> Result<Self> {
        let mut decoder = WebPDecoder::new(Cursor::new(file)).map_err(broken)?;
        let (width, height) = decoder.dimensions();
        Ok(Self {
            file,
            size: Dimensions { width, height },
            is_lossy: decoder.is_lossy(),
            has_alpha: decoder.has_alpha(),
        })
    }

    /// Returns all of the variant, in its size.
    fn whole(&self) -> Geometry {
        let Dimensions { width, height } = self.size;
        let crop = Rectangle { left: 0, top: 0, width, height };
        Geometry { crop, target: self.size }
    }

    /// Decodes the picture of a lossy variant.
    fn still(&self) -> Result<Picture> {
        let still = WebP::survey(self.file).decode(self.size, &[self.whole()], &|| false);
        still.map(|still| still.picture).map_err(|failure| broken(format!("{failure:?}")))
    }

    /// Decodes a lossy variant without alpha to planes of its size, chrominance at half of that, rounded up.
    fn planes(&self) -> Result<Planes> {
        match self.still()? {
            Picture::Planes(planes) => resize_planes(&planes, self.whole(), (false, false)),
            other => Err(broken(format!("no planes of {} pixels", other.longest_side()))),
        }
    }

    /// Decodes the variant to RGB or RGBA pixels of its size.
    fn decode(&self) -> Result<Pixels> {
        let Dimensions { width, height } = self.size;
        if self.is_lossy {
            return resize(&self.still()?, self.whole());
        }

        let mut decoder = WebPDecoder::new(Cursor::new(self.file)).map_err(broken)?;
        let layout = if self.has_alpha { Layout::Rgba } else { Layout::Rgb };
        let mut data = vec![0; width as usize * height as usize * layout.channels()];
        decoder.read_image(&mut data).map_err(broken)?;
        Ok(Pixels { layout, width, height, data })
    }
}

/// Reports a variant of ours that does not decode.
fn broken(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::internal("reading a variant for a sheet", why)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::encode::encode;
    use super::*;
    use crate::domain::variant::VariantSize;

    fn square(side: u32, color: [u8; 4], layout: Layout) -> Bytes {
        let data = color[..layout.channels()].repeat((side * side) as usize);
        encode(&Pixels { layout, width: side, height: side, data }, 80.0).unwrap()
    }

    fn grid(cells: usize) -> SheetGrid {
        SheetGrid::new(cells, VariantSize::try_from(200).unwrap()).unwrap()
    }

    fn sheet_of(files: &[Option<Bytes>]) -> (image::DynamicImage, Vec<Option<SheetPlace>>) {
        let (webp, places) = assemble(grid(files.len()), files, 80.0, Deadline::NONE).unwrap();
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
        assert_eq!(places[2], Some(SheetPlace { x: 40, y: 240, width: 120, height: 120 }));
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
                files.iter().flatten().map(|file| Cell::survey(file).unwrap()).collect();
            let (sheet, places) = sheet_of(&files);
            let ground = Ground::of(grid(4), cells.iter().zip(places.iter().flatten()));
            assert!(matches!(ground, Ground::Planes(_)), "{width}×{height}");
            assert_eq!(sheet.color().has_alpha(), (width, height) != (200, 200));
            let sheet = sheet.to_rgba8();
            for (place, color) in places.iter().zip(colors) {
                let SheetPlace { x, y, width, height } = place.unwrap();
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
        let (webp, _) = assemble(grid(3), &files, 80.0, Deadline::NONE).unwrap();
        assert!(!webp.windows(4).any(|name| name == b"VP8L"));
    }

    #[test]
    fn a_sheet_past_its_deadline_blames_no_picture() {
        let file = Some(square(200, [9, 90, 200, 255], Layout::Rgb));
        let late = Deadline::after(Duration::ZERO);
        let error = assemble(grid(1), &[file], 80.0, late).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
    }

    #[test]
    fn a_damaged_variant_is_our_fault() {
        let file = Some(Bytes::from_static(b"RIFF"));
        assert!(assemble(grid(1), &[file], 80.0, Deadline::NONE).is_err());
    }
}
