//! Tests files that end early or are damaged. The existing part is shown, and the rest is transparent.

use super::*;
use crate::pipeline::spare::NoSpare;

const SIDE: u32 = 300;

fn photo_png() -> Vec<u8> {
    png(SIDE, SIDE, ColorType::Rgb, BitDepth::Eight, &photo(SIDE, SIDE), |_| {})
}

/// The opaque rows of a 200-pixel variant, and their difference from `good`.
fn compare(bytes: &[u8], good: &Seen) -> (Vec<u32>, u8) {
    let seen = seen(bytes, 200, Fit::Cover);
    assert_eq!((seen.width, seen.height), (200, 200));
    let opaque = |y: &u32| (0..200).all(|x| seen.at(x, *y)[3] == 255);
    let empty = |y: u32| (0..200).all(|x| seen.at(x, y)[3] == 0);
    let rows: Vec<_> = (0..200).filter(opaque).collect();
    let between = (0..200).filter(|y| !rows.contains(y) && !empty(*y)).count();
    assert!(between <= 1, "{between} rows are neither there nor missing");
    // The last row that arrived has a neighbour that did not.
    let inner = rows.iter().filter(|y| rows.contains(&(*y + 4)) || rows.len() == 200);
    let off = inner.flat_map(|y| (0..200).map(move |x| (x, *y))).map(|(x, y)| {
        let pairs = seen.at(x, y).into_iter().zip(good.at(x, y));
        pairs.map(|(is, want)| is.abs_diff(want)).max().unwrap()
    });
    let off = off.max().unwrap_or(0);
    (rows, off)
}

#[test]
fn a_png_without_its_end_is_whole() {
    let whole = photo_png();
    let good = seen(&whole, 200, Fit::Cover);
    // The tag, the whole chunk, and the checksum of the data before it.
    for cut in [8, 12, 14] {
        let (rows, off) = compare(&whole[..whole.len() - cut], &good);
        assert_eq!((rows.len(), off), (200, 0), "{cut} bytes are missing");
    }
}

#[test]
fn a_cut_png_shows_the_rows_that_came() {
    let whole = photo_png();
    let good = seen(&whole, 200, Fit::Cover);
    for percent in [20, 50, 80] {
        let (rows, off) = compare(&whole[..whole.len() * percent / 100], &good);
        let expected = 2 * percent;
        assert!(rows.len().abs_diff(expected) < 12, "{percent} %: {rows:?}");
        assert!(rows.iter().copied().eq(0..u32::try_from(rows.len()).unwrap()), "{rows:?}");
        assert!(off < 60, "{percent} %: {off}");
    }
    let headers = &whole[..60];
    assert_eq!(error(headers).kind(), ErrorKind::Corrupt, "not a row came");
}

#[test]
fn a_damaged_png_shows_the_rows_before_the_damage() {
    let whole = photo_png();
    let good = seen(&whole, 200, Fit::Cover);
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    for byte in &mut damaged[middle..middle + 200] {
        *byte = !*byte;
    }
    let (rows, _) = compare(&damaged, &good);
    assert!((20..200).contains(&rows.len()) && rows[0] == 0, "{rows:?}");

    // A wrong checksum of the data alone: all of it was there.
    let mut checksum = whole.clone();
    let end = whole.len() - 12;
    checksum[end - 1] ^= 0x55;
    assert_eq!(compare(&checksum, &good), ((0..200).collect(), 0));
}

#[test]
fn a_cut_interlaced_png_shows_coarse_pixels() {
    let whole = interlaced_png(SIDE, SIDE, &quarters(SIDE, SIDE, DISPLAYED));
    assert_quarters(&seen(&whole, 200, Fit::Cover), DISPLAYED, "whole");
    // The first pass is a 64th of all.
    for percent in [2, 10, 50, 90] {
        let cut = &whole[..whole.len() * percent / 100];
        assert_quarters(&seen(cut, 200, Fit::Cover), DISPLAYED, &format!("{percent} %"));
    }
    let rows = compare(&whole[..whole.len() / 128], &seen(&whole, 200, Fit::Cover)).0;
    assert!((70..130).contains(&rows.len()), "half of the first pass: {rows:?}");
}

#[test]
fn a_cut_gif_shows_the_rows_that_came() {
    let whole = encoded(SIDE, SIDE, &quarters(SIDE, SIDE, DISPLAYED), ImageFormat::Gif);
    for cut in [1, 5] {
        let bytes = &whole[..whole.len() - cut];
        assert_quarters(&seen(bytes, 200, Fit::Cover), DISPLAYED, &format!("{cut} bytes"));
    }
    let half = seen(&whole[..whole.len() * 6 / 10], 200, Fit::Cover);
    assert!(close(&half.at(50, 20), &[RED[0], RED[1], RED[2], 255]), "{:?}", half.at(50, 20));
    assert_eq!(half.at(50, 190)[3], 0);
    assert_eq!(error(&whole[..30]).kind(), ErrorKind::Corrupt, "not a row came");
}

/// A GIF with one interlaced frame, with codes of nine bits that are never compressed.
fn interlaced_gif(side: u16, color: impl Fn(u16) -> u8, screen: u16) -> Vec<u8> {
    let mut bytes = b"GIF89a".to_vec();
    bytes.extend(screen.to_le_bytes().repeat(2));
    // 256 colours, shades of grey.
    bytes.extend([0xF7, 0, 0]);
    bytes.extend((0..=255u8).flat_map(|grey| [grey; 3]));
    bytes.extend(b"\x21\xFE\x02hi\0\x2C\0\0\0\0");
    bytes.extend(side.to_le_bytes().repeat(2));
    bytes.extend([0x40, 8]);
    let rows = [(0, 8), (4, 8), (2, 4), (1, 2)];
    let rows = rows.into_iter().flat_map(|(first, step)| (first..side).step_by(step));
    let mut bits = String::new();
    for (index, y) in rows.flat_map(|y| vec![y; side.into()]).enumerate() {
        // The table starts anew before codes would need ten bits. Bits come lowest first.
        let codes =
            if index % 200 == 0 { vec![256, u16::from(color(y))] } else { vec![color(y).into()] };
        for code in codes {
            bits.extend((0..9).map(|bit| if code >> bit & 1 == 1 { '1' } else { '0' }));
        }
    }
    bits.push_str("100000001");
    let data: Vec<u8> = bits
        .as_bytes()
        .chunks(8)
        .map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | (bit - b'0')))
        .collect();
    for block in data.chunks(255) {
        bytes.push(u8::try_from(block.len()).unwrap());
        bytes.extend(block);
    }
    bytes.extend([0, 0x3B]);
    bytes
}

#[test]
fn a_cut_interlaced_gif_fills_its_gaps() {
    let shade = |y: u16| u8::try_from(y * 200 / 304 + 20).unwrap();
    let whole = interlaced_gif(304, shade, 304);
    let good = seen(&whole, 200, Fit::Cover);
    assert!(close(&good.at(100, 100), &[120, 120, 120, 255]), "{:?}", good.at(100, 100));
    for percent in [20, 40, 70] {
        let cut = seen(&whole[..whole.len() * percent / 100], 200, Fit::Cover);
        for y in [20, 100, 180] {
            assert!(close(&cut.at(100, y), &good.at(100, y)), "{percent} %: {:?}", cut.at(100, y));
        }
    }
}

#[test]
fn a_gif_whose_screen_has_no_size_is_as_large_as_its_frame() {
    let bytes = interlaced_gif(304, |_| 90, 0);
    assert_eq!(probed(&bytes), Some(Dimensions { width: 304, height: 304 }));
    let middle = seen(&bytes, 200, Fit::Cover).at(100, 100);
    assert!(close(&middle, &[90, 90, 90, 255]), "{middle:?}");
}

#[test]
fn a_frame_that_says_it_is_huge_is_refused() {
    let mut bytes = interlaced_gif(304, |_| 90, 304);
    let descriptor = 13 + 3 * 256 + 6;
    assert_eq!(bytes[descriptor], 0x2C);
    bytes[descriptor + 5..][..4].fill(0xFF);
    assert_eq!(error(&bytes).kind(), ErrorKind::TooLarge);
}

/// Puts an extension behind the colours of such a GIF, with `blocks` blocks of 255 bytes of XMP.
fn with_xmp(gif: &[u8], blocks: usize) -> Vec<u8> {
    let (head, rest) = gif.split_at(13 + 3 * 256);
    let mut bytes = [head, b"\x21\xFF\x0BXMP DataXMP"].concat();
    for _ in 0..blocks {
        bytes.push(255);
        bytes.extend([b'x'; 255]);
    }
    bytes.push(0);
    bytes.extend(rest);
    bytes
}

#[test]
fn what_a_gif_says_of_itself_takes_no_more_memory_than_programs_write() {
    let plain = interlaced_gif(304, |_| 90, 304);
    let middle = seen(&with_xmp(&plain, 4_000), 200, Fit::Cover).at(100, 100);
    assert!(close(&middle, &[90, 90, 90, 255]), "{middle:?}");
    let refused = error(&with_xmp(&plain, 40_000));
    assert_eq!(refused.kind(), ErrorKind::TooLarge, "{refused}");
}

#[test]
fn a_gif_with_a_block_of_no_known_kind_is_shown() {
    let plain = interlaced_gif(304, |_| 90, 304);
    let (head, rest) = plain.split_at(13 + 3 * 256);
    let bytes = [head, b"\x21\x99\x01\x00\x00", rest].concat();
    let middle = seen(&bytes, 200, Fit::Cover).at(100, 100);
    assert!(close(&middle, &[90, 90, 90, 255]), "{middle:?}");
}

#[test]
fn a_cut_bmp_shows_the_rows_that_came() {
    let rgb = quarters(SIDE, SIDE, DISPLAYED);
    let from_below = encoded(SIDE, SIDE, &rgb, ImageFormat::Bmp);
    let cut = seen(&from_below[..from_below.len() * 6 / 10], 200, Fit::Cover);
    assert!(close(&cut.at(50, 190), &[BLUE[0], BLUE[1], BLUE[2], 255]), "{:?}", cut.at(50, 190));
    assert_eq!((cut.at(50, 20)[3], cut.at(50, 70)[3], cut.at(50, 90)[3]), (0, 0, 255));

    let bgr: Vec<u8> = rgb.chunks(3).flat_map(|p| [p[2], p[1], p[0]]).collect();
    let from_above = bmp(SIDE, -300, 24, 0, &[], &bgr);
    let cut = seen(&from_above[..from_above.len() * 6 / 10], 200, Fit::Cover);
    assert!(close(&cut.at(50, 20), &[RED[0], RED[1], RED[2], 255]), "{:?}", cut.at(50, 20));
    assert_eq!((cut.at(50, 110)[3], cut.at(50, 130)[3], cut.at(50, 190)[3]), (255, 0, 0));
    assert_eq!(error(&from_above[..200]).kind(), ErrorKind::Corrupt);
}

#[test]
fn a_bmp_with_a_palette_that_is_too_large_is_read() {
    let palette = [[0, 0, 0, 0], [30, 30, 220, 0]].concat().repeat(8);
    let mut bytes = bmp(304, 300, 4, 0, &palette, &vec![0x11; 152 * 300]);
    bytes[46..50].copy_from_slice(&300u32.to_le_bytes());
    let middle = seen(&bytes, 200, Fit::Cover).at(100, 100);
    assert!(close(&middle, &[RED[0], RED[1], RED[2], 255]), "{middle:?}");
}

#[test]
fn a_part_of_which_nothing_came_is_corrupt() {
    let rgb = quarters(300, 900, DISPLAYED);
    let bgr: Vec<u8> = rgb.chunks(3).flat_map(|p| [p[2], p[1], p[0]]).collect();
    let bytes = bmp(300, -900, 24, 0, &[], &bgr);
    // The middle third is what `cover` shows.
    let cut = &bytes[..bytes.len() / 4];
    assert_eq!(error(cut).kind(), ErrorKind::Corrupt);
    assert!(make(cut, 200, Fit::Inside).is_ok());
}

#[test]
fn what_came_is_turned_upright() {
    let colors = STORED_QUARTERS[5].map(|quarter| DISPLAYED[quarter]);
    let plain = png(200, 300, ColorType::Rgb, BitDepth::Eight, &photo(200, 300), |_| {});
    let turned = with_chunk(&plain, *b"eXIf", &exif(6)[6..]);
    let cut = seen(&turned[..turned.len() / 2], 200, Fit::Inside);
    // The first rows are at the right.
    assert_eq!((cut.width, cut.height), (200, 133));
    assert_eq!((cut.at(190, 66)[3], cut.at(10, 66)[3]), (255, 0));
    assert_eq!(colors.len(), 4);
}

#[test]
fn further_sizes_of_a_cut_picture_show_as_much() {
    let whole = png(900, 900, ColorType::Rgb, BitDepth::Eight, &photo(900, 900), |_| {});
    let made = render(&file(&whole[..whole.len() / 2]), &every_request(), &unhurried()).unwrap();
    for (request, variant) in every_request().into_iter().zip(made) {
        let Rendered::WebP(bytes) = variant else { continue };
        let seen = Seen::of(&bytes);
        let alpha = |share: u32| seen.at(seen.width / 2, seen.height * share / 100)[3];
        assert_eq!((alpha(40), alpha(60)), (255, 0), "{request:?}");
    }
}

#[test]
fn a_png_of_colours_without_a_palette_is_corrupt_as_in_browsers() {
    let indices = vec![1; (SIDE * SIDE) as usize];
    let whole = png(SIDE, SIDE, ColorType::Indexed, BitDepth::Eight, &indices, |info| {
        info.palette = Some(vec![0, 0, 0, 200, 100, 50].into());
    });
    assert!(close(&seen(&whole, 200, Fit::Cover).at(9, 9), &[200, 100, 50, 255]));

    let at = whole.windows(4).position(|name| name == b"PLTE").unwrap() - 4;
    let without = [&whole[..at], &whole[at + 18..]].concat();
    // A chunk of no bytes, with the checksum of its name.
    let empty = [&whole[..at], b"\0\0\0\0PLTE\x4B\xA8\x89\x55", &whole[at + 18..]].concat();
    // Colours have three bytes each.
    let broken = [4, 5].map(|length| {
        let chunk = [b"PLTE", &[7; 5][..length]].concat();
        let sum = crc32(&chunk).to_be_bytes();
        let size = u32::try_from(length).unwrap().to_be_bytes();
        [&whole[..at], &size, &chunk, &sum, &whole[at + 18..]].concat()
    });
    for bytes in [without, empty].iter().chain(&broken) {
        assert_eq!(error(bytes).kind(), ErrorKind::Corrupt);
    }
}

fn lossy_webp() -> Vec<u8> {
    webp::Encoder::from_rgb(&photo(SIDE, SIDE), SIDE, SIDE).encode(90.0).to_vec()
}

#[test]
fn what_came_of_a_cut_lossy_webp_is_shown() {
    let whole = lossy_webp();
    let cut = seen(&whole[..whole.len() * 6 / 10], 200, Fit::Inside);
    let expected = seen(&whole, 200, Fit::Inside);
    assert!(close(&cut.at(100, 30), &expected.at(100, 30)), "the first rows");
    assert_eq!(cut.at(100, 199)[3], 0, "the last row");
    assert_eq!(error(&whole[..60]).kind(), ErrorKind::Corrupt);
}

#[test]
fn what_came_of_a_cut_lossless_webp_is_shown() {
    let whole = webp(SIDE, SIDE, &photo(SIDE, SIDE), &[]);
    let good = seen(&whole, 200, Fit::Cover);
    for percent in [40, 70] {
        let (rows, off) = compare(&whole[..whole.len() * percent / 100], &good);
        assert!(rows.len().abs_diff(2 * percent) < 40, "{percent} %: {rows:?}");
        assert!(rows.iter().copied().eq(0..u32::try_from(rows.len()).unwrap()), "{rows:?}");
        assert!(off < 60, "{percent} %: {off}");
    }
    assert_eq!(error(&whole[..60]).kind(), ErrorKind::Corrupt, "not a row came");
}

#[test]
fn a_read_that_fails_is_never_a_cut_picture() {
    let rgb = photo(SIDE, SIDE);
    for (what, bytes) in [
        ("JPEG", jpeg(SIDE, SIDE, &rgb)),
        ("PNG", photo_png()),
        ("GIF", encoded(SIDE, SIDE, &rgb, ImageFormat::Gif)),
        ("BMP", encoded(SIDE, SIDE, &rgb, ImageFormat::Bmp)),
        ("WebP", webp(SIDE, SIDE, &rgb, &[])),
        ("lossy WebP", lossy_webp()),
        ("TIFF", tiff(SIDE, SIDE, &rgb, 1)),
    ] {
        let file = file(&bytes);
        let image = ImageFile::new(&file, Deadline::NONE).unwrap();
        let header = header::read(&image).unwrap();
        let geometry = assess(
            &file,
            &[Wanted::new(200, Fit::Cover)],
            Small::PassesThrough,
            &unhurried().limits,
        )
        .unwrap()
        .geometries();
        // The file was as long as it should be when it was opened.
        file.set_len(bytes.len() as u64 / 2).unwrap();
        let error = Retained::decode(&image, &header, &geometry, &NoSpare).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{what}: {error:?}");
    }
}

/// Files for the sheet that a person checks.
pub(super) fn cases() -> Vec<(&'static str, Vec<u8>)> {
    let rgb = photo(SIDE, SIDE);
    let png = photo_png();
    let interlaced = interlaced_png(SIDE, SIDE, &rgb);
    let gif = encoded(SIDE, SIDE, &rgb, ImageFormat::Gif);
    let grey = interlaced_gif(304, |y| u8::try_from(y * 200 / 304 + 20).unwrap(), 304);
    let bmp = encoded(SIDE, SIDE, &rgb, ImageFormat::Bmp);
    let part = |bytes: &[u8], percent: usize| bytes[..bytes.len() * percent / 100].to_vec();
    let mut damaged = png.clone();
    damaged[png.len() / 2] ^= 0xFF;
    vec![
        ("PNG, sound", png.clone()),
        ("PNG without its end", png[..png.len() - 12].to_vec()),
        ("PNG, 60 %", part(&png, 60)),
        ("PNG, damaged in the middle", damaged),
        ("interlaced PNG, 3 %", part(&interlaced, 3)),
        ("interlaced PNG, 40 %", part(&interlaced, 40)),
        ("GIF, 60 %", part(&gif, 60)),
        ("interlaced GIF, 20 %", part(&grey, 20)),
        ("BMP, 60 %", part(&bmp, 60)),
        ("lossy WebP, 60 %", part(&lossy_webp(), 60)),
        ("lossless WebP, 60 %", part(&webp(SIDE, SIDE, &rgb, &[]), 60)),
    ]
}
