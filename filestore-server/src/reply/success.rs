//! Replies for successful requests, with a constructor for each status.

use std::borrow::Cow;
use std::convert::Infallible;

use bytes::Bytes;
use filestore_core::{Error, FileRecord};
use futures_util::Stream;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use warp::Reply as _;
use warp::reply::Response;

use super::document;
use super::error::Failure;
use super::unshared::Unshared;
use crate::http::etag::EntityTag;
use crate::listen::Endless;
use crate::metrics::Format;

/// The header that marks a repeated stored reply.
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Replies 200 with a document of `value`.
pub(crate) fn ok(value: &impl Serialize) -> Result<Response, Failure> {
    Ok(document::of_value(StatusCode::OK, value)?)
}

/// Replies 200 with a document that is already JSON text.
pub(crate) fn json_text(json: Cow<'static, str>) -> Response {
    let json = match json {
        Cow::Borrowed(text) => Bytes::from_static(text.as_bytes()),
        Cow::Owned(text) => Bytes::from(text),
    };
    document::of_text(StatusCode::OK, json)
}

/// Replies 200 with a page of the service itself. The policy says what the page can run and load.
pub(crate) fn page(html: &'static str, policy: HeaderValue) -> Response {
    let mut response = document::of_text(StatusCode::OK, Bytes::from_static(html.as_bytes()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    response
}

/// Replies 200 with the text of the metrics.
pub(crate) fn metrics(text: String, format: Format) -> Response {
    let mut response = document::of_text(StatusCode::OK, text.into());
    let content_type = HeaderValue::from_static(format.content_type());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// The mark of a reply with work that continues after its head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unfinished;

/// Replies 200 with a document. Its JSON text arrives in pieces. A failed piece cuts the connection.
pub(crate) fn ok_streamed(
    json: impl Stream<Item = Result<Bytes, Error>> + Send + Sync + 'static,
) -> Response {
    let mut response = document::of_text(StatusCode::OK, Bytes::new());
    *response.body_mut() = warp::reply::stream(json).into_response().into_body();
    response.extensions_mut().insert(Unfinished);
    response
}

/// The media type of a stream of events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// The header that keeps nginx from collecting a reply before it passes on the first byte.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Replies 200 with a stream of events, which has no end of its own. `no-transform` keeps proxies from compressing
/// it, because a compressor holds bytes back.
pub(crate) fn event_stream(
    blocks: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    let mut response = document::of_text(StatusCode::OK, Bytes::new());
    *response.body_mut() = warp::reply::stream(Unshared::new(blocks)).into_response().into_body();
    response.extensions_mut().insert(Endless);

    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Replies 201 with a document of `value`.
pub(crate) fn created(value: &impl Serialize) -> Result<Response, Failure> {
    Ok(document::of_value(StatusCode::CREATED, value)?)
}

/// Replies 202 with a document of `value`, while the work of the request goes on.
pub(crate) fn accepted(value: &impl Serialize) -> Result<Response, Failure> {
    Ok(document::of_value(StatusCode::ACCEPTED, value)?)
}

/// Replies 201 with the JSON text that was stored when the resource was created, byte for byte. A header
/// marks such a reply, because the resource may have been changed or deleted since.
pub(crate) fn created_again(json: Vec<u8>) -> Response {
    let mut response = document::of_text(StatusCode::CREATED, json.into());
    response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    response
}

/// Replies 204 to a preflight, with the allowed values.
pub(crate) fn preflight(allowed: HeaderMap) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    *response.headers_mut() = allowed;
    response
}

/// The status of a reply without a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Empty {
    /// 200.
    Ok,
    /// 201.
    Created,
    /// 204.
    NoContent,
}

/// Replies without a body.
pub(crate) fn empty(status: Empty) -> Response {
    let mut response = Response::default();
    *response.status_mut() = match status {
        Empty::Ok => StatusCode::OK,
        Empty::Created => StatusCode::CREATED,
        Empty::NoContent => StatusCode::NO_CONTENT,
    };
    response
}

/// Replies 200 instead of another success.
pub(crate) fn as_ok(mut response: Response) -> Response {
    *response.status_mut() = StatusCode::OK;
    response
}

/// Replies 303 to `location`.
pub(crate) fn see_other(location: HeaderValue) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, location);
    response
}

/// Replies 308 to `location`.
pub(crate) fn moved(location: HeaderValue) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(LOCATION, location);
    response
}

/// Replies 302 to `location`.
pub(crate) fn found(location: HeaderValue) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(LOCATION, location);
    response
}

/// Replies 304. The caller adds the headers of a 200 (RFC 9110 section 15.4.5).
pub(crate) fn not_modified() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

/// Adds the entity tag of the record's content.
pub(crate) fn with_etag(mut response: Response, record: &FileRecord) -> Response {
    response.headers_mut().insert(ETAG, EntityTag::of(&record.blob.sha256).to_header());
    response
}
