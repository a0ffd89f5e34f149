//! Compares the decoder with image-webp, which is bit-exact with libwebp, for files from libwebp.

use image_webp::WebPDecoder;
use std::io::Cursor;
use webp::{Encoder, PixelLayout, WebPConfig};

use super::container::Chunks;
use super::lossy::{Wanted, decode};
use super::{Dimensions, Failure, WebP, alpha, rgba};
use crate::fixtures::photo;
use crate::geometry::{Geometry, Rectangle};
use crate::pixels::Picture;

/// A lossy file, with the settings that `set` changes.
pub(super) fn lossy(
    (width, height): (u32, u32),
    rgb: &[u8],
    set: impl FnOnce(&mut WebPConfig),
) -> Vec<u8> {
    encode((width, height), rgb, PixelLayout::Rgb, set)
}

fn encode(
    (width, height): (u32, u32),
    pixels: &[u8],
    layout: PixelLayout,
    set: impl FnOnce(&mut WebPConfig),
) -> Vec<u8> {
    let mut config = WebPConfig::new().unwrap();
    config.method = 2;
    set(&mut config);
    Encoder::new(pixels, layout, width, height).encode_advanced(&config).unwrap().to_vec()
}

/// The VP8 bitstream of a file.
pub(super) fn lossy_chunk(file: &[u8]) -> &[u8] {
    Chunks::of(file).lossy.unwrap()
}

/// The pixels of a file, decoded by image-webp: RGB, or RGBA.
pub(super) fn reference(file: &[u8]) -> (Vec<u8>, usize) {
    let mut decoder = WebPDecoder::new(Cursor::new(file)).unwrap();
    let mut data = vec![0; decoder.output_buffer_size().unwrap()];
    decoder.read_image(&mut data).unwrap();
    (data, if decoder.has_alpha() { 4 } else { 3 })
}

/// Compares all pixels of a file with the pixels from image-webp.
fn assert_exact(file: &[u8], what: &str) {
    let (expected, channels) = reference(file);
    let chunks = Chunks::of(file);
    let components = decode(chunks.lossy.unwrap(), Wanted::Whole, &|| false).unwrap();
    let size = components.size;
    let opaque = vec![255; (size.width * size.height) as usize];
    let alpha = chunks.alpha.map_or(opaque, |alpha| alpha::decode(alpha, size).unwrap());

    let pixels = rgba::join(&components, &alpha);
    let seen: Vec<u8> =
        pixels.data.chunks(4).flat_map(|pixel| pixel[..channels].iter().copied()).collect();
    assert_eq!(seen.len(), expected.len(), "{what}");
    let wrong = seen.iter().zip(&expected).position(|(seen, expected)| seen != expected);
    assert_eq!(wrong.map(|at| at / channels), None, "{what}: the first pixel that differs");
}

#[test]
fn every_quality_and_effort_is_exact() {
    let rgb = photo(100, 75);
    for quality in [0.0, 15.0, 50.0, 80.0, 95.0, 100.0] {
        for method in [0, 2, 4, 6] {
            let file = lossy((100, 75), &rgb, |config| {
                (config.quality, config.method) = (quality, method);
            });
            assert_exact(&file, &format!("quality {quality}, method {method}"));
        }
    }
}

#[test]
fn every_size_is_exact() {
    for size in [(1, 1), (2, 3), (15, 17), (16, 16), (17, 16), (33, 7), (64, 48), (5, 130)] {
        let file = lossy(size, &photo(size.0, size.1), |config| config.quality = 60.0);
        assert_exact(&file, &format!("{size:?}"));
    }
}

#[test]
fn every_kind_of_filter_is_exact() {
    let rgb = photo(90, 66);
    for filter_type in [0, 1] {
        for (strength, sharpness) in [(0, 0), (20, 0), (60, 3), (100, 0), (100, 7), (30, 5)] {
            let file = lossy((90, 66), &rgb, |config| {
                config.quality = 30.0;
                config.filter_type = filter_type;
                config.filter_strength = strength;
                config.filter_sharpness = sharpness;
            });
            assert_exact(&file, &format!("filter {filter_type}, {strength}, {sharpness}"));
        }
    }
}

#[test]
fn segments_and_partitions_are_exact() {
    let rgb = photo(200, 180);
    for segments in 1..=4 {
        for partitions in 0..=3 {
            let file = lossy((200, 180), &rgb, |config| {
                config.segments = segments;
                config.partitions = partitions;
                config.quality = 75.0;
                config.method = 4;
            });
            assert_exact(&file, &format!("{segments} segments, {partitions} of partitions"));
        }
    }
}

#[test]
fn noise_with_the_largest_values_is_exact() {
    let mut random = fastrand::Rng::with_seed(3);
    let rgb: Vec<u8> = (0..64 * 64 * 3).map(|_| if random.bool() { 255 } else { 0 }).collect();
    for quality in [1.0, 40.0, 100.0] {
        let file = lossy((64, 64), &rgb, |config| config.quality = quality);
        assert_exact(&file, &format!("noise of quality {quality}"));
    }
}

#[test]
fn alpha_is_exact_however_it_is_stored() {
    let pixels: Vec<u8> = photo(61, 47)
        .chunks(3)
        .enumerate()
        .flat_map(|(at, p)| [p[0], p[1], p[2], (at % 61 * 4) as u8])
        .collect();
    for compression in [0, 1] {
        for filtering in 0..=2 {
            for quality in [30, 100] {
                let file = encode((61, 47), &pixels, PixelLayout::Rgba, |config| {
                    config.alpha_compression = compression;
                    config.alpha_filtering = filtering;
                    config.alpha_quality = quality;
                });
                assert!(Chunks::of(&file).alpha.is_some());
                assert_exact(&file, &format!("alpha {compression}, {filtering}, {quality}"));
            }
        }
    }
}

/// An alpha plane with `plane` as its differences, for each filter of the format.
#[test]
fn alpha_filters_are_those_of_the_format() {
    let size = Dimensions { width: 3, height: 2 };
    let filtered = |filter: u8| {
        let chunk = [&[filter << 2][..], &[10, 250, 3, 1, 2, 255]].concat();
        alpha::decode(&chunk, size).unwrap()
    };
    assert_eq!(filtered(0), [10, 250, 3, 1, 2, 255]);
    assert_eq!(filtered(1), [10, 4, 7, 11, 13, 12]);
    assert_eq!(filtered(2), [10, 4, 7, 11, 6, 6]);
    // Above 10, 4, 7: then 10 + 1, 11 + 4 − 10 + 2, and 7 + 7 − 4 − 1.
    assert_eq!(filtered(3), [10, 4, 7, 11, 7, 9]);
    assert!(alpha::decode(&[2, 0, 0, 0, 0, 0, 0], size).is_err(), "an unknown form");
    assert!(alpha::decode(&[0, 1, 2, 3], size).is_err(), "cut");
    assert!(alpha::decode(&[], size).is_err(), "empty");
    assert!(alpha::decode(&[1, 0xFF, 0xFF], size).is_err(), "no bitstream");
}

#[test]
fn chunks_are_found_behind_others_and_when_cut() {
    let chunk = |kind: &[u8; 4], length: u32, payload: &[u8]| {
        [&kind[..], &length.to_le_bytes(), payload].concat()
    };
    let file = [
        b"RIFF\0\0\0\0WEBP".to_vec(),
        chunk(b"VP8X", 10, &[0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        chunk(b"ICCP", 3, b"icc\0"),
        chunk(b"JUNK", 1, b"x\0"),
        chunk(b"ALPH", 2, b"al"),
        chunk(b"VP8 ", 1000, b"cut"),
    ]
    .concat();
    let chunks = Chunks::of(&file);
    assert_eq!(chunks.profile, Some(&b"icc"[..]));
    assert_eq!(chunks.alpha, Some(&b"al"[..]));
    assert_eq!(chunks.lossy, Some(&b"cut"[..]));
    assert_eq!((chunks.features, chunks.lossless), (Some(0x10), None));
    for length in 0..file.len() {
        Chunks::of(&file[..length]);
    }
}

#[test]
fn a_picture_of_another_size_than_the_header_says_is_corrupt() {
    let file = lossy((40, 30), &photo(40, 30), |_| {});
    let wanted = [Geometry {
        crop: Rectangle { left: 0, top: 0, width: 40, height: 30 },
        target: Dimensions { width: 20, height: 15 },
    }];
    let decode = |size| WebP::survey(&file).decode(size, &wanted, &|| false);
    let still = decode(Dimensions { width: 40, height: 30 }).unwrap();
    assert!(matches!(still.picture, Picture::Planes(_)) && still.arrived.is_none());
    let wrong = decode(Dimensions { width: 40, height: 31 });
    assert!(matches!(wrong, Err(Failure::Corrupt(_))));
}
