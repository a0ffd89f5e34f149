//! The id of a request, for its reply and the log.

use std::fmt;

use http::{HeaderName, HeaderValue};
use ulid::Ulid;

use crate::http::trace::TraceParent;

/// The header that carries the request's id on every reply.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A ULID that the server creates (never the client's), and the trace of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId {
    text: [u8; 26],
    trace: Option<TraceParent>,
}

impl RequestId {
    /// Creates a new id.
    pub(crate) fn fresh() -> Self {
        Self::within(None)
    }

    /// Creates a new id for a request of `trace`.
    pub(crate) fn within(trace: Option<TraceParent>) -> Self {
        let mut text = [0; 26];
        Ulid::generate().array_to_str(&mut text);
        Self { text, trace }
    }

    /// Returns the trace of the request, if its client named one.
    pub(crate) fn trace(&self) -> Option<&TraceParent> {
        self.trace.as_ref()
    }

    /// Returns the id of that trace, for the log.
    pub(crate) fn trace_id(&self) -> Option<&str> {
        self.trace().map(TraceParent::trace_id)
    }

    /// Returns the value of `X-Request-Id`.
    pub(crate) fn to_header(self) -> HeaderValue {
        HeaderValue::from_bytes(&self.text).expect("a ULID is ASCII letters and digits")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.text).expect("a ULID is ASCII letters and digits"))
    }
}
