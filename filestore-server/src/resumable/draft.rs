//! The headers of the drafts "Resumable Uploads for HTTP" of the IETF, by their interop versions.
//!
//! | interop version | drafts | served as |
//! |---|---|---|
//! | 3 | -01 | `V3` |
//! | 4, 5 | -02, -03 | `V5` |
//! | 6 | -04, -05 | `V6` |
//! | 7, 8 | -06 to -11 | `V8` |
//!
//! A request without a version is served as `V8`.
//!
//! Values are structured fields (RFC 9651): integers of 15 digits at most, and booleans.

use filestore_core::Error;
use filestore_core::uploads::Ends;
use http::HeaderMap;

use super::{Appending, Creation, byte_count, once, unsupported_version};
use crate::error::Result;

/// The media type of an append.
const MEDIA_TYPE: &str = "application/partial-upload";

/// An interop version, as far as versions differ here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interop {
    /// Version 3: `Upload-Incomplete`.
    V3,
    /// Versions 4 and 5: `Upload-Complete`.
    V5,
    /// Version 6: limits, lengths, a media type.
    V6,
    /// Versions 7 and 8: problem types, 410, 204.
    V8,
}

impl Interop {
    /// Returns the version of a request; `None` without one, and with one that is not known.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        match once(headers, "Upload-Draft-Interop-Version").ok()?? {
            "3" => Some(Self::V3),
            "4" | "5" => Some(Self::V5),
            "6" => Some(Self::V6),
            "7" | "8" => Some(Self::V8),
            _ => None,
        }
    }

    /// Returns the header of completeness with its value.
    pub(crate) fn completeness(self, is_complete: bool) -> (&'static str, &'static str) {
        match self {
            Self::V3 => ("upload-incomplete", if is_complete { "?0" } else { "?1" }),
            Self::V5 | Self::V6 | Self::V8 => {
                ("upload-complete", if is_complete { "?1" } else { "?0" })
            }
        }
    }

    /// Returns the media type that an append has; `None` for any.
    pub(crate) fn media_type(self) -> Option<&'static str> {
        (self >= Self::V6).then_some(MEDIA_TYPE)
    }

    /// Reads the headers of a creation.
    pub(super) fn creation(self, headers: &HeaderMap) -> Result<Creation> {
        let is_whole = self.is_complete(headers)?.ok_or_else(|| self.missing())?;
        let length = self.length(headers)?;
        Ok(Creation { length, is_whole, ..Creation::default() })
    }

    /// Reads the headers of an append.
    pub(super) fn appending(self, headers: &HeaderMap) -> Result<Appending> {
        let Some(offset) = once(headers, "Upload-Offset")? else {
            return Err(Error::invalid("Upload-Offset", "an append has Upload-Offset").into());
        };
        let is_last = match self.is_complete(headers)? {
            Some(is_last) => is_last,
            // Before version 7, an append without the header is the last one.
            None if self < Self::V8 => true,
            None => return Err(self.missing()),
        };
        Ok(Appending {
            offset: byte_count("Upload-Offset", offset)?,
            length: self.length(headers)?,
            ends: if is_last { Ends::WithThisRequest } else { Ends::Later },
            checksum: None,
        })
    }

    /// Refuses the headers of an upload at a HEAD or DELETE, as versions before 7 do.
    pub(crate) fn refuse_upload_headers(self, headers: &HeaderMap) -> Result<()> {
        let own = ["Upload-Offset", "Upload-Complete", "Upload-Incomplete", "Upload-Length"];
        match own.into_iter().find(|name| headers.contains_key(*name)) {
            Some(name) if self < Self::V8 => {
                Err(Error::invalid(name, format!("this request has no {name}")).into())
            }
            _ => Ok(()),
        }
    }

    fn is_complete(self, headers: &HeaderMap) -> Result<Option<bool>> {
        let (name, _) = self.completeness(true);
        let Some(text) = once(headers, name)? else { return Ok(None) };
        let value = match text {
            "?1" => true,
            "?0" => false,
            _ => {
                let message = format!("{name} is a boolean");
                return Err(Error::invalid(name, message).with_allowed(["?1", "?0"]).into());
            }
        };
        Ok(Some(value == (self != Self::V3)))
    }

    fn length(self, headers: &HeaderMap) -> Result<Option<u64>> {
        if self < Self::V6 {
            return Ok(None);
        }
        let length = once(headers, "Upload-Length")?;
        length.map(|length| byte_count("Upload-Length", length)).transpose()
    }

    fn missing(self) -> crate::error::Error {
        let (name, _) = self.completeness(true);
        Error::invalid(name, format!("the request has no {name}")).with_allowed(["?1", "?0"]).into()
    }
}

/// Tests whether a request names a version of a draft, known or not.
pub(super) fn names_version(headers: &HeaderMap) -> bool {
    headers.contains_key("upload-draft-interop-version")
}

/// Tests whether the body of a request can be only a part of the file, in any version.
pub(super) fn may_be_part(headers: &HeaderMap) -> bool {
    let is_other = |name: &str, whole: &str| {
        !once(headers, name).is_ok_and(|text| text.is_none_or(|text| text == whole))
    };
    headers.contains_key("upload-offset")
        || is_other("Upload-Complete", "?1")
        || is_other("Upload-Incomplete", "?0")
}

pub(super) fn unsupported() -> crate::error::Error {
    unsupported_version("the interop version of the draft is 3 to 8")
}

#[cfg(test)]
mod tests {
    use super::super::tests::headers;
    use super::*;

    #[test]
    fn completeness_has_a_header_by_version() {
        let last = |version: Interop, lines: &[(&str, &str)]| {
            let mut lines = lines.to_vec();
            lines.push(("Upload-Offset", "1"));
            version.appending(&headers(&lines)).ok().map(|read| read.ends == Ends::WithThisRequest)
        };
        for (version, name, last_value, not_last, absent) in [
            (Interop::V3, "Upload-Incomplete", "?0", "?1", Some(true)),
            (Interop::V5, "Upload-Complete", "?1", "?0", Some(true)),
            (Interop::V6, "Upload-Complete", "?1", "?0", Some(true)),
            (Interop::V8, "Upload-Complete", "?1", "?0", None),
        ] {
            assert_eq!(last(version, &[(name, last_value)]), Some(true), "{version:?}");
            assert_eq!(last(version, &[(name, not_last)]), Some(false), "{version:?}");
            assert_eq!(last(version, &[]), absent, "{version:?}");
            assert_eq!(last(version, &[(name, "1")]), None, "{version:?}");
        }
    }

    #[test]
    fn a_length_counts_from_version_6_on() {
        let lines = [("Upload-Complete", "?0"), ("Upload-Length", "7")];
        assert_eq!(Interop::V5.creation(&headers(&lines)).unwrap().length, None);
        assert_eq!(Interop::V6.creation(&headers(&lines)).unwrap().length, Some(7));
        assert!(Interop::V6.creation(&headers(&[("Upload-Length", "7")])).is_err());
    }

    #[test]
    fn upload_headers_at_a_head_are_refused_before_version_7() {
        let lines = headers(&[("Upload-Offset", "1")]);
        assert!(Interop::V6.refuse_upload_headers(&lines).is_err());
        assert!(Interop::V8.refuse_upload_headers(&lines).is_ok());
        assert!(Interop::V6.refuse_upload_headers(&headers(&[])).is_ok());
    }
}
