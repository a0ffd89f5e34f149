//! The headers of resumable uploads: tus 1.0, and the drafts of the IETF. Without I/O.
//!
//! A request speaks one protocol, which [`Protocol::of`] tells from its headers. `tus` and `draft` read the
//! headers of one protocol each into the same types. `metadata` and `checksum` read one header each. `problem` has
//! the problem types of the drafts. `judge` compares what they read with the specifications, for tests and fuzz
//! targets.

mod checksum;
mod concat;
mod draft;
mod metadata;
mod problem;
mod tus;
pub mod judge;

pub(crate) use checksum::{ALGORITHMS, Checksum};
pub(crate) use concat::Concat;
pub(crate) use draft::Interop;
pub(crate) use metadata::{ClientMetadata, upload_metadata};
pub(crate) use problem::register;
pub(crate) use tus::{EXTENSIONS, MEDIA_TYPE, VERSION};

use filestore_core::Error;
use filestore_core::uploads::Ends;
use http::HeaderMap;

use crate::error::{Refusal, RefusalKind, Result};

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// tus 1.0.
    Tus,
    /// A draft of the IETF.
    Draft(Interop),
    /// None: the body is the file.
    Plain,
}

impl Protocol {
    /// Tells the protocol of a request from its headers.
    ///
    /// A request with `Upload-Complete` and without a version speaks the draft as its own examples do, and gets the
    /// newest known version. A draft of an unknown version is `Plain`, as the drafts want it: its body is the file.
    ///
    /// `UnsupportedVersion` for another version of tus, for a request that has other headers of tus, whose
    /// version was lost on the way, and for a part of a file in an unknown draft. `InvalidField` for a request that
    /// speaks both.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self> {
        let draft = Interop::of(headers);
        match (headers.contains_key("tus-resumable"), draft) {
            (true, Some(_)) => {
                let message = "a request speaks tus or the draft, not both";
                Err(Error::invalid("Upload-Draft-Interop-Version", message).into())
            }
            (true, None) => tus::expect_version(headers).map(|()| Self::Tus),
            (false, Some(draft)) => Ok(Self::Draft(draft)),
            (false, None) if draft::names_version(headers) => {
                // A part of a file must not become a whole file.
                if draft::may_be_part(headers) {
                    Err(draft::unsupported())
                } else {
                    Ok(Self::Plain)
                }
            }
            (false, None) if headers.contains_key("upload-complete") => {
                Ok(Self::Draft(Interop::V8))
            }
            (false, None) if tus::shows_tus(headers) => Err(tus::unsupported()),
            (false, None) if headers.contains_key("upload-incomplete") => Err(draft::unsupported()),
            (false, None) => Ok(Self::Plain),
        }
    }

    /// Reads the headers of a creation.
    pub(crate) fn creation(self, headers: &HeaderMap) -> Result<Creation> {
        match self {
            Self::Tus => tus::creation(headers),
            Self::Draft(draft) => draft.creation(headers),
            Self::Plain => Ok(Creation::default()),
        }
    }

    /// Reads the headers of an append.
    pub(crate) fn appending(self, headers: &HeaderMap) -> Result<Appending> {
        match self {
            Self::Tus => tus::appending(headers),
            Self::Draft(draft) => draft.appending(headers),
            Self::Plain => {
                let message = "name the protocol: Tus-Resumable or Upload-Draft-Interop-Version";
                Err(unsupported_version(message))
            }
        }
    }
}

/// What the headers of a creation say.
#[derive(Debug, Default)]
pub(crate) struct Creation {
    /// The length of the file, if it is known.
    pub(crate) length: Option<u64>,
    /// True if the body of the creation is the whole file.
    pub(crate) is_whole: bool,
    /// The checksum of the body.
    pub(crate) checksum: Option<Checksum>,
    /// The place of the upload in a concatenation.
    pub(crate) concat: Option<Concat>,
}

/// What the headers of an append say.
#[derive(Debug)]
pub(crate) struct Appending {
    /// The offset of the first byte.
    pub(crate) offset: u64,
    /// The length of the file, if the request names it.
    pub(crate) length: Option<u64>,
    /// The end of the file.
    pub(crate) ends: Ends,
    /// The checksum of the body.
    pub(crate) checksum: Option<Checksum>,
}

fn unsupported_version(message: &str) -> crate::error::Error {
    Refusal::new(RefusalKind::UnsupportedVersion, message).into()
}

/// Reads a number of bytes: decimal digits, 15 at most.
fn byte_count(name: &str, text: &str) -> Result<u64> {
    let is_plain = !text.is_empty() && text.len() <= 15 && text.bytes().all(|b| b.is_ascii_digit());
    let read = text.parse().ok().filter(|_| is_plain);
    read.ok_or_else(|| {
        let message = format!("{name} is a whole number of bytes, 0 or more, of 15 digits at most");
        Error::invalid(name, message).into()
    })
}

/// Reads a header that may be there once; `InvalidField` for a repeated one and one that is no text.
fn once<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text.trim())),
        _ => Err(Error::invalid(name, format!("{name} is there once, in ascii")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    pub(super) fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            // The parser of HTTP strips blanks around a value.
            headers.append(name, HeaderValue::from_str(value.trim()).unwrap());
        }
        headers
    }

    #[test]
    fn the_protocol_of_a_request_is_in_its_headers() {
        for (lines, expected) in [
            (&[][..], Some(Protocol::Plain)),
            (&[("Tus-Resumable", "1.0.0")], Some(Protocol::Tus)),
            (&[("Tus-Resumable", "0.2.2")], None),
            (&[("Upload-Length", "5")], None),
            (&[("Upload-Draft-Interop-Version", "8")], Some(Protocol::Draft(Interop::V8))),
            (&[("Upload-Complete", "?1")], Some(Protocol::Draft(Interop::V8))),
            (
                &[("Upload-Complete", "?0"), ("Upload-Length", "5")],
                Some(Protocol::Draft(Interop::V8)),
            ),
            (&[("Upload-Draft-Interop-Version", "99")], Some(Protocol::Plain)),
            (
                &[
                    ("Upload-Draft-Interop-Version", "99"),
                    ("Upload-Complete", "?1"),
                    ("Upload-Length", "5"),
                ],
                Some(Protocol::Plain),
            ),
            (&[("Upload-Draft-Interop-Version", "99"), ("Upload-Complete", "?0")], None),
            (&[("Upload-Draft-Interop-Version", "1"), ("Upload-Incomplete", "?1")], None),
            (&[("Upload-Draft-Interop-Version", "99"), ("Upload-Complete", "?0;x=1")], None),
            (&[("Upload-Draft-Interop-Version", "99"), ("Upload-Offset", "5")], None),
            (&[("Upload-Incomplete", "?1")], None),
            (&[("Tus-Resumable", "1.0.0"), ("Upload-Draft-Interop-Version", "6")], None),
        ] {
            assert_eq!(Protocol::of(&headers(lines)).ok(), expected, "{lines:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn headers_of_any_text_are_read_or_refused(
            version in "1[.]0[.]0|[ -~]{0,8}",
            draft in proptest::option::of("[3-9]"),
            texts in proptest::collection::vec("[ -~]{0,40}|final;[ -~]{0,40}|[a-z]{1,4} [A-Za-z0-9+/=]{0,20}", 7),
        ) {
            let names = [
                "Upload-Length", "Upload-Offset", "Upload-Metadata", "Upload-Concat", "Upload-Checksum",
                "Upload-Complete", "Upload-Defer-Length",
            ];
            let mut lines: Vec<_> = names.into_iter().zip(texts.iter().map(String::as_str)).collect();
            match &draft {
                Some(draft) => lines.push(("Upload-Draft-Interop-Version", draft)),
                None => lines.push(("Tus-Resumable", &version)),
            }
            let headers = headers(&lines);
            let _ = upload_metadata(&headers);
            if let Ok(protocol) = Protocol::of(&headers) {
                let _ = (protocol.creation(&headers), protocol.appending(&headers));
            }
        }
    }

    #[test]
    fn a_number_of_bytes_is_plain_digits() {
        for (text, value) in [("0", Some(0)), ("999999999999999", Some(999_999_999_999_999))] {
            assert_eq!(byte_count("Upload-Length", text).ok(), value);
        }
        for bad in ["", "-1", "+1", "1.0", "0x1", " 1", "1000000000000000", "18446744073709551616"]
        {
            assert!(byte_count("Upload-Length", bad).is_err(), "{bad}");
        }
    }
}
