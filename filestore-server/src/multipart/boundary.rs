//! The boundary of a multipart/form-data body, from its Content-Type.

use filestore_core::{Error, ErrorKind};
use thiserror::Error;

use super::params;

/// A boundary (RFC 2046 section 5.1.1): 1 to 70 characters of `bchars`, without a trailing space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary(String);

/// The reasons why a Content-Type has no boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BoundaryError {
    /// The type is missing or different: 415.
    #[error("the body is not multipart/form-data")]
    NotFormData,
    /// The type is right, but its parameters are wrong: 400.
    #[error("the content type has no usable boundary")]
    BadBoundary,
}

impl From<BoundaryError> for Error {
    /// Both become [`ErrorKind::MalformedBody`]. A caller that answers 415 matches first.
    fn from(refused: BoundaryError) -> Self {
        Self::new(ErrorKind::MalformedBody, refused.to_string())
    }
}

impl Boundary {
    /// Creates a boundary from a text, if the text matches the grammar.
    pub fn new(text: impl Into<String>) -> Result<Self, BoundaryError> {
        let text = text.into();
        let good =
            (1..=70).contains(&text.len()) && text.bytes().all(is_bchar) && !text.ends_with(' ');
        if good { Ok(Self(text)) } else { Err(BoundaryError::BadBoundary) }
    }

    /// Returns the boundary, without the leading dashes of the delimiter.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads the boundary from a Content-Type header's value.
///
/// An unquoted value can contain every character of `bchars` except the space. This is more than RFC 9110
/// allows, because some clients send `/`, `=` or `:` without quotes, and the meaning is clear.
pub fn boundary_of(content_type: &str) -> Result<Boundary, BoundaryError> {
    let (essence, rest) =
        content_type.split_at(content_type.find(';').unwrap_or(content_type.len()));
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return Err(BoundaryError::NotFormData);
    }

    let params = params::parse(rest.as_bytes(), |b| b != b' ' && is_bchar(b));
    let boundary = params
        .map_err(|_| BoundaryError::BadBoundary)?
        .into_iter()
        .find(|param| param.name == "boundary")
        .ok_or(BoundaryError::BadBoundary)?;
    Boundary::new(String::from_utf8(boundary.value).map_err(|_| BoundaryError::BadBoundary)?)
}

fn is_bchar(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_is_found_in_what_clients_send() {
        let long = "a".repeat(70);
        for (value, boundary) in [
            ("multipart/form-data; boundary=abc", "abc"),
            (
                "Multipart/Form-Data;boundary=----WebKitFormBoundaryABC123",
                "----WebKitFormBoundaryABC123",
            ),
            (r#"multipart/form-data; charset=utf-8; boundary="a b=c""#, "a b=c"),
            ("multipart/form-data; BOUNDARY=a/b=c:d; charset=utf-8", "a/b=c:d"),
            (&format!("multipart/form-data; boundary={long}"), &long),
        ] {
            assert_eq!(boundary_of(value).as_ref().map(Boundary::as_str), Ok(boundary), "{value}");
        }
    }

    #[test]
    fn other_types_and_bad_boundaries_are_told_apart() {
        for value in [
            "",
            "multipart/mixed; boundary=a",
            "application/json",
            "multipart/form-datax;boundary=a",
        ] {
            assert_eq!(boundary_of(value), Err(BoundaryError::NotFormData), "{value}");
        }

        let long = format!("multipart/form-data; boundary={}", "a".repeat(71));
        let crowd: Vec<_> = (0..10_000).map(|n| format!(";{n:x}=a")).collect();
        let crowd = crowd.concat();
        let crowded = format!("multipart/form-data{crowd}; boundary=a");

        for value in [
            "multipart/form-data",
            "multipart/form-data; boundary=",
            "multipart/form-data; boundary=\"\"",
            "multipart/form-data; boundary=\"a \"",
            "multipart/form-data; boundary=a; boundary=b",
            "multipart/form-data; boundary=a*b",
            "multipart/form-data; boundary=\"a\r\nb\"",
            "multipart/form-data; boundary=ä",
            &long,
            &crowded,
        ] {
            assert_eq!(boundary_of(value), Err(BoundaryError::BadBoundary), "{value}");
        }
    }
}
