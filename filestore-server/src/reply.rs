//! Replies that are documents of the API: JSON, never cached, never sniffed.

use bytes::Bytes;
use filestore_core::Error;
use filestore_core::domain::record::FileRecord;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use warp::reply::Response;

use crate::error::Failure;
use crate::http::etag::EntityTag;

/// The value that keeps browsers from guessing types.
pub(crate) const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// A document that is JSON already.
pub(crate) fn plain(status: StatusCode, json: Bytes) -> Response {
    let mut response = Response::new(json.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

/// A document of `value`.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Result<Response, Failure> {
    let body = serde_json::to_vec(value).map_err(|e| Error::internal("encoding a reply", e))?;
    Ok(plain(status, body.into()))
}

/// Adds the entity tag of the record's content.
pub(crate) fn with_etag(mut response: Response, record: &FileRecord) -> Response {
    response.headers_mut().insert(ETAG, EntityTag::of(&record.blob.sha256).to_header());
    response
}
