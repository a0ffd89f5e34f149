//! JSON documents of the API. Browsers neither cache nor sniff them.

use bytes::Bytes;
use filestore_core::{Error, Result};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use warp::reply::Response;

/// The value that keeps browsers from guessing types.
pub(crate) const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// Creates a document from JSON text.
pub(super) fn of_text(status: StatusCode, json: Bytes) -> Response {
    let mut response = Response::new(json.into());
    *response.status_mut() = status;

    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

/// Creates a document from a value.
pub(super) fn of_value(status: StatusCode, value: &impl Serialize) -> Result<Response> {
    let body = serde_json::to_vec(value).map_err(|e| Error::internal("encoding a reply", e))?;
    Ok(of_text(status, body.into()))
}
