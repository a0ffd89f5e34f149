//! A sheet of damaged and odd pictures, for a person to look at.
//!
//! `FILESTORE_SHEET=/tmp/sheet.png cargo test --lib a_sheet_of_damaged_pictures -- --ignored`

use image::{Rgba, RgbaImage};

use super::*;
use crate::variant::jpeg::tests::damage;

const TILE: u32 = 200;
const COLUMNS: u32 = 6;

/// The picture over the checks that a transparent ground is shown with.
fn tile(bytes: &[u8]) -> RgbaImage {
    let seen = make(bytes, "200", Fit::Cover).ok().map(|variant| match variant {
        Variant::WebP(bytes) => Seen::of(&bytes),
        Variant::PassThrough { mime } => panic!("{mime} passed through"),
    });
    RgbaImage::from_fn(TILE, TILE, |x, y| {
        let ground = if (x / 10 + y / 10) % 2 == 0 { 255 } else { 205 };
        let Some(seen) = &seen else { return Rgba([255, 0, 255, 255]) };
        if x >= seen.width || y >= seen.height {
            return Rgba([0, 0, 0, 255]);
        }
        let pixel = seen.at(x, y);
        let over = |c: usize| {
            let (color, alpha) = (u32::from(pixel[c]), u32::from(pixel[3]));
            u8::try_from((color * alpha + ground * (255 - alpha)) / 255).unwrap()
        };
        Rgba([over(0), over(1), over(2), 255])
    })
}

#[test]
#[ignore = "writes a picture to look at"]
fn a_sheet_of_damaged_pictures() {
    let Some(path) = std::env::var_os("FILESTORE_SHEET") else { return };
    let cases: Vec<_> =
        damage::cases().into_iter().chain(damaged::cases()).chain(tiff_kinds::cases()).collect();
    let rows = u32::try_from(cases.len()).unwrap().div_ceil(COLUMNS);
    let mut sheet =
        RgbaImage::from_pixel(COLUMNS * (TILE + 4), rows * (TILE + 4), Rgba([40, 40, 40, 255]));
    for (index, (what, bytes)) in (0u32..).zip(&cases) {
        let (left, top) = (index % COLUMNS * (TILE + 4), index / COLUMNS * (TILE + 4));
        image::imageops::replace(&mut sheet, &tile(bytes), left.into(), top.into());
        println!("row {}, column {}: {what}", index / COLUMNS + 1, index % COLUMNS + 1);
    }
    sheet.save(path).unwrap();
}
