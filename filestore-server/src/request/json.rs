//! JSON bodies: small, read as a whole.

use filestore_core::Error;
use http::header::CONTENT_TYPE;

use super::call::Call;
use super::incoming::{Body, content_type, refuse_coding, too_large};
use crate::body::BodyReader;
use crate::reply::Failure;

/// The most bytes a JSON body may have.
const JSON_BYTES: usize = 64 << 10;

/// Reads a JSON body: 415 if it is of another type, 413 over 64 KiB.
pub(crate) async fn read_json(call: &Call, body: Body) -> Result<Vec<u8>, Failure> {
    let essence =
        content_type(&call.headers).and_then(|value| value.split(';').next()).unwrap_or_default();
    if !essence.trim().eq_ignore_ascii_case("application/json") {
        return Err(Failure::UnsupportedMediaType("application/json"));
    }

    refuse_coding(&call.headers)?;
    let json = read_small(call, body).await?;
    if let Some(audited) = &call.audited {
        audited.note_body(&json);
    }
    Ok(json)
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
