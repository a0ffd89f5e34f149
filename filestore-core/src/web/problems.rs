//! Errors as replies.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::body::Body;
use super::content::NOSNIFF;
use super::range::ByteRange;
use super::read_request::Refusal;
use crate::api::{ErrorCode, Problem, problem_of};
use crate::domain::error::{Error, ErrorKind};
use crate::tasks;

/// The default value of Retry-After for a full queue.
const BUSY_RETRY_SECS: u64 = 1;

/// The header with the id of the request.
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Creates the reply for an error: its status, and a problem document (RFC 9457) like those of the filestore server.
///
/// The document shows the message and the details, but never the source of the error. If the store is at fault (5xx),
/// the call logs the whole chain with the id that is in the reply.
///
/// ```
/// use filestore_core::{Error, ErrorKind};
/// use filestore_core::web::problem;
///
/// let reply = problem(&Error::not_found("file"));
/// assert_eq!(reply.status(), 404);
/// assert_eq!(reply.headers()["content-type"], "application/problem+json");
/// ```
pub fn problem(error: &Error) -> Response<Body> {
    let id = request_id();
    let status = error.kind().http_status();
    if status.is_server_error() {
        tracing::error!(request_id = %id, code = error.kind().code(), error = %error.chain(), "request failed");
    }

    let mut response = document(&problem_of(error, id));
    let busy = (error.kind() == ErrorKind::Busy).then_some(BUSY_RETRY_SECS);
    if let Some(secs) = error.details().retry_after_secs.or(busy) {
        response.headers_mut().insert(RETRY_AFTER, secs.into());
    }
    response
}

/// Creates the reply for a refused read.
pub(super) fn refused(refusal: &Refusal) -> Response<Body> {
    match refusal {
        Refusal::Core(error) => problem(error),
        Refusal::RangeNotSatisfiable { size_bytes } => {
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            let code = ErrorCode::RangeNotSatisfiable;
            let mut problem = Problem::new(code, status.as_u16(), request_id());
            status.canonical_reason().unwrap_or_default().clone_into(&mut problem.title);
            problem.detail = format!("the range lies outside of the file's bytes: {size_bytes}");

            let mut response = document(&problem);
            let range = ByteRange::Unsatisfiable.content_range(*size_bytes);
            response.headers_mut().extend(range.map(|range| (CONTENT_RANGE, range)));
            response
        }
    }
}

fn request_id() -> String {
    tasks::random_name()
}

fn document(problem: &Problem) -> Response<Body> {
    let json = serde_json::to_vec(problem).expect("a problem has string keys and plain values");
    let mut response = Response::new(Body::from(Bytes::from(json)));
    let status = StatusCode::from_u16(problem.status);
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);

    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    if let Ok(id) = HeaderValue::try_from(&problem.request_id) {
        headers.insert(X_REQUEST_ID, id);
    }
    response
}
