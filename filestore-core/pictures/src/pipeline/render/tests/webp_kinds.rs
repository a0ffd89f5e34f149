//! WebPs whose parts contradict each other.

use super::*;

/// A lossless WebP of 300² whose palette has three colours, and whose every pixel names a fourth
/// (RFC 9649, sections 3.4 and 4.4).
fn beyond_its_palette(has_alpha: bool) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut put = |value: u32, count: u32| bits.extend((0..count).map(|bit| value >> bit & 1 == 1));
    // A code of one symbol takes no bits afterwards.
    let codes = |put: &mut dyn FnMut(u32, u32), symbols: [u32; 5]| {
        for symbol in symbols {
            put(0b101, 3);
            put(symbol, 8);
        }
    };
    put(0x2F, 8);
    put(299, 14);
    put(299, 14);
    put(u32::from(has_alpha), 1);
    put(0, 3);
    // A palette, and the picture that it is.
    put(1, 1);
    put(3, 2);
    put(2, 8);
    put(0, 1);
    codes(&mut put, [40, 30, 20, 255, 0]);
    // No more transforms, no cache, one group of codes.
    put(0, 3);
    codes(&mut put, [255, 0, 0, 255, 0]);
    let data: Vec<u8> = bits
        .chunks(8)
        .map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit)))
        .collect();
    let body = [b"WEBP".to_vec(), riff_chunk(b"VP8L", &[data, vec![0; 8]].concat())].concat();
    riff_chunk(b"RIFF", &body)
}

#[test]
fn an_index_beyond_the_palette_is_black_and_as_opaque_as_the_file_says() {
    let opaque = seen(&beyond_its_palette(false), 200, Fit::Cover).at(100, 100);
    assert_eq!(opaque, [0, 0, 0, 255], "no alpha is in use");
    let transparent = seen(&beyond_its_palette(true), 200, Fit::Cover).at(100, 100);
    assert_eq!(transparent[3], 0);
}

#[test]
fn a_plane_of_alpha_is_used_if_the_file_says_that_it_has_one() {
    const HAS_ALPHA: u8 = 0x10;
    let veiled = [220, 30, 30, 90].repeat(300 * 300);
    let mut bytes = ::webp::Encoder::from_rgba(&veiled, 300, 300).encode(90.0).to_vec();
    assert!(bytes.windows(4).any(|kind| kind == b"ALPH") && bytes[20] & HAS_ALPHA != 0);
    let shown = seen(&bytes, 200, Fit::Cover).at(100, 100);
    assert!(close(&shown, &[220, 30, 30, 90]), "{shown:?}");
    bytes[20] &= !HAS_ALPHA;
    let shown = seen(&bytes, 200, Fit::Cover).at(100, 100);
    assert!(close(&shown, &[220, 30, 30, 255]), "{shown:?}");
}
