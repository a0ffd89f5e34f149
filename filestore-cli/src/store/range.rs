//! A range of bytes as in RFC 9110 §14.1.2: `0-99`, `100-` or `-100`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::failure::{Failure, Result};

/// A range of bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteRange {
    /// The bytes from the first to the last position, inclusive.
    Between(u64, u64),
    /// All bytes from this position.
    From(u64),
    /// This number of bytes at the end of the file.
    Last(u64),
}

impl ByteRange {
    /// Applies the range to a file of `size_bytes` and clamps its end. Fails if no byte remains.
    pub(crate) fn within(self, size_bytes: u64) -> Result<Range<u64>> {
        let range = match self {
            Self::Between(first, last) => first..last.saturating_add(1).min(size_bytes),
            Self::From(first) => first..size_bytes,
            Self::Last(count) => size_bytes.saturating_sub(count)..size_bytes,
        };
        if range.is_empty() {
            return Err(Failure::refused(format!("the range {self} is outside of the file"))
                .hint(format!("the file has {size_bytes} bytes")));
        }
        Ok(range)
    }
}

impl FromStr for ByteRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).ok_or_else(|| "use 0-99, 100- or -100 (the last 100 bytes)".to_owned())
    }
}

fn parse(text: &str) -> Option<ByteRange> {
    match text.split_once('-')? {
        ("", count) => Some(ByteRange::Last(number(count)?)),
        (first, "") => Some(ByteRange::From(number(first)?)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(ByteRange::Between(first, last))
        }
    }
}

/// Parses plain digits. `parse` alone would also accept a sign.
fn number(digits: &str) -> Option<u64> {
    let is_plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_plain.then(|| digits.parse().ok()).flatten()
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Between(first, last) => write!(f, "{first}-{last}"),
            Self::From(first) => write!(f, "{first}-"),
            Self::Last(count) => write!(f, "-{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_clamped_to_the_file() {
        for (text, expected) in
            [("0-0", 0..1), ("0-99", 0..10), ("4-", 4..10), ("-3", 7..10), ("-99", 0..10)]
        {
            let range: ByteRange = text.parse().unwrap();
            assert_eq!(range.within(10).unwrap(), expected, "{text}");
            assert_eq!(range.to_string(), text);
        }
    }

    #[test]
    fn a_range_without_a_byte_is_refused() {
        for text in ["10-", "10-12", "-0"] {
            assert!(text.parse::<ByteRange>().unwrap().within(10).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused_with_examples() {
        for text in ["", "-", "5", "5-4", "a-b", "+1-2", "1-2-3"] {
            let error = text.parse::<ByteRange>().unwrap_err();
            assert!(error.contains("0-99"), "{text}");
        }
    }
}
