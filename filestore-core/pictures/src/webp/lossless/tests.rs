//! Compares the decoder with image-webp, for files from libwebp.

use std::ops::ControlFlow;

use webp::{Encoder, PixelLayout, WebPConfig};

use super::Stream;
use crate::fixtures::photo;
use crate::webp::container::Chunks;
use crate::webp::tests::reference;

/// A lossless file of RGBA pixels, with the settings that `set` changes.
fn lossless(
    (width, height): (u32, u32),
    rgba: &[u8],
    set: impl FnOnce(&mut WebPConfig),
) -> Vec<u8> {
    let mut config = WebPConfig::new().unwrap();
    config.lossless = 1;
    config.exact = 1;
    set(&mut config);
    let encoder = Encoder::new(rgba, PixelLayout::Rgba, width, height);
    encoder.encode_advanced(&config).unwrap().to_vec()
}

/// The rows of a file's picture, RGBA.
fn rows(chunk: &[u8]) -> Vec<u8> {
    let Ok(stream) = Stream::open(chunk) else { return Vec::new() };
    let mut seen = Vec::new();
    let given = stream.rows(|row| {
        seen.extend(row.iter().flat_map(|pixel| pixel.rotate_left(8).to_be_bytes()));
        ControlFlow::Continue(())
    });
    // What was given out before the damage is no error.
    assert!(given.is_ok() || seen.is_empty());
    seen
}

fn assert_exact(file: &[u8], what: &str) {
    let (expected, channels) = reference(file);
    let seen = rows(Chunks::of(file).lossless.unwrap());
    let seen: Vec<u8> =
        seen.chunks(4).flat_map(|pixel| pixel[..channels].iter().copied()).collect();
    assert_eq!(seen.len(), expected.len(), "{what}");
    let wrong = seen.iter().zip(&expected).position(|(seen, expected)| seen != expected);
    assert_eq!(wrong.map(|at| at / channels), None, "{what}: the first pixel that differs");
}

/// A photograph with alpha that changes from column to column.
fn glass(width: u32, height: u32) -> Vec<u8> {
    let pixels = photo(width, height);
    let pixels = pixels.chunks(3).enumerate();
    pixels.flat_map(|(at, p)| [p[0], p[1], p[2], (at % width as usize * 3) as u8]).collect()
}

fn opaque(rgb: &[u8]) -> Vec<u8> {
    rgb.chunks(3).flat_map(|p| [p[0], p[1], p[2], 255]).collect()
}

#[test]
fn every_effort_is_exact() {
    let pixels = [opaque(&photo(150, 97)), glass(150, 97)];
    for (kind, rgba) in pixels.iter().enumerate() {
        for method in 0..=6 {
            for quality in [0.0, 50.0, 100.0] {
                let file = lossless((150, 97), rgba, |config| {
                    (config.method, config.quality) = (method, quality);
                });
                assert_exact(&file, &format!("kind {kind}, method {method}, quality {quality}"));
            }
        }
    }
}

#[test]
fn every_size_is_exact() {
    for size in [(1, 1), (1, 40), (40, 1), (2, 3), (4, 4), (5, 5), (63, 65), (7, 130)] {
        let file = lossless(size, &glass(size.0, size.1), |_| {});
        assert_exact(&file, &format!("{size:?}"));
    }
}

#[test]
fn every_number_of_colours_is_exact() {
    let mut random = fastrand::Rng::with_seed(9);
    for count in [1u32, 2, 3, 4, 5, 16, 17, 200, 256, 300, 2000] {
        let rgba: Vec<u8> = std::iter::repeat_with(|| random.u32(..count))
            .take(101 * 67)
            .flat_map(|number| {
                let [a, b, ..] = number.wrapping_mul(40_503).to_le_bytes();
                [a, b, number as u8, if count == 5 { b } else { 255 }]
            })
            .collect();
        assert_exact(&lossless((101, 67), &rgba, |_| {}), &format!("{count} colours"));
    }
}

#[test]
fn noise_of_all_values_is_exact() {
    let mut random = fastrand::Rng::with_seed(11);
    let rgba: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(4 * 200 * 150).collect();
    assert_exact(&lossless((200, 150), &rgba, |_| {}), "noise");
}

#[test]
fn copies_from_far_above_are_exact() {
    // The same noise again and again: from rows whose pixels have left the window of a whole picture.
    let (width, height) = (1200, 1800);
    let mut random = fastrand::Rng::with_seed(13);
    let part: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(4 * 1200 * 600).collect();
    // At less than this quality libwebp does not look so far back.
    let file = lossless((width, height), &part.repeat(3), |config| {
        (config.method, config.quality) = (1, 100.0);
    });
    assert!(file.len() < part.len() * 3 / 2, "copies are used");
    assert_exact(&file, "repeated noise");
}

#[test]
fn a_cut_picture_gives_its_first_rows() {
    let file = lossless((150, 97), &glass(150, 97), |_| {});
    let chunk = Chunks::of(&file).lossless.unwrap();
    let whole = rows(chunk);
    let mut most = 0;
    for length in (0..chunk.len()).step_by(97) {
        let part = rows(&chunk[..length]);
        assert!(whole.starts_with(&part), "{length} bytes");
        most = most.max(part.len());
    }
    assert!((whole.len() / 2..whole.len()).contains(&most), "{most} of {}", whole.len());
}

#[test]
fn rows_end_when_nobody_wants_more() {
    let file = lossless((150, 97), &glass(150, 97), |_| {});
    let mut left = 10;
    let given = Stream::open(Chunks::of(&file).lossless.unwrap()).unwrap().rows(|_| {
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(given, Ok(10));
}

#[test]
fn damage_never_panics() {
    let mut random = fastrand::Rng::with_seed(17);
    let few: Vec<u8> = (0..60 * 40u32).flat_map(|at| [(at / 7 % 9) as u8, 0, 0, 255]).collect();
    for rgba in [opaque(&photo(60, 40)), glass(60, 40), few] {
        let file = lossless((60, 40), &rgba, |_| {});
        let chunk = Chunks::of(&file).lossless.unwrap();
        for _ in 0..3000 {
            let mut damaged = chunk.to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(5..damaged.len());
                damaged[at] = random.u8(..);
            }
            assert!(rows(&damaged).len() <= 4 * 60 * 40);
        }
    }
}
