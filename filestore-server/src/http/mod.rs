//! HTTP semantics as pure functions: the rules of RFC 9110 and related RFCs, without a server, a store or a
//! clock.

pub mod date;
pub mod etag;
pub mod values;
pub mod conditional;
pub mod range;
pub mod query;
pub mod trace;
pub(crate) mod accept;
pub(crate) mod base;
pub(crate) mod forwarded;
pub(crate) mod host;

use http::header::{AsHeaderName, HeaderMap};

/// Returns the value of a header that can occur once. `None` if it is absent, repeated or not text.
pub(crate) fn single(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
