//! The id of a request: shown in its reply, written to the log.

use std::fmt;

use http::{HeaderName, HeaderValue};
use ulid::Ulid;

/// The header that carries the request's id on every reply.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A ULID of the server's own, never one that a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId([u8; 26]);

impl RequestId {
    /// Makes a new id.
    pub(crate) fn fresh() -> Self {
        let mut text = [0; 26];
        Ulid::generate().array_to_str(&mut text);
        Self(text)
    }

    /// Returns the value of `X-Request-Id`.
    pub(crate) fn to_header(self) -> HeaderValue {
        HeaderValue::from_bytes(&self.0).expect("a ULID is ASCII letters and digits")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.0).expect("a ULID is ASCII letters and digits"))
    }
}
