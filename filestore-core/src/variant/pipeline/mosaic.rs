//! A contact sheet from the files of its variants: decoded, put side by side, encoded once.
//!
//! The cells are the files that the cache has of the variants, so that a page of thumbnails needs no
//! original. Decoding them takes a quarter of the time that encoding the sheet takes.

use std::io::Cursor;

use bytes::Bytes;
use image_webp::WebPDecoder;

use super::blank::transparent;
use super::encode::encode_quickly;
use super::image_file::Deadline;
use super::resize::resize;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::record::Dimensions;
use crate::domain::sheet::{SheetGrid, SheetPlace};
use crate::variant::geometry::{Geometry, Rectangle};
use crate::variant::pixels::{Layout, Pixels};
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
    let mut sheet = empty(grid, &cells);

    let mut places = Vec::with_capacity(cells.len());
    for (index, cell) in cells.iter().enumerate() {
        if deadline.has_passed() {
            return Err(too_slow());
        }
        let Some(cell) = cell else {
            places.push(None);
            continue;
        };
        let place = grid.place(index, cell.size.width, cell.size.height);
        paste(&mut sheet, &cell.decode()?, place);
        places.push(Some(place));
    }
    Ok((encode_quickly(&sheet, quality)?, places))
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

/// Makes the sheet without its pictures: without alpha only if they leave nothing uncovered.
fn empty(grid: SheetGrid, cells: &[Option<Cell<'_>>]) -> Pixels {
    let side = Dimensions { width: grid.cell(), height: grid.cell() };
    let shown = cells.iter().flatten().filter(|cell| cell.size == side && !cell.has_alpha);
    let is_covered = shown.count() == (grid.columns() * grid.rows()) as usize;

    let layout = if is_covered { Layout::Rgb } else { Layout::Rgba };
    let (width, height) = (grid.width(), grid.height());
    let data = vec![0; width as usize * height as usize * layout.channels()];
    Pixels { layout, width, height, data }
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

    /// Decodes the variant to RGB or RGBA pixels of its size.
    fn decode(&self) -> Result<Pixels> {
        let Dimensions { width, height } = self.size;
        if self.is_lossy {
            let crop = Rectangle { left: 0, top: 0, width, height };
            let whole = Geometry { crop, target: self.size };
            let still = WebP::survey(self.file)
                .decode(self.size, &[whole], &|| false)
                .map_err(|failure| broken(format!("{failure:?}")))?;
            return resize(&still.picture, whole);
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
