//! The README's picture: a photograph as it was stored, and the squares that the service made of it.

use std::io::Cursor;

use filestore_client::Variant;
use image::imageops::{FilterType, resize};
use image::{ImageFormat, Rgb, RgbImage};

use crate::Result;
use crate::lettering;

/// Twice as large as it is shown: the service halves it, and every edge comes out smooth.
const WIDTH: u32 = 2000;
const HEIGHT: u32 = 1050;
const MARGIN: u32 = 44;
const PAPER: Rgb<u8> = Rgb([250, 250, 248]);
const INK: Rgb<u8> = Rgb([66, 72, 82]);

/// The longer side of the photograph.
const STORED_SIDE: u32 = 800;
/// A square of 1000 pixels has so many here, and the others in proportion.
const LARGEST_SIDE: u32 = 555;
/// The left edge of the squares.
const LEFT: u32 = 968;
const LABEL_HEIGHT: u32 = 74;

/// Lays the photograph and its squares out, each with its size beneath, and returns a PNG.
///
/// The bytes of the photograph are decoded without a look at its orientation: it lies on its side,
/// as it lies on the disk.
pub(crate) fn lay_out(stored: &[u8], squares: &[(u32, Variant)]) -> Result<Vec<u8>> {
    let mut sheet = RgbImage::from_pixel(WIDTH, HEIGHT, PAPER);

    let photo = image::load_from_memory(stored)?.to_rgb8();
    let (width, height) = photo.dimensions();
    let scaled = (STORED_SIDE, height * STORED_SIDE / width);
    let top = (HEIGHT - scaled.1 - 2 * LABEL_HEIGHT) / 2;
    place(&mut sheet, &photo, (MARGIN, top), scaled);

    let middle = MARGIN + STORED_SIDE / 2;
    let below = top + scaled.1 + 26;
    lettering::centred(&mut sheet, &format!("{width} × {height}"), (middle, below), 6, INK);
    lettering::centred(&mut sheet, "as stored, orientation 6", (middle, below + 62), 5, INK);
    lettering::arrow(&mut sheet, (MARGIN + STORED_SIDE + 28, top + scaled.1 / 2), 72, INK);

    // Two rows: the two large squares above, the five small ones below.
    let (small, large) = squares.split_at(squares.len().saturating_sub(2));
    row(&mut sheet, large, MARGIN + LARGEST_SIDE)?;
    row(&mut sheet, small, HEIGHT - MARGIN / 2 - LABEL_HEIGHT)?;

    let mut png = Cursor::new(Vec::new());
    sheet.write_to(&mut png, ImageFormat::Png)?;
    Ok(png.into_inner())
}

/// Places squares side by side on a line, the largest first, from the left edge to the right margin.
fn row(sheet: &mut RgbImage, squares: &[(u32, Variant)], line: u32) -> Result<()> {
    let sides: u32 = squares.iter().map(|(size, _)| shown(*size)).sum();
    let gaps = u32::try_from(squares.len() - 1)?;
    let gap = (WIDTH - MARGIN - LEFT - sides) / gaps;

    let mut right = WIDTH - MARGIN;
    for (size, variant) in squares {
        let side = shown(*size);
        let square = image::load_from_memory(&variant.bytes)?.to_rgb8();
        right -= side;
        place(sheet, &square, (right, line - side), (side, side));
        lettering::centred(sheet, &size.to_string(), (right + side / 2, line + 22), 5, INK);
        right = right.saturating_sub(gap);
    }
    Ok(())
}

/// Returns the side of a square on the sheet.
fn shown(size: u32) -> u32 {
    size * LARGEST_SIDE / 1000
}

/// Places a picture scaled to `size`, its corners rounded.
fn place(sheet: &mut RgbImage, picture: &RgbImage, at: (u32, u32), size: (u32, u32)) {
    const RADIUS: u32 = 14;

    let scaled = resize(picture, size.0, size.1, FilterType::Lanczos3);
    for (x, y, pixel) in scaled.enumerate_pixels() {
        let across = RADIUS.saturating_sub(x.min(size.0 - 1 - x));
        let down = RADIUS.saturating_sub(y.min(size.1 - 1 - y));
        if across * across + down * down <= RADIUS * RADIUS {
            sheet.put_pixel(at.0 + x, at.1 + y, *pixel);
        }
    }
}
