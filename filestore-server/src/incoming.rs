//! Request bodies: what may be said of them before they are read, and small ones as a whole.

use std::pin::Pin;

use bytes::{Buf, Bytes};
use filestore_core::{Error, ErrorKind};
use futures_util::{Stream, TryStreamExt};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use warp::Filter;

use crate::body::BodyReader;
use crate::call::Call;
use crate::error::Failure;
use crate::multipart::{BoundaryError, Limits, MultipartReader, boundary_of};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body on its way in.
pub(crate) type Body = Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>;

/// A form on its way in.
pub(crate) type Form = MultipartReader<Body>;

/// The most bytes a JSON body may have.
const JSON_BYTES: usize = 64 << 10;

/// The most bytes a text field of a form may have.
pub(crate) const TEXT_BYTES: usize = 8 << 10;

/// What a form may be longer than its files: part headers and text fields.
pub(crate) const FORM_ALLOWANCE: u64 = 1 << 20;

/// Extracts the body. Nothing is read (and no `100 Continue` sent) before it is polled.
pub(crate) fn body() -> impl Filter<Extract = (Body,), Error = warp::Rejection> + Copy {
    warp::body::stream().map(boxed)
}

fn boxed<B: Buf>(body: impl Stream<Item = Result<B, warp::Error>> + Send + 'static) -> Body {
    let chunks = body.map_ok(|mut chunk| chunk.copy_to_bytes(chunk.remaining()));
    Box::pin(chunks.map_err(BoxError::from))
}

/// Begins to read a form of at most `files` files that have `max_bytes` together. Refused before
/// anything is read: what is no form, and what announces more bytes than can be right.
pub(crate) fn open_form(
    call: &Call,
    body: Body,
    files: usize,
    max_bytes: u64,
) -> Result<Form, Failure> {
    let boundary = content_type(&call.headers).map_or(Err(BoundaryError::NotFormData), boundary_of);
    let boundary = boundary.map_err(|refused| match refused {
        BoundaryError::NotFormData => Failure::UnsupportedMediaType("multipart/form-data"),
        BoundaryError::BadBoundary => Error::from(refused).into(),
    })?;
    refuse_coding(&call.headers)?;
    if call.content_length().is_some_and(|length| length > max_bytes.saturating_add(FORM_ALLOWANCE))
    {
        return Err(too_large(max_bytes).into());
    }
    Ok(MultipartReader::new(body, &boundary, Limits::for_items(files), call.app.config.body))
}

/// Reads a JSON body: 415 if it is of another type, 413 over 64 KiB.
pub(crate) async fn read_json(call: &Call, body: Body) -> Result<Vec<u8>, Failure> {
    let essence =
        content_type(&call.headers).and_then(|value| value.split(';').next()).unwrap_or_default();
    if !essence.trim().eq_ignore_ascii_case("application/json") {
        return Err(Failure::UnsupportedMediaType("application/json"));
    }
    refuse_coding(&call.headers)?;
    Ok(read_small(call, body).await?)
}

/// Reads a JSON body that may be left out: an empty one needs no type.
pub(crate) async fn read_optional_json(
    call: &Call,
    body: Body,
) -> Result<Option<Vec<u8>>, Failure> {
    if call.headers.contains_key(CONTENT_TYPE) {
        return read_json(call, body).await.map(Some);
    }
    let read = read_small(call, body).await?;
    if read.is_empty() { Ok(None) } else { Err(Failure::UnsupportedMediaType("application/json")) }
}

async fn read_small(call: &Call, body: Body) -> Result<Vec<u8>, Error> {
    if call.content_length().is_some_and(|length| length > JSON_BYTES as u64) {
        return Err(too_large(JSON_BYTES as u64));
    }
    BodyReader::new(body, call.app.config.body).collect(JSON_BYTES).await
}

/// The media type of the body; `None` if absent, repeated or no text.
fn content_type(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Nothing is decoded here: a coded body would look malformed, or be taken as it is.
fn refuse_coding(headers: &HeaderMap) -> Result<(), Failure> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let plain = codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    if plain { Ok(()) } else { Err(Failure::UnsupportedCoding) }
}

fn too_large(limit: u64) -> Error {
    Error::new(ErrorKind::TooLarge, format!("the body has more bytes than allowed: {limit}"))
        .with_limit(limit)
}
