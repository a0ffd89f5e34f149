//! A sheet of damaged and unusual pictures, for a person to check: as `sheet.png`, and as `index.html`, which
//! shows each variant next to the file in the browser.
//!
//! `FILESTORE_SHEET=/tmp/sheet cargo test --lib a_sheet_of_damaged_pictures -- --ignored`

use std::path::{Path, PathBuf};

use image::{Rgba, RgbaImage};

use super::*;
use crate::jpeg::tests::damage;

/// The file is on the left and the variant on the right, both over a checked background.
const PAGE_HEAD: &str = "<!doctype html><meta charset=\"utf-8\"><style>
body { background: #ccc; font: 11px sans-serif; display: flex; flex-wrap: wrap }
figure { margin: 4px; width: 244px }
img, i { width: 120px; height: 120px; object-fit: cover; background: #eee; display: inline-block }
</style>
";

const TILE: u32 = 200;
const COLUMNS: u32 = 6;

/// The picture over the checks, which show transparent parts.
fn tile(bytes: &[u8]) -> RgbaImage {
    let seen = make(bytes, 200, Fit::Cover).ok().map(|variant| match variant {
        Rendered::WebP(bytes) => Seen::of(&bytes),
        Rendered::PassThrough { mime } => panic!("{mime} passed through"),
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
    let Some(directory) = std::env::var_os("FILESTORE_SHEET").map(PathBuf::from) else { return };
    std::fs::create_dir_all(&directory).unwrap();
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
    sheet.save(directory.join("sheet.png")).unwrap();
    write_page(&directory, &cases);
}

/// Writes the files and their variants, and a page that shows them in pairs.
fn write_page(directory: &Path, cases: &[(&str, Vec<u8>)]) {
    let mut page = PAGE_HEAD.to_owned();
    for (index, (what, bytes)) in cases.iter().enumerate() {
        std::fs::write(directory.join(format!("{index}.file")), bytes).unwrap();
        let ours = match make(bytes, 200, Fit::Cover) {
            Ok(Rendered::WebP(variant)) => {
                std::fs::write(directory.join(format!("{index}.webp")), variant).unwrap();
                format!("<img src=\"{index}.webp\">")
            }
            Ok(Rendered::PassThrough { mime }) => panic!("{mime} passed through"),
            Err(error) => format!("<i>{}</i>", error.message()),
        };
        let file = format!("<img src=\"{index}.file\">");
        let caption = format!("<figcaption>{index}: {what}</figcaption>");
        page.extend(["<figure>", &file, &ours, &caption, "</figure>\n"]);
    }
    std::fs::write(directory.join("index.html"), page).unwrap();
}
