//! The trace of a request (W3C Trace Context, level 1).

use std::fmt;

/// The length of a `traceparent` of version 00.
const LEN: usize = 55;

/// A valid `traceparent`: the trace, and the caller's span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// ASCII, in the form that [`TraceParent::parse`] checks.
    text: [u8; LEN],
}

impl TraceParent {
    /// Parses the header. `None` if a receiver must ignore the header, because its form is invalid or an id
    /// is all zeros. For a later version, parts beyond version 00 are omitted.
    ///
    /// ```
    /// use filestore_server::http::trace::TraceParent;
    ///
    /// let header = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let trace = TraceParent::parse(header).expect("it is the example of the specification");
    /// assert_eq!(trace.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
    /// assert_eq!(trace.parent_id(), "00f067aa0ba902b7");
    /// ```
    pub fn parse(header: &[u8]) -> Option<Self> {
        let (known, rest) = header.split_first_chunk::<LEN>()?;
        let is_whole = match &known[..2] {
            b"ff" => false,
            b"00" => rest.is_empty(),
            _ => rest.first().is_none_or(|next| *next == b'-'),
        };

        let has_form = known.iter().enumerate().all(|(at, byte)| match at {
            2 | 35 | 52 => *byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
        let has_ids = is_id(&known[3..35]) && is_id(&known[36..52]);
        (is_whole && has_form && has_ids).then_some(Self { text: *known })
    }

    /// Returns the trace id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.text()[3..35]
    }

    /// Returns the caller's span id: 16 hexadecimal digits.
    pub fn parent_id(&self) -> &str {
        &self.text()[36..52]
    }

    fn text(&self) -> &str {
        str::from_utf8(&self.text).expect("only digits, letters and hyphens were let through")
    }
}

/// Returns true if an id is not all zeros.
fn is_id(digits: &[u8]) -> bool {
    digits.iter().any(|digit| *digit != b'0')
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_names_no_trace_is_ignored() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(TraceParent::parse(good.as_bytes()).unwrap().to_string(), good);
        let later = good.replacen("00", "cc", 1) + "-what-comes-later";
        assert!(TraceParent::parse(later.as_bytes()).is_some());

        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
            "00-4bf92f3577b34da6a3ce929d0e0e47\u{e9}-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
