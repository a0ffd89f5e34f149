//! Byte ranges (RFC 9110 section 14).

use http::header::RANGE;
use http::{HeaderMap, HeaderValue};

use super::single;

/// A representation's bytes that a Range header selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRange {
    /// The whole representation (200). The request has no Range header, or the header must be ignored.
    Whole,
    /// The bytes `first..=last` (206). Both positions are within the representation.
    Part {
        /// The position of the first byte.
        first: u64,
        /// The position of the last byte.
        last: u64,
    },
    /// No existing bytes (416).
    Unsatisfiable,
}

impl ByteRange {
    /// Returns the range that a GET selects from a representation of `size` bytes. Use this call only for
    /// GET, and only if [`if_range_holds`](super::conditional::if_range_holds). Other methods have no ranges
    /// (14.2).
    pub fn of(headers: &HeaderMap, size: u64) -> Self {
        single(headers, RANGE).map_or(Self::Whole, |value| Self::parse(value, size))
    }

    /// Parses a Range header. An unknown unit, malformed text, and several ranges select the whole
    /// representation.
    pub fn parse(value: &str, size: u64) -> Self {
        let Some((unit, set)) = value.trim().split_once('=') else {
            return Self::Whole;
        };
        let mut ranges = set.split(',').map(str::trim).filter(|range| !range.is_empty());
        match (ranges.next(), ranges.next()) {
            (Some(only), None) if unit.eq_ignore_ascii_case("bytes") => {
                one(only, size).unwrap_or(Self::Whole)
            }
            _ => Self::Whole,
        }
    }

    /// Returns the `Content-Range` value for a part or for 416. `None` for the whole representation.
    pub fn content_range(self, size: u64) -> Option<HeaderValue> {
        let value = match self {
            Self::Whole => return None,
            Self::Part { first, last } => format!("bytes {first}-{last}/{size}"),
            Self::Unsatisfiable => format!("bytes */{size}"),
        };
        Some(HeaderValue::from_str(&value).expect("digits are ASCII"))
    }
}

/// Parses `first-`, `first-last` or `-length`. `None` if malformed.
///
/// A suffix of an empty representation is satisfiable (14.1.2), but 206 cannot express "no bytes". The result
/// is then the whole representation.
fn one(range: &str, size: u64) -> Option<ByteRange> {
    let (first, last) = range.split_once('-')?;
    if first.is_empty() {
        return Some(match position(last)? {
            0 => ByteRange::Unsatisfiable,
            _ if size == 0 => ByteRange::Whole,
            length => ByteRange::Part { first: size.saturating_sub(length), last: size - 1 },
        });
    }

    let first = position(first)?;
    let last = if last.is_empty() { u64::MAX } else { position(last)? };
    if last < first {
        return None;
    }

    if first >= size {
        return Some(ByteRange::Unsatisfiable);
    }
    Some(ByteRange::Part { first, last: last.min(size - 1) })
}

/// Parses `1*DIGIT`. A number that is too large for any file becomes the largest number.
fn position(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ByteRange::{Unsatisfiable, Whole};
    use proptest::prelude::*;

    fn part(first: u64, last: u64) -> ByteRange {
        ByteRange::Part { first, last }
    }

    #[test]
    fn ranges_are_read_as_section_14_says() {
        for (value, size, expected) in [
            // 14.1.2: the RFC's own examples
            ("bytes=0-499", 10_000, part(0, 499)),
            ("bytes=500-999", 10_000, part(500, 999)),
            ("bytes=-500", 10_000, part(9500, 9999)),
            ("bytes=9500-", 10_000, part(9500, 9999)),
            ("bytes=0-0,-1", 10_000, Whole),
            // ends are clamped, suffixes longer than the file are the file
            ("bytes=0-0", 1, part(0, 0)),
            ("bytes=0-1", 10, part(0, 1)),
            ("bytes=5-99999999999999999999999", 10, part(5, 9)),
            ("bytes=-99999999999999999999999", 10, part(0, 9)),
            ("bytes=0-", 10, part(0, 9)),
            // 14.2: first position beyond the end, or a suffix of nothing
            ("bytes=10-", 10, Unsatisfiable),
            ("bytes=10-20", 10, Unsatisfiable),
            ("bytes=99999999999999999999999-", 10, Unsatisfiable),
            ("bytes=-0", 10, Unsatisfiable),
            // an empty file
            ("bytes=0-", 0, Unsatisfiable),
            ("bytes=0-0", 0, Unsatisfiable),
            ("bytes=-0", 0, Unsatisfiable),
            ("bytes=-5", 0, Whole),
            // 14.1: units are case-insensitive, lists may have empty elements (5.6.1)
            ("Bytes=1-2", 10, part(1, 2)),
            ("bytes=, 1-2 ,", 10, part(1, 2)),
            // ignored: unknown unit, malformed, inverted, several
            ("items=0-1", 10, Whole),
            ("bytes", 10, Whole),
            ("bytes=", 10, Whole),
            ("bytes=-", 10, Whole),
            ("bytes=5-2", 10, Whole),
            ("bytes=a-b", 10, Whole),
            ("bytes=+1-2", 10, Whole),
            ("bytes=1 - 2", 10, Whole),
            ("bytes=1-2-3", 10, Whole),
            ("bytes=--1", 10, Whole),
            ("bytes=0-1,3-4", 10, Whole),
            ("bytes=٣-٤", 10, Whole),
        ] {
            assert_eq!(ByteRange::parse(value, size), expected, "{value} of {size}");
        }
    }

    #[test]
    fn a_repeated_header_is_ignored() {
        let mut headers = HeaderMap::new();
        assert_eq!(ByteRange::of(&headers, 10), Whole);
        headers.append(RANGE, HeaderValue::from_static("bytes=0-1"));
        assert_eq!(ByteRange::of(&headers, 10), part(0, 1));
        headers.append(RANGE, HeaderValue::from_static("bytes=0-1"));
        assert_eq!(ByteRange::of(&headers, 10), Whole);
    }

    #[test]
    fn content_range_says_what_is_sent_or_how_long_it_is() {
        assert_eq!(part(0, 499).content_range(1234).unwrap(), "bytes 0-499/1234");
        assert_eq!(Unsatisfiable.content_range(0).unwrap(), "bytes */0");
        assert_eq!(Whole.content_range(5), None);
    }

    proptest! {
        #[test]
        fn a_part_always_lies_within(value in "bytes=[0-9]{0,20}-[0-9]{0,20}", size: u64) {
            if let ByteRange::Part { first, last } = ByteRange::parse(&value, size) {
                prop_assert!(first <= last && last < size);
            }
        }

        #[test]
        fn no_text_panics(value: String, size: u64) {
            ByteRange::parse(&value, size);
        }
    }
}
