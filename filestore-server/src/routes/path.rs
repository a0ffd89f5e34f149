//! Path segments that the routes extract.

use std::borrow::Cow;
use std::convert::Infallible;
use std::str::FromStr;

use filestore_core::{FileId, Result};
use percent_encoding::percent_decode_str;

use crate::route_table::is_reserved;

/// A path segment for a file id. A bad id also matches, so that it gets 400 instead of 404.
#[derive(Debug)]
pub(crate) struct IdSegment(Result<FileId>);

impl IdSegment {
    /// Returns the id. `InvalidField` if the segment is not an id.
    pub(crate) fn id(self) -> Result<FileId> {
        self.0
    }
}

/// The error for a segment that is the name of another resource.
#[derive(Debug)]
pub(crate) struct Reserved;

impl FromStr for IdSegment {
    type Err = Reserved;

    fn from_str(text: &str) -> Result<Self, Reserved> {
        if is_reserved(text.as_bytes()) { Err(Reserved) } else { Ok(Self(plain(text).parse())) }
    }
}

/// Any segment, as sent.
#[derive(Debug)]
pub(crate) struct Segment(pub(crate) Box<str>);

impl Segment {
    /// Returns the segment as an id.
    pub(crate) fn plain(&self) -> Cow<'_, str> {
        plain(&self.0)
    }
}

/// Decodes percent signs that stand for letters, digits, `-`, `.`, `_` and `~`: such a segment is the same as
/// the plain one (RFC 3986 section 6.2.2.2). Ids have no other characters, so other text stays as it is.
fn plain(text: &str) -> Cow<'_, str> {
    let is_unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) if decoded.bytes().all(is_unreserved) => decoded,
        _ => Cow::Borrowed(text),
    }
}

impl FromStr for Segment {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    #[test]
    fn an_id_can_be_percent_encoded() {
        for text in [ID, "%30%31ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FA%56"] {
            let segment: IdSegment = text.parse().unwrap();
            assert_eq!(segment.id().unwrap().to_string(), ID, "{text}");
        }
        for text in ["%", "%3", "%zz", "%2F", "01ARZ3NDEKTSV4RRFFQ69G5FA%2F", "%75pload", "%FF"] {
            let segment: IdSegment = text.parse().unwrap();
            assert!(segment.id().is_err(), "{text}");
        }
        assert!("upload".parse::<IdSegment>().is_err());
    }

    #[test]
    fn only_unreserved_characters_are_decoded() {
        for (text, plain) in [
            ("%34%32", "42"),
            ("a%2Db", "a-b"),
            ("a%2fb", "a%2fb"),
            ("a%20", "a%20"),
            ("%c3", "%c3"),
        ] {
            let Ok(segment) = text.parse::<Segment>();
            assert_eq!(segment.plain(), plain);
        }
    }
}
