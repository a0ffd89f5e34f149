//! The requested part of a file.

use std::ops::{Bound, RangeBounds};

use crate::error::{Error, Result};

/// The requested bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Whole,
    Range {
        first: u64,
        /// Exclusive end, or `None` for the end of the file.
        end: Option<u64>,
    },
    /// This number of bytes at the end.
    Suffix(u64),
}

impl Wanted {
    /// Converts the bounds of a range. A range without bounds is the whole file.
    pub(crate) fn from_bounds(range: &impl RangeBounds<u64>) -> Self {
        let first = match range.start_bound() {
            Bound::Included(first) => *first,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => Some(last.saturating_add(1)),
            Bound::Excluded(end) => Some(*end),
            Bound::Unbounded => None,
        };

        if (first, end) == (0, None) { Self::Whole } else { Self::Range { first, end } }
    }

    /// Refuses an empty range.
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Self::Range { first, end: Some(end) } if first >= end => {
                Err(Error::invalid(format!("the range is empty: {first}..{end}")))
            }
            Self::Suffix(0) => Err(Error::invalid("the range is empty: the last 0 bytes")),
            _ => Ok(()),
        }
    }

    /// Returns the `Range` header for the first request.
    pub(crate) fn header(self) -> Option<String> {
        match self {
            Self::Whole => None,
            Self::Range { first, end: None } => Some(format!("bytes={first}-")),
            // `end` is at least 1, because `check` refuses an empty range, and a resumed
            // download has received a byte.
            Self::Range { first, end: Some(end) } => Some(format!("bytes={first}-{}", end - 1)),
            Self::Suffix(len) => Some(format!("bytes=-{len}")),
        }
    }

    /// Returns the first byte, and the end if it is known, in a file of `total` bytes. Returns
    /// `None` for a suffix if `total` is unknown.
    pub(crate) fn window(self, total: Option<u64>) -> Option<(u64, Option<u64>)> {
        match self {
            Self::Whole => Some((0, total)),
            Self::Range { first, end } => Some((
                first,
                end.map_or(total, |end| Some(total.map_or(end, |total| end.min(total)))),
            )),
            Self::Suffix(len) => total.map(|total| (total.saturating_sub(len), Some(total))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_the_last_byte_not_the_end() {
        assert_eq!(Wanted::Range { first: 0, end: Some(1) }.header().as_deref(), Some("bytes=0-0"));
        assert_eq!(Wanted::Range { first: 5, end: None }.header().as_deref(), Some("bytes=5-"));
        assert_eq!(Wanted::Suffix(3).header().as_deref(), Some("bytes=-3"));
    }

    #[test]
    fn windows_end_with_the_file() {
        assert_eq!(Wanted::Range { first: 5, end: Some(50) }.window(Some(10)), Some((5, Some(10))));
        assert_eq!(Wanted::Range { first: 5, end: Some(50) }.window(None), Some((5, Some(50))));
        assert_eq!(Wanted::Suffix(50).window(Some(10)), Some((0, Some(10))));
        assert_eq!(Wanted::Suffix(3).window(None), None);
        assert_eq!(Wanted::Whole.window(None), Some((0, None)));
    }

    #[test]
    fn an_empty_range_is_refused_before_anything_is_sent() {
        assert!(Wanted::Range { first: 5, end: Some(5) }.check().is_err());
        assert!(Wanted::Range { first: 5, end: Some(6) }.check().is_ok());
    }
}
