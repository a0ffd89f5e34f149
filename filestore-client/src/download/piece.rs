//! One reply with bytes of a file, from the service or from a provider.

use reqwest::header::{CONTENT_RANGE, HeaderMap, LOCATION};
use reqwest::{Response, StatusCode, Url};

use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::reply::header;

/// A reply while the client reads its body.
pub(super) struct Piece {
    pub(super) response: Response,
    /// Name of the sender, for messages.
    pub(super) peer: String,
    pub(super) origin: Origin,
    pub(super) digest: Digest,
    /// Position of the start of the body in the file.
    pub(super) start: u64,
    /// Position of the end of the body in the file, if known.
    pub(super) end: Option<u64>,
    /// File length, if known.
    pub(super) total: Option<u64>,
    /// Number of bytes at the start of the body that are already delivered.
    pub(super) skip: u64,
}

/// The sender of the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Service,
    Provider,
}

impl Piece {
    pub(super) fn new(
        response: Response,
        peer: String,
        origin: Origin,
        digest: Digest,
    ) -> Result<Self> {
        let (start, end, total) = match response.status() {
            StatusCode::OK => (0, response.content_length(), response.content_length()),
            StatusCode::PARTIAL_CONTENT => {
                let ContentRange { start, end, total } = content_range(response.headers())?;
                (start, Some(end), total)
            }
            status => {
                return Err(Error::protocol(format!("{peer} answered a download with {status}")));
            }
        };

        Ok(Self { response, peer, origin, digest, start, end, total, skip: 0 })
    }
}

/// The bytes `start..end` of a file of `total` bytes, if the sender knows the total.
#[derive(Debug, PartialEq, Eq)]
struct ContentRange {
    start: u64,
    end: u64,
    total: Option<u64>,
}

/// Parses `Content-Range: bytes 5-9/10` (RFC 9110 §14.4).
fn content_range(headers: &HeaderMap) -> Result<ContentRange> {
    let text = header(headers, &CONTENT_RANGE).unwrap_or_default();
    parse_content_range(&text)
        .ok_or_else(|| Error::protocol(format!("cannot parse the Content-Range: {text:?}")))
}

/// Refuses a range with its last byte before the first byte or outside of the file.
fn parse_content_range(text: &str) -> Option<ContentRange> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;

    let (start, end) = (number(first)?, number(last)?.checked_add(1)?);
    let total = if total == "*" { None } else { Some(number(total)?) };
    let is_sound = start < end && total.is_none_or(|total| end <= total);
    is_sound.then_some(ContentRange { start, end, total })
}

/// Parses plain digits. `parse` alone would also accept a sign.
fn number(digits: &str) -> Option<u64> {
    if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Returns the absolute URL of a redirect.
pub(super) fn redirect_target(redirect: &Response) -> Result<Url> {
    header(redirect.headers(), &LOCATION)
        .and_then(|location| redirect.url().join(&location).ok())
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(|| Error::protocol("the redirect to the storage provider has no valid URL"))
}

/// Returns true if a redirect leads to the service itself, for example because a proxy wants
/// another scheme or a login. Only a provider at another address has bytes.
pub(super) fn leads_back(asked: &Url, target: &Url) -> bool {
    let is_same_port = asked.port_or_known_default() == target.port_or_known_default();
    asked.host_str() == target.host_str() && (is_same_port || asked.path() == target.path())
}

/// Creates the error for a request to the provider without a reply.
pub(super) fn unreachable_provider(peer: &str, error: reqwest::Error) -> Error {
    let error = Error::transport(peer, error);
    match error.kind() {
        // The server is reachable, but its provider is not.
        ErrorKind::Connect => {
            let message = error.message().to_owned();
            error.wrapped(ErrorKind::Provider, message)
        }
        _ => error,
    }
}

/// Creates the error for a refusal of the provider.
///
/// A new request to the service fixes an expired URL and a temporary problem of the provider, so
/// most refusals allow a retry. Exceptions are a range outside of the file, and a 401: a provider
/// never answers a presigned URL with 401, so it comes from a proxy with a login.
pub(super) fn refused_by_provider(peer: &str, status: StatusCode) -> Error {
    let kind = match status {
        StatusCode::RANGE_NOT_SATISFIABLE => ErrorKind::Invalid,
        StatusCode::UNAUTHORIZED => ErrorKind::Protocol,
        status if status.is_redirection() => ErrorKind::Protocol,
        _ => ErrorKind::Provider,
    };
    let message = format!("{peer} refused the download: {status}");
    Error::new(kind, message).with_status(status.as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_to_the_service_itself_is_recognized() {
        let asked = Url::parse("http://files.example/api/v1/files/01").unwrap();
        for (target, back) in [
            ("https://files.example/api/v1/files/01", true),
            ("http://files.example/login?next=x", true),
            ("http://files.example:9000/bucket/key", false),
            ("https://s3.example/bucket/key", false),
        ] {
            assert_eq!(leads_back(&asked, &Url::parse(target).unwrap()), back, "{target}");
        }
    }

    #[test]
    fn a_content_range_names_bytes_within_the_file() {
        let whole = Some(ContentRange { start: 5, end: 10, total: Some(10) });
        let unknown = Some(ContentRange { start: 0, end: 1, total: None });
        assert_eq!(parse_content_range("bytes 5-9/10"), whole);
        assert_eq!(parse_content_range("bytes 0-0/*"), unknown);

        for bad in [
            "",
            "5-9/10",
            "bytes */10",
            "bytes 9-5/10",
            "bytes 0-10/10",
            "bytes +5-9/10",
            "bytes 5-+9/10",
            "bytes 5-9/+10",
            "bytes 5-9/",
            "bytes -9/10",
            "items 5-9/10",
            "bytes 0-18446744073709551615/*",
        ] {
            assert_eq!(parse_content_range(bad), None, "{bad:?}");
        }
    }
}
