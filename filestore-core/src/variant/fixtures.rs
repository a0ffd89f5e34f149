//! Keys and pictures for the tests of this module.

use std::fs::File;
use std::io::Write as _;

use image::codecs::gif::{GifEncoder, Repeat};
use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, Frame, Rgba, RgbaImage};

use crate::domain::id::{FileId, Sha256};
use crate::domain::time::clock::Timestamp;
use crate::variant::{Fit, Motion, VariantKey, VariantSize};

pub(crate) fn file_id() -> FileId {
    FileId::generate(Timestamp::now())
}

pub(crate) fn size(pixels: &str) -> VariantSize {
    VariantSize::from_path(pixels, pixels).unwrap()
}

pub(crate) fn key(file_id: FileId, pixels: &str) -> VariantKey {
    VariantKey {
        organization_id: "42".parse().unwrap(),
        file_id,
        sha256: Sha256([5; 32]),
        size: size(pixels),
        fit: Fit::Cover,
        motion: Motion::Still,
    }
}

pub(crate) fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// Returns a smooth picture with some texture, so that codecs have work to do.
pub(crate) fn jpeg(width: u32, height: u32) -> Vec<u8> {
    let mut noise = fastrand::Rng::with_seed(7);
    // A triangle between 30 and 210, and back, every so many pixels.
    let wave = |at: u32, period: u32| {
        let phase = at % period * 360 / period;
        u8::try_from(30 + if phase < 180 { phase } else { 360 - phase }).unwrap()
    };
    let points = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let rgb: Vec<u8> = points
        .flat_map(|(x, y)| {
            let grain = noise.u8(0..24);
            [wave(x, 230) + grain, wave(y, 330) + grain, wave(x + y, 570) + grain]
        })
        .collect();

    let mut bytes = Vec::new();
    let encoder = &mut JpegEncoder::new_with_quality(&mut bytes, 95);
    encoder.encode(&rgb, width, height, ExtendedColorType::Rgb8).unwrap();
    bytes
}

/// Returns a GIF with one frame for each colour, which repeats without end.
pub(crate) fn gif(width: u32, height: u32, colors: &[[u8; 4]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    encoder.set_repeat(Repeat::Infinite).unwrap();
    for color in colors {
        let frame = RgbaImage::from_pixel(width, height, Rgba(*color));
        encoder.encode_frame(Frame::new(frame)).unwrap();
    }
    drop(encoder);
    bytes
}

/// Returns the width and height of a WebP file.
pub(crate) fn size_of(webp: &[u8]) -> (u32, u32) {
    let picture = image::load_from_memory(webp).unwrap();
    (picture.width(), picture.height())
}
