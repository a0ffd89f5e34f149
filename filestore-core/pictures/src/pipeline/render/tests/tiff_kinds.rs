//! Tests TIFFs with every kind of sample, each written in this module.

use std::error::Error as _;

use std::io::Cursor;

use super::*;

const SIDE: u32 = 300;

/// A TIFF with one strip, and the tags that describe its samples.
#[derive(Clone)]
struct Kind {
    photometric: u16,
    bits: u16,
    samples: u16,
    /// The tag ExtraSamples. Empty for no tag.
    extra: Vec<u16>,
    predictor: u16,
    planar: u16,
    profile: Vec<u8>,
    palette: Vec<u16>,
    ink_set: Option<u16>,
    compression: u16,
    big_endian: bool,
    /// True if the tag StripByteCounts is 0.
    no_length: bool,
}

fn kind(photometric: u16, samples: u16) -> Kind {
    Kind {
        photometric,
        bits: 8,
        samples,
        extra: Vec::new(),
        predictor: 1,
        planar: 1,
        profile: Vec::new(),
        palette: Vec::new(),
        ink_set: None,
        compression: 1,
        big_endian: false,
        no_length: false,
    }
}

impl Kind {
    fn write(&self, data: &[u8]) -> Vec<u8> {
        let n16 = |v: u16| if self.big_endian { v.to_be_bytes() } else { v.to_le_bytes() };
        let n32 = |v: u32| if self.big_endian { v.to_be_bytes() } else { v.to_le_bytes() };
        let shorts = |values: &[u16]| values.iter().flat_map(|v| n16(*v)).collect::<Vec<u8>>();
        let planes = if self.planar == 2 { self.samples } else { 1 };
        let plane = u32::try_from(data.len()).unwrap() / u32::from(planes);
        let mut tags: Vec<(u16, u16, u32, Vec<u8>)> = vec![
            (256, 4, 1, n32(SIDE).to_vec()),
            (257, 4, 1, n32(SIDE).to_vec()),
            (258, 3, self.samples.into(), shorts(&vec![self.bits; self.samples.into()])),
            (259, 3, 1, shorts(&[self.compression])),
            (262, 3, 1, shorts(&[self.photometric])),
            (
                273,
                4,
                planes.into(),
                (0..planes).flat_map(|at| n32(8 + u32::from(at) * plane)).collect(),
            ),
            (277, 3, 1, shorts(&[self.samples])),
            (278, 4, 1, n32(SIDE).to_vec()),
            (
                279,
                4,
                planes.into(),
                n32(if self.no_length { 0 } else { plane }).repeat(planes.into()),
            ),
            (284, 3, 1, shorts(&[self.planar])),
            (317, 3, 1, shorts(&[self.predictor])),
        ];
        let mut some = |tag, values: &[u16]| {
            if !values.is_empty() {
                tags.push((tag, 3, u32::try_from(values.len()).unwrap(), shorts(values)));
            }
        };
        some(320, &self.palette);
        some(332, self.ink_set.as_slice());
        some(338, &self.extra);
        if !self.profile.is_empty() {
            let length = u32::try_from(self.profile.len()).unwrap();
            tags.push((34_675, 7, length, self.profile.clone()));
        }
        let mut bytes = if self.big_endian { b"MM\0*".to_vec() } else { b"II*\0".to_vec() };
        let directory_at = 8 + data.len().next_multiple_of(2);
        bytes.extend(n32(u32::try_from(directory_at).unwrap()));
        bytes.extend(data);
        bytes.resize(directory_at, 0);
        bytes.extend(n16(u16::try_from(tags.len()).unwrap()));
        let mut far = Vec::new();
        let far_at = directory_at + 2 + 12 * tags.len() + 4;
        for (tag, kind, count, value) in tags {
            bytes.extend(n16(tag));
            bytes.extend(n16(kind));
            bytes.extend(n32(count));
            if value.len() <= 4 {
                bytes.extend(value.iter().chain([0; 4].iter()).take(4));
            } else {
                bytes.extend(n32(u32::try_from(far_at + far.len()).unwrap()));
                far.extend(value);
            }
        }
        bytes.extend([0; 4]);
        bytes.extend(far);
        bytes
    }
}

fn middle(bytes: &[u8]) -> [u8; 4] {
    seen(bytes, 200, Fit::Cover).at(100, 100)
}

fn flat(pixel: &[u8]) -> Vec<u8> {
    pixel.repeat((SIDE * SIDE) as usize)
}

/// Rows for predictor 2: each sample minus the same sample of the previous pixel.
fn predicted(data: &[u8], samples: usize) -> Vec<u8> {
    let row = SIDE as usize * samples;
    let differences = |row: &[u8]| {
        (0..row.len())
            .map(|at| row[at].wrapping_sub(if at < samples { 0 } else { row[at - samples] }))
            .collect::<Vec<_>>()
    };
    data.chunks(row).flat_map(differences).collect()
}

#[test]
fn samples_that_the_colours_do_not_need_are_left_out() {
    let rgb = quarters(SIDE, SIDE, DISPLAYED);
    for (extra, filler) in [(vec![0], vec![7]), (vec![0, 0], vec![7, 200])] {
        let samples = 3 + extra.len();
        let rows: Vec<u8> = rgb.chunks(3).flat_map(|p| [p, &filler].concat()).collect();
        for predictor in [1, 2] {
            let data = if predictor == 2 { predicted(&rows, samples) } else { rows.clone() };
            let samples = u16::try_from(samples).unwrap();
            let bytes = Kind { extra: extra.clone(), predictor, ..kind(2, samples) }.write(&data);
            let shown = seen(&bytes, 200, Fit::Cover);
            assert_quarters(&shown, DISPLAYED, &format!("{extra:?}, predictor {predictor}"));
        }
    }
}

#[test]
fn associated_alpha_is_not_multiplied_twice() {
    // Half transparent (200, 100, 50).
    let associated = flat(&[100, 50, 25, 128]);
    let bytes = Kind { extra: vec![1], ..kind(2, 4) }.write(&associated);
    assert!(close(&middle(&bytes), &[200, 100, 50, 128]), "{:?}", middle(&bytes));
    let grey = Kind { extra: vec![1], ..kind(1, 2) }.write(&flat(&[60, 128]));
    assert!(close(&middle(&grey), &[120, 120, 120, 128]), "{:?}", middle(&grey));

    let straight = flat(&[200, 100, 50, 128]);
    for extra in [vec![2], vec![]] {
        let bytes = Kind { extra, ..kind(2, 4) }.write(&straight);
        assert!(close(&middle(&bytes), &[200, 100, 50, 128]), "{:?}", middle(&bytes));
    }
}

#[test]
fn four_inks_are_converted_with_their_profile() {
    let profile = include_bytes!("../../color/tests/littlecms/press.icc").to_vec();
    let inks = [230, 55, 100, 0];
    let tiff = Kind { profile: profile.clone(), ..kind(5, 4) }.write(&flat(&inks));
    // The same inks in a JPEG, where they are inverted.
    let inverted = inks.map(|ink| 255 - ink);
    let segment = [&b"ICC_PROFILE\0\x01\x01"[..], &profile].concat();
    let expected = middle(&with_segment(&flat_jpeg(300, 300, &inverted, Some(0)), 0xE2, &segment));
    let plain = middle(&kind(5, 4).write(&flat(&inks)));
    assert!(close(&middle(&tiff), &expected), "{:?}, not {expected:?}", middle(&tiff));
    assert!(!close(&plain, &expected), "the profile changes nothing: {plain:?}");
    assert!(close(&plain, &[25, 200, 155, 255]), "{plain:?}");

    let deep: Vec<u8> = inks.iter().flat_map(|ink| [*ink; 2]).collect();
    let deep = Kind { bits: 16, ..kind(5, 4) }.write(&flat(&deep));
    assert!(close(&middle(&deep), &plain), "16 bits: {:?}", middle(&deep));
    let more = Kind { extra: vec![0], ..kind(5, 5) }.write(&flat(&[230, 55, 100, 0, 99]));
    assert!(close(&middle(&more), &plain), "a fifth sample: {:?}", middle(&more));
}

#[test]
fn every_depth_and_order_is_read() {
    let each = |pixel: [u8; 3]| pixel.map(|v| v.to_string()).join(" ");
    for big_endian in [false, true] {
        let of = |kind: Kind, data: &[u8]| Kind { big_endian, ..kind }.write(data);
        let deep: Vec<u8> = GREEN.iter().flat_map(|v| [*v; 2]).collect();
        let planes: Vec<u8> = GREEN.iter().flat_map(|v| vec![*v; (SIDE * SIDE) as usize]).collect();
        let palette: Vec<u16> = (0..3)
            .flat_map(|c| {
                (0..256).map(move |at| if at == 9 { u16::from(GREEN[c]) * 257 } else { 0 })
            })
            .collect();
        let small: Vec<u16> = (0..3)
            .flat_map(|c| {
                (0..16).map(move |at| if at == 9 { u16::from(GREEN[c]) * 257 } else { 0 })
            })
            .collect();
        for (what, bytes, expected) in [
            ("RGB", of(kind(2, 3), &flat(&GREEN)), GREEN),
            ("RGB, 16 bits", of(Kind { bits: 16, ..kind(2, 3) }, &flat(&deep)), GREEN),
            ("RGB, planar", of(Kind { planar: 2, ..kind(2, 3) }, &planes), GREEN),
            ("grey", of(kind(1, 1), &flat(&[90])), [90; 3]),
            ("white is 0", of(kind(0, 1), &flat(&[90])), [165; 3]),
            ("4 bits", of(Kind { bits: 4, ..kind(1, 1) }, &vec![0x55; 150 * 300]), [85; 3]),
            ("1 bit, white is 0", of(Kind { bits: 1, ..kind(0, 1) }, &vec![0; 38 * 300]), [255; 3]),
            ("palette", of(Kind { palette, ..kind(3, 1) }, &flat(&[9])), GREEN),
            (
                "palette of 4 bits",
                of(Kind { bits: 4, palette: small, ..kind(3, 1) }, &vec![0x99; 150 * 300]),
                GREEN,
            ),
        ] {
            let seen = middle(&bytes);
            assert!(close(&seen[..3], &expected), "{what}: {seen:?}, not {}", each(expected));
            assert_eq!(seen[3], 255, "{what}");
        }
    }
}

#[test]
fn an_unsupported_kind_is_not_called_corrupt() {
    for (what, bytes) in [
        ("Lab", kind(8, 3).write(&flat(&[90, 0, 0]))),
        ("a photometric that nobody knows", kind(999, 3).write(&flat(&[90, 0, 0]))),
        ("inks without names", Kind { ink_set: Some(2), ..kind(5, 4) }.write(&flat(&[9; 4]))),
        ("CCITT G3", Kind { compression: 3, bits: 1, ..kind(0, 1) }.write(&[0; 99])),
        ("JPEG of the old kind", Kind { compression: 6, ..kind(6, 3) }.write(&flat(&[9; 3]))),
        ("Zstandard", Kind { compression: 50_000, ..kind(2, 3) }.write(&[0; 99])),
        ("LZMA", Kind { compression: 34_925, ..kind(2, 3) }.write(&[0; 99])),
        ("WebP", Kind { compression: 50_001, ..kind(2, 3) }.write(&[0; 99])),
        ("12 bits", Kind { bits: 12, ..kind(1, 1) }.write(&vec![0; 450 * 300])),
    ] {
        let error = error(&bytes);
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Unsupported, "this kind of TIFF image is not supported"),
            "{what}: {error:?}"
        );
    }
    let cut = kind(2, 3).write(&[9; 99]);
    assert_eq!(error(&cut).kind(), ErrorKind::Corrupt);
}

/// Files for the sheet that a person checks.
pub(super) fn cases() -> Vec<(&'static str, Vec<u8>)> {
    let rgb = photo(SIDE, SIDE);
    let each = |pixel: &dyn Fn(&[u8]) -> Vec<u8>| rgb.chunks(3).flat_map(pixel).collect::<Vec<_>>();
    let filled = each(&|p| vec![p[0], p[1], p[2], 7]);
    let half = each(&|p| vec![p[0] / 2, p[1] / 2, p[2] / 2, 128]);
    let inks = each(&|p| vec![255 - p[0], 255 - p[1], 255 - p[2], 0]);
    let profile = include_bytes!("../../color/tests/littlecms/press.icc").to_vec();
    let of = |kind: Kind, data: &[u8]| kind.write(data);
    vec![
        ("TIFF, RGB", of(kind(2, 3), &rgb)),
        (
            "TIFF, an extra sample and a predictor",
            of(Kind { extra: vec![0], predictor: 2, ..kind(2, 4) }, &predicted(&filled, 4)),
        ),
        ("TIFF, associated alpha", of(Kind { extra: vec![1], ..kind(2, 4) }, &half)),
        ("TIFF, inks", of(kind(5, 4), &inks)),
        ("TIFF, inks with a profile", of(Kind { profile, ..kind(5, 4) }, &inks)),
        ("TIFF, white is 0", of(kind(0, 1), &each(&|p| vec![p[0]]))),
    ]
}

#[test]
fn a_jpeg_within_is_read_and_may_not_be_larger_than_the_picture() {
    let within =
        |jpeg: &[u8], photometric| Kind { compression: 7, ..kind(photometric, 3) }.write(jpeg);
    let plain = jpeg(SIDE, SIDE, &quarters(SIDE, SIDE, DISPLAYED));
    let shown = seen(&within(&plain, 6), 200, Fit::Cover);
    assert_quarters(&shown, DISPLAYED, "YCbCr");
    let mut bomb = plain.clone();
    let frame = bomb.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    bomb[frame + 5..frame + 9].copy_from_slice(&[0x3F; 4]);
    let error = error(&within(&bomb, 6));
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    assert!(cause.contains("larger than the picture"), "{error}: {cause}");
}

/// A TIFF with strips of 20 rows, and its directory before the strips.
fn in_strips(rgb: &[u8]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let mut encoder = tiff::encoder::TiffEncoder::new(&mut bytes).unwrap();
    let mut image = encoder.new_image::<tiff::encoder::colortype::RGB8>(SIDE, SIDE).unwrap();
    image.rows_per_strip(20).unwrap();
    image.write_data(rgb).unwrap();
    directory_first(&bytes.into_inner())
}

/// Moves the directory and its values before the strips, like programs that know all lengths in advance.
fn directory_first(little: &[u8]) -> Vec<u8> {
    let n16 = |at: usize| usize::from(u16::from_le_bytes([little[at], little[at + 1]]));
    let n32 = |at: usize| u32::from_le_bytes(little[at..at + 4].try_into().unwrap());
    let at = n32(4) as usize;
    let entries: Vec<_> = (0..n16(at)).map(|index| at + 2 + 12 * index).collect();
    let size = |entry: usize| [0, 1, 1, 2, 4, 8][n16(entry + 2)] * n32(entry + 4) as usize;

    let far: usize = entries.iter().map(|entry| size(*entry)).filter(|size| *size > 4).sum();
    let begins = 8 + 2 + 12 * entries.len() + 4 + far;
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    bytes.extend(&little[at..at + 2]);
    let mut values = Vec::new();
    let values_at = 8 + 2 + 12 * entries.len() + 4;
    for entry in entries {
        let (tag, size) = (n16(entry), size(entry));
        let mut value = match size {
            0..=4 => little[entry + 8..entry + 12].to_vec(),
            _ => little[n32(entry + 8) as usize..][..size].to_vec(),
        };
        if tag == 273 {
            for offset in value.as_chunks_mut::<4>().0 {
                let moved = u32::from_le_bytes(*offset) + u32::try_from(begins).unwrap();
                *offset = moved.to_le_bytes();
            }
        }
        bytes.extend(&little[entry..entry + 8]);
        if size <= 4 {
            bytes.extend(value);
        } else {
            bytes.extend(u32::try_from(values_at + values.len()).unwrap().to_le_bytes());
            values.extend(value);
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(values);
    assert_eq!(bytes.len(), begins);
    bytes.extend(little);
    bytes
}

#[test]
fn the_strips_that_came_of_a_cut_tiff_are_shown() {
    let whole = in_strips(&quarters(SIDE, SIDE, DISPLAYED));
    assert_quarters(&seen(&whole, 200, Fit::Cover), DISPLAYED, "whole");

    let cut = seen(&whole[..whole.len() / 2], 200, Fit::Cover);
    assert!(close(&cut.at(40, 40)[..3], &DISPLAYED[0]), "{:?}", cut.at(40, 40));
    assert_eq!((cut.at(40, 40)[3], cut.at(40, 150)[3]), (255, 0));
    let directory_alone = &whole[..1000];
    assert_eq!(error(directory_alone).kind(), ErrorKind::Corrupt);
}

#[test]
fn a_strip_whose_length_is_not_filled_in_ends_with_the_file() {
    for big_endian in [false, true] {
        let plain = Kind { no_length: true, big_endian, ..kind(2, 3) };
        let shown = seen(&plain.write(&quarters(SIDE, SIDE, DISPLAYED)), 200, Fit::Cover);
        assert_quarters(&shown, DISPLAYED, "no compression");

        // CCITT G4 (T.6): each row as the one before is one bit, which makes all of them white.
        let fax = Kind { compression: 4, bits: 1, no_length: true, big_endian, ..kind(0, 1) };
        let seen = middle(&fax.write(&[0xFF; 38]));
        assert!(close(&seen, &[255; 4]), "G4: {seen:?}");
    }
}
