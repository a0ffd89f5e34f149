//! Good pictures, cut short and with bits turned: anything may come of them but a panic, a hang or
//! an error that is not the picture's.

use std::fs::File;
use std::io::Write as _;

use filestore_pictures::{ErrorKind, Settings, Wanted, animate, probe, render};
use image::ImageFormat;
use png::{BitDepth, ColorType};

use super::animations::{Step, moving_gif};
use super::pictures::*;

/// Just too wide to pass through, and small, so that it can be made thousands of times.
const WIDTH: u32 = 204;
const HEIGHT: u32 = 8;

fn pictures() -> Vec<(&'static str, Vec<u8>)> {
    let rgb = quarters(WIDTH, HEIGHT, [RED, GREEN, BLUE, WHITE]);
    let stills = [RED, GREEN]
        .map(|color| webp(WIDTH, HEIGHT, &color.repeat((WIDTH * HEIGHT) as usize), &[]));
    let rgba: Vec<u8> = rgb.chunks(3).flat_map(|p| [p[0], p[1], p[2], p[0]]).collect();
    let steps = [RED, GREEN]
        .map(|[red, green, blue]| Step::flat(0, 0, WIDTH, HEIGHT, [red, green, blue, 255]));
    vec![
        ("JPEG", with_segment(&jpeg(WIDTH, HEIGHT, &rgb), 0xE1, &exif(6))),
        ("progressive JPEG", progressive_jpeg()),
        ("CMYK JPEG", flat_jpeg(208, 8, &[255, 0, 0, 255], Some(2))),
        ("PNG", png(WIDTH, HEIGHT, ColorType::Rgba, BitDepth::Eight, &rgba, |_| {})),
        ("animated PNG", animated_png(WIDTH, HEIGHT, &[&rgb, &rgb])),
        ("GIF", encoded(WIDTH, HEIGHT, &rgb, ImageFormat::Gif)),
        ("animated GIF", moving_gif(204, 8, &steps, Some(0))),
        ("lossy WebP", webp::Encoder::from_rgb(&rgb, WIDTH, HEIGHT).encode(40.0).to_vec()),
        ("lossless WebP", webp(WIDTH, HEIGHT, &rgb, &exif(3)[6..])),
        ("animated WebP", animated_webp(WIDTH, HEIGHT, &stills.each_ref().map(|still| &still[..]))),
        ("BMP", bmp(WIDTH, 8, 4, 0, &[0x5A; 64], &[0x12; 104 * 8])),
        ("TIFF", tiff(WIDTH, 2, &rgb[..(3 * 2 * WIDTH) as usize], 1)),
    ]
}

/// Returns true if a variant came of `bytes`; panics at an error that is not the picture's.
fn shown(bytes: &[u8], what: &str) -> bool {
    let mut file: File = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let _ = probe(&file);
    let wanted = Wanted::cover(200);
    let kinds = [
        ErrorKind::Corrupt,
        ErrorKind::NotAnImage,
        ErrorKind::Unsupported,
        ErrorKind::TooLarge,
        ErrorKind::TooSlow,
    ];
    if what.contains("animated")
        && let Err(error) = animate(&file, wanted, &Settings::default())
    {
        assert!(kinds.contains(&error.kind()), "{what}, animated: {error:?}");
    }
    match render(&file, &[wanted], &Settings::default()) {
        Ok(_) => true,
        Err(error) => {
            assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
            false
        }
    }
}

#[test]
fn a_picture_cut_at_any_byte_fails_cleanly_or_shows_what_is_there() {
    for (what, bytes) in pictures() {
        assert!(shown(&bytes, what), "{what} as a whole");
        assert!(!shown(&bytes[..bytes.len() / 8], what), "an eighth of a {what}");
        for cut in 0..bytes.len() {
            shown(&bytes[..cut], &format!("{what} cut at {cut}"));
        }
    }
}

#[test]
fn a_picture_with_turned_bits_never_panics() {
    let mut random = fastrand::Rng::with_seed(11);
    for (what, good) in pictures() {
        for round in 0..300 {
            let mut bytes = good.clone();
            for _ in 0..random.usize(1..8) {
                // Mostly in the headers, where the structure is.
                let end = if random.bool() { bytes.len() } else { bytes.len().min(200) };
                bytes[random.usize(..end)] ^= 1 << random.u8(..8);
            }
            shown(&bytes, &format!("{what}, round {round}"));
        }
    }
}
