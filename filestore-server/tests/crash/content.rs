//! Contents that identify themselves: every 64 bytes name their tag and their place.

/// The number of one content; no two contents share a number.
pub(crate) type Tag = u64;

const LINE: usize = 64;

/// Makes the bytes of `tag`: 64 to about 150,000 of them, a number that depends on the tag as well.
pub(crate) fn of(tag: Tag) -> Vec<u8> {
    let spread = tag.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let length = LINE + usize::try_from(spread % 150_000).expect("a small number");
    let mut bytes = Vec::with_capacity(length + LINE);

    while bytes.len() < length {
        let line = format!("filestore crash test, tag {tag:012}, offset {:012}", bytes.len());
        bytes.extend_from_slice(format!("{line:<63}\n").as_bytes());
    }

    bytes.truncate(length);
    bytes
}

/// Finds the tag of `bytes`, if they are the tag's whole content and nothing else: no mix, no
/// truncation, no zeros.
pub(crate) fn identify(bytes: &[u8]) -> Option<Tag> {
    let first = std::str::from_utf8(bytes.get(..LINE)?).ok()?;
    let tag = first.split("tag ").nth(1)?.get(..12)?.parse().ok()?;
    (of(tag) == bytes).then_some(tag)
}

#[test]
fn a_content_is_identified_only_if_it_is_whole() {
    let (one, other) = (of(1), of(2));
    assert_eq!((identify(&one), identify(&other)), (Some(1), Some(2)));
    assert_eq!(identify(&one[..one.len() - 1]), None);
    assert_eq!(identify(&[&one[..LINE], &other[LINE..]].concat()), None);
    assert_eq!(identify(&vec![0; one.len()]), None);
}
