//! Writes header values one after the other into shared memory.
//!
//! A reply has about six values of its own. These values share one allocation, instead of an allocation for
//! each value and another one for each excess capacity.

use std::fmt::{Arguments, Write as _};

use bytes::BytesMut;
use http::HeaderValue;

/// A writer of values.
#[derive(Debug)]
pub struct Values {
    text: BytesMut,
}

impl Values {
    /// Reserves memory for values with `bytes` bytes in total. The memory can grow.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { text: BytesMut::with_capacity(bytes) }
    }

    /// Joins the parts into a value. `None` if a header cannot contain the value.
    pub fn join(&mut self, parts: &[&str]) -> Option<HeaderValue> {
        for part in parts {
            self.text.extend_from_slice(part.as_bytes());
        }
        self.take()
    }

    /// Formats a value. `None` if a header cannot contain the value.
    pub fn format(&mut self, text: Arguments<'_>) -> Option<HeaderValue> {
        self.text.write_fmt(text).expect("writing to memory cannot fail");
        self.take()
    }

    fn take(&mut self) -> Option<HeaderValue> {
        HeaderValue::from_maybe_shared(self.text.split().freeze()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_apart_also_where_the_room_is_too_small() {
        for capacity in [0, 4, 64] {
            let mut values = Values::with_capacity(capacity);
            let tag = values.join(&["\"", "abc", "\""]).unwrap();
            let refused = values.join(&["line\nfeed"]);
            let length = values.format(format_args!("{}", 20_000)).unwrap();
            let empty = values.join(&[]).unwrap();

            assert_eq!((tag.as_bytes(), length.as_bytes()), (&b"\"abc\""[..], &b"20000"[..]));
            assert_eq!((refused, empty.as_bytes()), (None, &b""[..]));
        }
    }
}
