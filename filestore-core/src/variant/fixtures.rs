//! Pictures and keys for the tests, all generated.

use std::fs::File;
use std::io::{Cursor, Write as _};

use super::{Fit, VariantKey, VariantSize};
use crate::domain::clock::Timestamp;
use crate::domain::id::{FileId, Sha256};

mod pictures;

pub(super) use pictures::*;

pub(super) fn file_id() -> FileId {
    FileId::generate(Timestamp::now())
}

pub(super) fn size(pixels: &str) -> VariantSize {
    VariantSize::from_path(pixels, pixels).unwrap()
}

pub(super) fn key(file_id: FileId, pixels: &str) -> VariantKey {
    VariantKey {
        organization_id: "42".parse().unwrap(),
        file_id,
        sha256: Sha256([5; 32]),
        size: size(pixels),
        fit: Fit::Cover,
    }
}

pub(super) fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// What is in a WebP file: width, height and RGBA pixels.
pub(super) struct Seen {
    pub(super) width: u32,
    pub(super) height: u32,
    rgba: Vec<u8>,
}

impl Seen {
    pub(super) fn of(webp: &[u8]) -> Self {
        let mut decoder = image_webp::WebPDecoder::new(Cursor::new(webp)).unwrap();
        let (width, height) = decoder.dimensions();
        let mut data = vec![0; decoder.output_buffer_size().unwrap()];
        decoder.read_image(&mut data).unwrap();
        let rgba = if decoder.has_alpha() {
            data
        } else {
            data.chunks(3).flat_map(|p| [p[0], p[1], p[2], 255]).collect()
        };
        Self { width, height, rgba }
    }

    pub(super) fn at(&self, x: u32, y: u32) -> [u8; 4] {
        let start = 4 * (y * self.width + x) as usize;
        self.rgba[start..start + 4].try_into().unwrap()
    }

    /// By how much the channels of two pictures of one size differ, from 0 to 255, on average over
    /// all pixels; colours count as much as they are opaque.
    pub(super) fn mean_difference(&self, other: &Self) -> f64 {
        let weighed = |p: &[u8], channel: usize| match channel {
            3 => f64::from(p[3]),
            _ => f64::from(p[channel]) * f64::from(p[3]) / 255.0,
        };
        let pixels = self.rgba.chunks(4).zip(other.rgba.chunks(4));
        let total: f64 =
            pixels.flat_map(|(a, b)| (0..4).map(|c| (weighed(a, c) - weighed(b, c)).abs())).sum();
        total / f64::from(self.width * self.height * 4)
    }

    /// The colours at the middles of the four quarters: top left, top right, bottom left, bottom right.
    pub(super) fn quarters(&self) -> [[u8; 4]; 4] {
        let (x, y) = (self.width / 4, self.height / 4);
        let (right, bottom) = (self.width - 1 - x, self.height - 1 - y);
        [self.at(x, y), self.at(right, y), self.at(x, bottom), self.at(right, bottom)]
    }
}

/// Whether two colours are the same but for what lossy coding does.
pub(super) fn close(seen: &[u8], expected: &[u8]) -> bool {
    seen.iter().zip(expected).all(|(is, want)| is.abs_diff(*want) <= 12)
}
