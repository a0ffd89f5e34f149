//! Pictures made to do harm: tiny files that claim, or inflate to, far more than they are.

use image::ImageFormat;
use png::text_metadata::ZTXtChunk;
use png::{BitDepth, ColorType};

use super::pictures::*;
use super::tiffs::{Tiff, zlib};

/// The answer to a weapon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A variant: the dangerous part is never touched.
    Variant,
    /// A refusal with the kind `image_too_large`.
    TooLarge,
    /// A refusal with the kind `corrupt_image`.
    Corrupt,
    /// A refusal with the kind `not_an_image`.
    NotAnImage,
}

/// One weapon, and the answer expected to it.
pub(crate) struct Weapon {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) answer: Answer,
    /// The most memory that the answer may take, in MiB.
    pub(crate) memory_mib: u64,
}

/// The memory of an answer from the header alone: a few buffers.
const HEADER_MIB: u64 = 24;

/// Makes all weapons.
pub(crate) fn arsenal() -> Vec<Weapon> {
    let mut all = large_claims();
    all.extend(inflating());
    all.extend(many_parts());
    all.extend(lying_structures());
    all.extend(crowded_tiffs());
    all.extend(no_pictures());
    all
}

/// Files of a few bytes that claim to be huge: refused from their headers.
fn large_claims() -> Vec<Weapon> {
    let vp8x =
        |side: [u8; 3]| [b"RIFF\x1E\0\0\0WEBPVP8X\x0A\0\0\0\0\0\0\0", &side[..], &side].concat();
    let vp8l = [b"RIFF\x16\0\0\0WEBPVP8L\x0A\0\0\0\x2F", &[0xFF; 9][..]].concat();
    let frame = |marker: u8| {
        [
            &[0xFF, 0xD8, 0xFF, marker][..],
            b"\0\x11\x08\xFF\xFF\xFF\xFF\x03\x01\x22\0\x02\x11\0\x03\x11\0",
        ]
        .concat()
    };
    let mut wide_tiff = tiff(300, 300, &[0; 9], 1);
    // The value of the first entry, which is the width.
    wide_tiff[8 + 2 + 8..8 + 2 + 12].copy_from_slice(&4_000_000_000u32.to_le_bytes());
    let one_bit = |side: u32| {
        let row = side.div_ceil(8) as usize;
        png(side, side, ColorType::Grayscale, BitDepth::One, &vec![0; row * side as usize], |_| {})
    };
    [
        ("PNG, 60000²", png_claiming(60_000, 60_000, 8, 6)),
        ("PNG, 2³¹−1 squared", png_claiming(0x7FFF_FFFF, 0x7FFF_FFFF, 16, 6)),
        ("PNG, RGBA 11500²", png_claiming(11_500, 11_500, 8, 6)),
        ("PNG, 1 bit 10000², whole", one_bit(10_000)),
        ("GIF, screen of 65535²", b"GIF89a\xFF\xFF\xFF\xFF\0\0\0\0\0\0\0\0".to_vec()),
        ("JPEG, baseline 65535²", frame(0xC0)),
        ("JPEG, progressive 65535²", frame(0xC2)),
        ("WebP, canvas of 16 million squared", vp8x([0xFF; 3])),
        ("WebP, lossless 16384²", vp8l),
        ("BMP, 2³¹−1 squared", bmp(0x7FFF_FFFF, 0x7FFF_FFFF, 32, 0, &[], &[])),
        ("BMP, top-down by 2³¹", bmp(300, i32::MIN, 24, 0, &[], &[])),
        ("TIFF, 4 milliard wide", wide_tiff),
    ]
    .map(|(name, bytes)| Weapon { name, bytes, answer: Answer::TooLarge, memory_mib: HEADER_MIB })
    .into()
}

/// Files that keep the limits of size and are still much smaller than what is in them.
fn inflating() -> Vec<Weapon> {
    let rgb = BLUE.repeat(300 * 300);
    let flat = |set: &dyn Fn(&mut png::Info<'static>)| {
        png(300, 300, ColorType::Rgb, BitDepth::Eight, &rgb, |info| set(info))
    };
    let palette = |info: &mut png::Info<'_>| {
        info.palette = Some(vec![0, 0, 0, 220, 30, 30].into());
        info.trns = Some(vec![255, 128].into());
    };
    let one_bit = |side: u32| {
        let row = side.div_ceil(8) as usize;
        png(
            side,
            side,
            ColorType::Indexed,
            BitDepth::One,
            &vec![0x5A; row * side as usize],
            palette,
        )
    };
    // A screen of that side, and a frame of 300².
    let screen = |side: u16| {
        let mut bytes = encoded(300, 300, &rgb, ImageFormat::Gif);
        let [low, high] = side.to_le_bytes();
        bytes[6..10].copy_from_slice(&[low, high, low, high]);
        bytes
    };
    let table = [[0; 4], [255; 4]].concat();
    [
        (
            "PNG, profile of 64 MiB",
            flat(&|info| info.icc_profile = Some(vec![0; 64 << 20].into())),
            64,
        ),
        (
            "PNG, text of 64 MiB",
            flat(&|info| {
                info.compressed_latin1_text.push(ZTXtChunk::new("Comment", "a".repeat(64 << 20)));
            }),
            HEADER_MIB,
        ),
        ("PNG, 1 bit 4000² that becomes RGBA", one_bit(4000), 16 + 2 * 62),
        ("GIF, screen of 4000²", screen(4000), 16 + 2 * 62),
        (
            "BMP, runs that stop at once, 16384×3000",
            bmp(16_384, 3000, 8, 1, &table, &[0, 1]),
            16 + 188,
        ),
    ]
    .map(|(name, bytes, memory_mib)| Weapon { name, bytes, answer: Answer::Variant, memory_mib })
    .into()
}

/// Files with far more frames, scans or chunks than a picture has.
fn many_parts() -> Vec<Weapon> {
    let rgb = BLUE.repeat(300 * 300);
    let mut frames = encoded(300, 300, &rgb, ImageFormat::Gif);
    frames.pop();
    // A frame of one pixel: graphic control, descriptor, LZW data.
    let pixel = b"\x21\xF9\x04\0\x01\0\0\0\x2C\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0";
    frames.extend(pixel.repeat(100_000));
    frames.push(0x3B);
    let still = webp(300, 300, &rgb, &[]);
    let animated = animated_webp(300, 300, &vec![&still[..]; 20_000]);
    let plain_png = png(300, 300, ColorType::Rgb, BitDepth::Eight, &rgb, |_| {});
    // A text of 300,000 chunks, before and after which everything is right.
    let chunk = with_chunk(&plain_png, *b"teXt", b"x")[33..33 + 13].to_vec();
    let chunks = [&plain_png[..33], &chunk.repeat(300_000), &plain_png[33..]].concat();
    let segment = b"\xFF\xFE\0\x03x".repeat(100_000);
    let plain_jpeg = jpeg(300, 300, &rgb);
    let segments = [&plain_jpeg[..2], &segment, &plain_jpeg[2..]].concat();
    [
        ("GIF, 100,000 frames", frames, Answer::Variant, 24),
        ("WebP, 20,000 frames", animated, Answer::Variant, 64),
        ("PNG, 300,000 chunks", chunks, Answer::Variant, 32),
        ("JPEG, 100,000 comments", segments, Answer::Corrupt, 32),
        ("JPEG, 101 scans over 256²", scans(256, 256, 101), Answer::Variant, 32),
        (
            "JPEG, 101 scans over 8000×6250",
            scans(8000, 6250, 101),
            Answer::TooLarge,
            HEADER_MIB + 100,
        ),
        (
            "JPEG, 21 scans over 8000×6250",
            scans(8000, 6250, 21),
            Answer::Variant,
            16 + 3 * 48 + 100,
        ),
    ]
    .map(|(name, bytes, answer, memory_mib)| Weapon { name, bytes, answer, memory_mib })
    .into()
}

/// Files whose parts contradict each other.
fn lying_structures() -> Vec<Weapon> {
    let bitstream = b"VP8 \x0A\0\0\0\x10\0\0\x9D\x01\x2A\xFF\x3F\xFF\x3F";
    let inner =
        [&b"RIFF\x30\0\0\0WEBPVP8X\x0A\0\0\0\0\0\0\0\x2B\x01\0\x2B\x01\0"[..], bitstream].concat();
    // A directory of 65,535 entries in a file of ten bytes.
    let entries = b"II*\0\x08\0\0\0\xFF\xFF".to_vec();
    // One strip that claims 4 GiB.
    let mut strip = tiff(300, 300, &BLUE.repeat(300 * 300), 1);
    strip[8 + 2 + 9 * 12 + 8..8 + 2 + 9 * 12 + 12].copy_from_slice(&[0xFF; 4]);
    // Four milliard samples in each pixel.
    let mut samples = tiff(300, 300, &BLUE.repeat(300 * 300), 1);
    samples[8 + 2 + 7 * 12 + 2..8 + 2 + 7 * 12 + 12]
        .copy_from_slice(b"\x04\0\x01\0\0\0\xFF\xFF\xFF\xFF");
    // A million offsets of strips, a byte each, all there. Only the first is one.
    let mut strips = tiff(300, 300, &BLUE.repeat(300 * 300), 1);
    let end = u32::try_from(strips.len()).unwrap().to_le_bytes();
    strips[8 + 2 + 5 * 12 + 2..8 + 2 + 5 * 12 + 8].copy_from_slice(b"\x01\0\0\0\x10\0");
    strips[8 + 2 + 5 * 12 + 8..8 + 2 + 5 * 12 + 12].copy_from_slice(&end);
    strips.resize(strips.len() + (1 << 20), 200);
    let strips = Weapon {
        name: "TIFF, a million strips",
        bytes: strips,
        answer: Answer::Variant,
        memory_mib: HEADER_MIB,
    };
    let mut all: Vec<_> = [
        ("WebP, a picture larger than its canvas", inner, Answer::Corrupt),
        ("TIFF, 65,535 entries that are not there", entries, Answer::Corrupt),
        // The bytes of pixels that are not compressed are known without the length.
        ("TIFF, a strip of 4 GiB", strip, Answer::Variant),
        ("TIFF, 4 milliard samples", samples, Answer::Corrupt),
    ]
    .map(|(name, bytes, answer)| Weapon { name, bytes, answer, memory_mib: HEADER_MIB })
    .into();
    all.push(strips);
    // Found by fuzzing as well: 5 million samples' formats, which would take 150 MiB.
    let mut formats = tiff(300, 300, &BLUE.repeat(300 * 300), 1);
    formats[8 + 2 + 10 * 12..8 + 2 + 11 * 12]
        .copy_from_slice(b"\x53\x01\x03\0\x03\0\x4B\0\x08\0\0\0");
    formats.resize(10 << 20, 1);
    all.push(Weapon {
        name: "TIFF, 5 million sample formats",
        bytes: formats,
        answer: Answer::NotAnImage,
        memory_mib: HEADER_MIB,
    });
    all
}

/// TIFFs whose pixels, tiles or runs are far larger than the picture.
fn crowded_tiffs() -> Vec<Weapon> {
    const SHORT: u16 = 3;
    const LONG: u16 = 4;
    // Planes of one bit a pixel, all in the same place: a file of 135 KB, and a milliard samples.
    let planes = |samples: u16| {
        let tiff = Tiff::new((16_384, 1), 1, samples, &[0x5A; 2048]);
        let tiff = tiff.with(258, SHORT, &[1]).with(284, SHORT, &[2]);
        let tiff = tiff.with(273, SHORT, &vec![8; samples.into()]);
        Tiff { lengths: None, ..tiff }.write()
    };
    let tile = Tiff::new((300, 1), 1, 1, &[]).with(258, SHORT, &[32]).with(339, SHORT, &[3]);
    let tile = tile.with(317, SHORT, &[3]).with(322, LONG, &[1 << 26]).with(323, LONG, &[1]);
    let tile = tile.compressed(8, vec![zlib(&[0; 1 << 20])]);
    let tile = Tiff { places: 324, lengths: Some(325), ..tile }.write();
    // CCITT Group 4: "three pixels before the end", again and again, which no row ends with.
    let runs: Vec<u8> = [0x04, 0x08, 0x10, 0x20, 0x40, 0x81, 0x02].repeat(2 << 20);
    let runs = Tiff::new((300, 300), 0, 1, &[]).with(258, SHORT, &[1]).compressed(4, vec![runs]);
    [
        ("TIFF, 65,535 planes in one place", planes(u16::MAX), Answer::NotAnImage),
        ("TIFF, 33 planes in one place", planes(33), Answer::Variant),
        ("TIFF, a tile of 2²⁶ floats for 300 pixels", tile, Answer::NotAnImage),
        ("TIFF, a row of 14 MB of runs", runs.write(), Answer::Corrupt),
    ]
    .map(|(name, bytes, answer)| Weapon { name, bytes, answer, memory_mib: HEADER_MIB })
    .into()
}

/// Files that a browser would run.
fn no_pictures() -> Vec<Weapon> {
    [
        (
            "SVG",
            &b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><script>alert(1)</script></svg>"
                [..],
        ),
        (
            "SVG after a declaration",
            b"<?xml version='1.0'?><!DOCTYPE svg><svg xmlns='http://www.w3.org/2000/svg'/>",
        ),
        ("HTML", b"<!DOCTYPE html><script>alert(1)</script>"),
        ("HTML that begins like a bitmap", b"BM<html><script>alert(1)</script></html>           "),
        ("HTML that begins like a picture of no known version", b"GIF88a<script>alert(1)</script>"),
        ("PDF", b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n1 0 obj"),
    ]
    .map(|(name, bytes)| Weapon {
        name,
        bytes: bytes.to_vec(),
        answer: Answer::NotAnImage,
        memory_mib: HEADER_MIB,
    })
    .into()
}

/// The beginning of a PNG: its header, and nothing of its data.
fn png_claiming(width: u32, height: u32, depth: u8, color: u8) -> Vec<u8> {
    let header =
        [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, color, 0, 0, 0]].concat();
    [b"\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR", &header[..], &[0; 4]].concat()
}

/// A grey progressive JPEG of `count` scans, all legal: the DC, then each AC coefficient but for its
/// lowest bit, then those bits. No coefficient but the first DC is other than 0.
pub(crate) fn scans(width: u16, height: u16, count: u8) -> Vec<u8> {
    let mut bytes = flat_jpeg(8, 8, &[77], None);
    let frame = bytes.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    bytes[frame + 1] = 0xC2;
    let ([h1, h0], [w1, w0]) = (height.to_be_bytes(), width.to_be_bytes());
    bytes[frame + 5..frame + 9].copy_from_slice(&[h1, h0, w1, w0]);
    let scan = bytes.windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap();
    bytes.truncate(scan);
    let blocks = usize::from(width.div_ceil(8)) * usize::from(height.div_ceil(8));
    let mut scan = |spectrum: [u8; 2], bits: u8, data: &[u8]| {
        bytes.extend([0xFF, 0xDA, 0, 8, 1, 1, 0, spectrum[0], spectrum[1], bits]);
        bytes.extend(data);
    };
    let first = format!("1001{:09b}", 8 * (77 - 128) + 511);
    scan([0, 0], 0x00, &entropy_coded(&(first + &"0000".repeat(blocks - 1))));
    // One bit a block: "end of block".
    let nothing = entropy_coded(&"0".repeat(blocks));
    for number in 0..count - 1 {
        let coefficient = number % 63 + 1;
        let bits = if number < 63 { 0x01 } else { 0x10 };
        scan([coefficient, coefficient], bits, &nothing);
    }
    bytes.extend([0xFF, 0xD9]);
    bytes
}
