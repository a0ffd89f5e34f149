//! Pictures and keys for the tests, all generated.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Cursor, Write as _};

use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder as _};

use super::{Fit, VariantKey, VariantSize};
use crate::domain::clock::Timestamp;
use crate::domain::id::{FileId, Sha256};

pub(super) const RED: [u8; 3] = [220, 30, 30];
pub(super) const GREEN: [u8; 3] = [30, 200, 30];
pub(super) const BLUE: [u8; 3] = [30, 30, 220];
pub(super) const WHITE: [u8; 3] = [240, 240, 240];

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

/// RGB rows whose quarters have the four colours: top left, top right, bottom left, bottom right.
pub(super) fn quarters(width: u32, height: u32, colors: [[u8; 3]; 4]) -> Vec<u8> {
    let pixel = |x, y| colors[usize::from(2 * y >= height) * 2 + usize::from(2 * x >= width)];
    (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect()
}

/// A smooth picture with some texture, so that codecs have something to do.
pub(super) fn photo(width: u32, height: u32) -> Vec<u8> {
    let mut noise = fastrand::Rng::with_seed(7);
    // A triangle between 30 and 210, and back, every so many pixels.
    let wave = |at: u32, period: u32| {
        let phase = at % period * 360 / period;
        u8::try_from(30 + if phase < 180 { phase } else { 360 - phase }).unwrap()
    };
    let mut data = Vec::with_capacity(3 * width as usize * height as usize);
    for y in 0..height {
        for x in 0..width {
            let grain = noise.u8(0..24);
            data.extend([wave(x, 230) + grain, wave(y, 330) + grain, wave(x + y, 570) + grain]);
        }
    }
    data
}

pub(super) fn jpeg(width: u32, height: u32, rgb: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 95)
        .encode(rgb, width, height, ExtendedColorType::Rgb8)
        .unwrap();
    bytes
}

/// `jpeg` with one more segment after its start.
pub(super) fn with_segment(jpeg: &[u8], marker: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 2).unwrap().to_be_bytes();
    [&jpeg[..2], &[0xFF, marker], &length, payload, &jpeg[2..]].concat()
}

/// EXIF metadata that holds an orientation and nothing else, with the prefix that JPEG wants.
pub(super) fn exif(orientation: u8) -> Vec<u8> {
    let mut bytes = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    bytes.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

/// A PNG of any kind; `set` may give it a palette, a profile, animation, ...
pub(super) fn png<'a>(
    width: u32,
    height: u32,
    color: png::ColorType,
    depth: png::BitDepth,
    data: &[u8],
    set: impl FnOnce(&mut png::Info<'a>),
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut info = png::Info::with_size(width, height);
    info.color_type = color;
    info.bit_depth = depth;
    set(&mut info);
    let mut writer = png::Encoder::with_info(&mut bytes, info).unwrap().write_header().unwrap();
    writer.write_image_data(data).unwrap();
    writer.finish().unwrap();
    bytes
}

/// A PNG with one more chunk after its header.
pub(super) fn with_chunk(png: &[u8], kind: [u8; 4], payload: &[u8]) -> Vec<u8> {
    const AFTER_IHDR: usize = 8 + 8 + 13 + 4;
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let sum = crc32(&[&kind[..], payload].concat()).to_be_bytes();
    [&png[..AFTER_IHDR], &length, &kind, payload, &sum, &png[AFTER_IHDR..]].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8)
            .fold(sum ^ u32::from(*byte), |sum: u32, _| sum >> 1 ^ if sum & 1 == 1 { 0xEDB8_8320 } else { 0 })
    })
}

/// A picture in any format that `image` encodes.
pub(super) fn encoded(width: u32, height: u32, rgb: &[u8], format: image::ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image::write_buffer_with_format(&mut bytes, rgb, width, height, ExtendedColorType::Rgb8, format).unwrap();
    bytes.into_inner()
}

/// A lossless WebP, with metadata if given (without the prefix that JPEG wants).
pub(super) fn webp(width: u32, height: u32, rgb: &[u8], exif: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::webp::WebPEncoder::new_lossless(&mut bytes);
    if !exif.is_empty() {
        encoder.set_exif_metadata(exif.to_vec()).unwrap();
    }
    encoder.write_image(rgb, width, height, ExtendedColorType::Rgb8).unwrap();
    bytes
}

/// An uncompressed TIFF with 8-bit RGB pixels, as TIFF 6.0 section 6 wants it.
pub(super) fn tiff(width: u32, height: u32, rgb: &[u8], orientation: u32) -> Vec<u8> {
    const SHORT: u16 = 3;
    const LONG: u16 = 4;
    const ENTRIES: u16 = 11;
    let bits_at = 8 + 2 + 12 * u32::from(ENTRIES) + 4;
    let data_at = bits_at + 6;
    let entries: [(u16, u16, u32, u32); ENTRIES as usize] = [
        (256, LONG, 1, width),
        (257, LONG, 1, height),
        (258, SHORT, 3, bits_at),
        (259, SHORT, 1, 1),
        (262, SHORT, 1, 2),
        (273, LONG, 1, data_at),
        (274, SHORT, 1, orientation),
        (277, SHORT, 1, 3),
        (278, LONG, 1, height),
        (279, LONG, 1, u32::try_from(rgb.len()).unwrap()),
        (284, SHORT, 1, 1),
    ];
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    bytes.extend(ENTRIES.to_le_bytes());
    for (tag, kind, count, value) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes.extend([8, 0, 8, 0, 8, 0]);
    bytes.extend(rgb);
    bytes
}

/// A baseline JPEG of one colour with as many components as given, and Adobe's marker with that
/// transform. No encoder at hand writes four components, so this one writes flat blocks.
pub(super) fn flat_jpeg(width: u16, height: u16, color: &[u8], adobe_transform: Option<u8>) -> Vec<u8> {
    let components = u8::try_from(color.len()).unwrap();
    let mut bytes = b"\xFF\xD8".to_vec();
    let mut segment = |marker: u8, payload: &[u8]| {
        bytes.extend([0xFF, marker]);
        bytes.extend(u16::try_from(payload.len() + 2).unwrap().to_be_bytes());
        bytes.extend(payload);
    };
    if let Some(transform) = adobe_transform {
        segment(0xEE, &[b"Adobe\0\x64\0\0\0\0".as_slice(), &[transform]].concat());
    }
    segment(0xDB, &[&[0][..], &[1; 64]].concat());
    let [h1, h0] = height.to_be_bytes();
    let [w1, w0] = width.to_be_bytes();
    let frame = (1..=components).flat_map(|id| [id, 0x11, 0]);
    segment(0xC0, &[8, h1, h0, w1, w0, components].into_iter().chain(frame).collect::<Vec<_>>());
    // DC: categories 0 to 11, four bits each. AC: only "end of block", one bit.
    let dc_lengths = [0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    segment(0xC4, &[&[0x00][..], &dc_lengths, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]].concat());
    let ac_lengths = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    segment(0xC4, &[&[0x10][..], &ac_lengths, &[0]].concat());
    let scan = (1..=components).flat_map(|id| [id, 0]);
    segment(0xDA, &[components].into_iter().chain(scan).chain([0, 63, 0]).collect::<Vec<_>>());

    let blocks = usize::from(width.div_ceil(8)) * usize::from(height.div_ceil(8));
    let mut bits = String::new();
    for block in 0..blocks {
        for value in color {
            let difference = if block == 0 { 8 * (i32::from(*value) - 128) } else { 0 };
            let category = 32 - difference.unsigned_abs().leading_zeros();
            write!(bits, "{category:04b}").unwrap();
            if category > 0 {
                let code = if difference < 0 { difference + (1 << category) - 1 } else { difference };
                write!(bits, "{code:0width$b}", width = category as usize).unwrap();
            }
            bits.push('0');
        }
    }
    bytes.extend(entropy_coded(&bits));
    bytes.extend([0xFF, 0xD9]);
    bytes
}

/// A scan's bits, written as text, as the bytes of a JPEG: filled up with ones, 0xFF stuffed.
pub(super) fn entropy_coded(bits: &str) -> Vec<u8> {
    let padded = format!("{bits}{}", "1".repeat((8 - bits.len() % 8) % 8));
    let bytes = padded
        .as_bytes()
        .chunks(8)
        .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap());
    bytes.flat_map(|byte| if byte == 0xFF { vec![0xFF, 0] } else { vec![byte] }).collect()
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
