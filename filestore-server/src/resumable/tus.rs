//! The headers of tus 1.0.

use filestore_core::Error;
use filestore_core::uploads::Ends;
use http::HeaderMap;

use super::{Appending, Checksum, Concat, Creation, byte_count, once, unsupported_version};
use crate::error::{Refusal, RefusalKind, Result};

/// The version that is spoken.
pub(crate) const VERSION: &str = "1.0.0";

/// The extensions, as `Tus-Extension` lists them.
pub(crate) const EXTENSIONS: &str = "creation,creation-with-upload,creation-defer-length,expiration,checksum,concatenation,termination";

/// The media type of bytes.
pub(crate) const MEDIA_TYPE: &str = "application/offset+octet-stream";

/// Headers that a tus client sends beside its version.
const OWN: [&str; 4] = ["upload-length", "upload-offset", "upload-defer-length", "upload-metadata"];

/// Tests whether a request has a header of tus, although not its version.
pub(super) fn shows_tus(headers: &HeaderMap) -> bool {
    OWN.iter().any(|name| headers.contains_key(*name))
}

/// Refuses another version than 1.0.0.
pub(super) fn expect_version(headers: &HeaderMap) -> Result<()> {
    if once(headers, "Tus-Resumable")? == Some(VERSION) { Ok(()) } else { Err(unsupported()) }
}

pub(super) fn unsupported() -> crate::error::Error {
    unsupported_version("tus clients send Tus-Resumable: 1.0.0")
}

/// Reads the headers of a creation.
pub(super) fn creation(headers: &HeaderMap) -> Result<Creation> {
    refuse_trailer(headers)?;
    let concat = once(headers, "Upload-Concat")?.map(Concat::parse).transpose()?;
    if let Some(Concat { parts: Some(_), .. }) = &concat {
        if headers.contains_key("upload-length") || headers.contains_key("upload-defer-length") {
            let message = "the length of a final upload is that of its parts";
            return Err(Error::invalid("Upload-Length", message).into());
        }
        return Ok(Creation { concat, ..Creation::default() });
    }
    let length = once(headers, "Upload-Length")?;
    let deferred = once(headers, "Upload-Defer-Length")?;
    let length = match (length, deferred) {
        (Some(length), None) => Some(byte_count("Upload-Length", length)?),
        (None, Some("1")) => None,
        (None, Some(_)) => {
            let message = "Upload-Defer-Length is 1";
            return Err(Error::invalid("Upload-Defer-Length", message).with_allowed(["1"]).into());
        }
        (Some(_), Some(_)) => {
            let message = "Upload-Length and Upload-Defer-Length exclude each other";
            return Err(Error::invalid("Upload-Defer-Length", message).into());
        }
        (None, None) => {
            let message = "a creation has Upload-Length or Upload-Defer-Length: 1";
            let refusal = Refusal::new(RefusalKind::LengthRequired, message);
            return Err(refusal.with_field("Upload-Length").into());
        }
    };
    Ok(Creation { length, is_whole: false, checksum: checksum(headers)?, concat })
}

/// Reads the headers of a PATCH.
pub(super) fn appending(headers: &HeaderMap) -> Result<Appending> {
    refuse_trailer(headers)?;
    let Some(offset) = once(headers, "Upload-Offset")? else {
        return Err(Error::invalid("Upload-Offset", "a PATCH has Upload-Offset").into());
    };
    let length = once(headers, "Upload-Length")?;
    Ok(Appending {
        offset: byte_count("Upload-Offset", offset)?,
        length: length.map(|length| byte_count("Upload-Length", length)).transpose()?,
        ends: Ends::ByLength,
        checksum: checksum(headers)?,
    })
}

fn checksum(headers: &HeaderMap) -> Result<Option<Checksum>> {
    Ok(once(headers, "Upload-Checksum")?.map(Checksum::parse).transpose()?)
}

/// Refuses a checksum that comes behind the body: it would be lost on the way.
fn refuse_trailer(headers: &HeaderMap) -> Result<()> {
    let mut names = headers.get_all("trailer").iter().filter_map(|line| line.to_str().ok());
    if names.any(|line| line.to_ascii_lowercase().contains("upload-checksum")) {
        let message = "Upload-Checksum is a header, and not a trailer";
        return Err(Error::invalid("Trailer", message).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::headers;
    use super::*;
    use filestore_core::api::ErrorCode;

    #[test]
    fn a_creation_has_a_length_or_defers_it() {
        let read = |lines: &[(&str, &str)]| creation(&headers(lines)).map(|read| read.length);
        assert_eq!(read(&[("Upload-Length", "11")]).unwrap(), Some(11));
        assert_eq!(read(&[("Upload-Defer-Length", "1")]).unwrap(), None);
        let code = |lines: &[(&str, &str)]| read(lines).unwrap_err().code();
        assert_eq!(code(&[]), ErrorCode::LengthRequired);
        for bad in [
            &[("Upload-Length", "-1")][..],
            &[("Upload-Length", "1"), ("Upload-Length", "1")],
            &[("Upload-Defer-Length", "0")],
            &[("Upload-Length", "1"), ("Upload-Defer-Length", "1")],
            &[("Upload-Length", "1"), ("Upload-Concat", "final;a b")],
            &[("Upload-Length", "1"), ("Upload-Concat", "whole")],
            &[("Upload-Length", "1"), ("Trailer", "Upload-Checksum")],
            &[("Upload-Length", "1"), ("Upload-Checksum", "md4 YQ==")],
        ] {
            assert_eq!(code(bad), ErrorCode::InvalidField, "{bad:?}");
        }
    }

    #[test]
    fn a_patch_names_its_offset() {
        let read = appending(&headers(&[("Upload-Offset", "7"), ("Upload-Length", "9")])).unwrap();
        assert_eq!((read.offset, read.length, read.ends), (7, Some(9), Ends::ByLength));
        assert!(appending(&headers(&[])).is_err());
        assert!(appending(&headers(&[("Upload-Offset", "x")])).is_err());
    }
}
