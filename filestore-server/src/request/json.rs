//! JSON bodies. These bodies are small and read as a whole. The caller's right is checked when the body has
//! arrived.

use filestore_core::web::media::MediaType;
use http::header::CONTENT_TYPE;

use super::call::Call;
use super::incoming::{Body, content_type, refuse_coding, too_large};
use crate::error;
use crate::listen::body::BodyReader;
use crate::reply::{Failure, MERGE_PATCH};

/// The maximum size of a JSON body, in bytes.
const JSON_BYTES: usize = 64 << 10;

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The type of JSON bodies.
const JSON: &str = "application/json";

/// Reads a JSON body. 415 if it has another type, and 413 over 64 KiB.
pub(crate) async fn read_json(call: &Call, body: Body) -> Result<Vec<u8>, Failure> {
    if !is_of(call, &[JSON]) {
        return Err(Failure::UnsupportedMediaType(JSON));
    }

    refuse_coding(&call.headers)?;
    let json = read_small(call, body).await?;
    if let Some(notes) = &call.notes {
        notes.keep_body(&json);
    }
    Ok(json)
}

/// Reads an optional JSON body. An empty body needs no type.
pub(crate) async fn read_optional_json(
    call: &Call,
    body: Body,
) -> Result<Option<Vec<u8>>, Failure> {
    if call.headers.contains_key(CONTENT_TYPE) {
        return read_json(call, body).await.map(Some);
    }
    let read = read_small(call, body).await?;
    if read.is_empty() { Ok(None) } else { Err(Failure::UnsupportedMediaType(JSON)) }
}

/// Reads a JSON merge patch. 415 if the body has another type, and 413 over 64 KiB. The audit log does not
/// get the body, because it contains the application's metadata.
pub(crate) async fn read_merge_patch(call: &Call, body: Body) -> Result<Vec<u8>, Failure> {
    if !is_of(call, &[MERGE_PATCH, JSON]) {
        return Err(Failure::UnsupportedPatch);
    }
    refuse_coding(&call.headers)?;
    Ok(read_small(call, body).await?)
}

/// Returns true if the body has one of these types, with any parameters.
fn is_of(call: &Call, types: &[&str]) -> bool {
    let media_type = content_type(&call.headers).and_then(MediaType::parse);
    media_type.is_some_and(|media_type| types.contains(&media_type.essence()))
}

async fn read_small(call: &Call, body: Body) -> error::Result<Vec<u8>> {
    if call.content_length().is_some_and(|length| length > JSON_BYTES as u64) {
        return Err(too_large(JSON_BYTES as u64).into());
    }
    let mut read = BodyReader::new(body, call.app.options.body).collect(JSON_BYTES).await?;
    call.recheck().await?;
    // RFC 8259 section 8.1 lets a reader ignore the mark that some editors put in front.
    if read.starts_with(BYTE_ORDER_MARK) {
        read.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(read)
}
