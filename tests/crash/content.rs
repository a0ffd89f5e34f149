//! Contents that identify themselves: every 64 bytes name their tag and their place.

use std::ops::Range;

/// The number of one content; no two contents share a number.
pub(crate) type Tag = u64;

const LINE: usize = 64;

/// The bytes of a picture before its pixels.
const HEADER: usize = 54;

/// The side of a picture, a bit more than that of the smallest variant.
const SIDE: u32 = 212;

/// Tells whether the content of `tag` is a picture, of which variants can be made.
pub(crate) fn is_picture(tag: Tag) -> bool {
    tag.is_multiple_of(8)
}

/// Makes the bytes of `tag`: 64 to about 150,000 of them, a number that depends on the tag as well. A
/// picture's pixels are such bytes too.
pub(crate) fn of(tag: Tag) -> Vec<u8> {
    let spread = tag.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let length = LINE + usize::try_from(spread % 150_000).expect("a small number");
    if !is_picture(tag) {
        return lines(tag, length);
    }

    let mut picture = header();
    picture.extend_from_slice(&lines(tag, 3 * (SIDE * SIDE) as usize));
    picture
}

fn lines(tag: Tag, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + LINE);
    while bytes.len() < length {
        let line = format!("filestore crash test, tag {tag:012}, offset {:012}", bytes.len());
        bytes.extend_from_slice(format!("{line:<63}\n").as_bytes());
    }

    bytes.truncate(length);
    bytes
}

/// Makes the header of a bitmap of 24 bits per pixel, whose rows need no padding.
fn header() -> Vec<u8> {
    let pixels = 3 * SIDE * SIDE;
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(b"BM");
    for number in [54 + pixels, 0, 54, 40, SIDE, SIDE] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    for number in [1_u16, 24] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    for number in [0, pixels, 2835, 2835, 0, 0_u32] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    header
}

/// Finds the tag of `bytes`, if they are the tag's whole content and nothing else: no mix, no
/// truncation, no zeros.
pub(crate) fn identify(bytes: &[u8]) -> Option<Tag> {
    let start = if bytes.starts_with(b"BM") { HEADER } else { 0 };
    let tag = tag_in(bytes, start..start + LINE)?;
    (of(tag) == bytes).then_some(tag)
}

fn tag_in(bytes: &[u8], line: Range<usize>) -> Option<Tag> {
    let first = std::str::from_utf8(bytes.get(line)?).ok()?;
    first.split("tag ").nth(1)?.get(..12)?.parse().ok()
}

/// Checks that only a whole content is identified: an oracle that takes anything proves nothing.
pub(crate) fn check_itself() {
    for (tag, another) in [(1, 2), (8, 16), (8, 1)] {
        let (one, other) = (of(tag), of(another));
        assert_eq!((identify(&one), identify(&other)), (Some(tag), Some(another)));
        assert_eq!(identify(&one[..one.len() - 1]), None);
        assert_eq!(identify(&[&one[..HEADER + LINE], &other[HEADER + LINE..]].concat()), None);
        assert_eq!(identify(&vec![0; one.len()]), None);
    }
}
