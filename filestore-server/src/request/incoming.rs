//! Request bodies as they arrive, and what their headers say of them before they are read.

use std::pin::Pin;

use bytes::{Buf, Bytes};
use filestore_core::{Error, ErrorKind};
use futures_util::{Stream, TryStreamExt};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use warp::Filter;

use crate::body::BoxError;
use crate::reply::Failure;

/// A body on its way in.
pub(crate) type Body = Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>;

/// Extracts the body. Nothing is read (and no `100 Continue` sent) before it is polled.
pub(crate) fn body() -> impl Filter<Extract = (Body,), Error = warp::Rejection> + Copy {
    warp::body::stream().map(boxed)
}

fn boxed<B: Buf>(body: impl Stream<Item = Result<B, warp::Error>> + Send + 'static) -> Body {
    let chunks = body.map_ok(|mut chunk| chunk.copy_to_bytes(chunk.remaining()));
    Box::pin(chunks.map_err(BoxError::from))
}

/// Returns the media type of the body; `None` if absent, repeated or no text.
pub(super) fn content_type(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Refuses a body with a content coding. Nothing is decoded here: a coded body would look malformed,
/// or would be stored as it is.
pub(super) fn refuse_coding(headers: &HeaderMap) -> Result<(), Failure> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let plain = codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    if plain { Ok(()) } else { Err(Failure::UnsupportedCoding) }
}

pub(super) fn too_large(limit: u64) -> Error {
    Error::new(ErrorKind::TooLarge, format!("the body has more bytes than allowed: {limit}"))
        .with_limit(limit)
}
