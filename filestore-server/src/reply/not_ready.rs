//! The reply of a service that is not ready. The reply is a problem document and a readiness report in one.

use filestore_core::api::Problem;
use http::HeaderValue;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use serde::Serialize;
use warp::reply::Response;

use super::document;
use super::error::Failure;
use super::request_id::RequestId;
use crate::error::RefusalKind;

/// The value of Retry-After while the service is not ready.
const NOT_READY_RETRY_SECS: u64 = 5;

/// Replies 503 with a problem document that also contains the members of the readiness report, for monitors.
pub(crate) fn not_ready(report: &impl Serialize, id: &RequestId) -> Result<Response, Failure> {
    let (status, code) = (RefusalKind::NotReady.http_status(), RefusalKind::NotReady.code());
    let mut problem = Problem::new(code, status.as_u16(), id.to_string());
    status.canonical_reason().unwrap_or_default().clone_into(&mut problem.title);
    "the database or the storage does not answer".clone_into(&mut problem.detail);

    let mut response = document::of_value(status, &Joined { problem, report })?;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(RETRY_AFTER, NOT_READY_RETRY_SECS.into());
    Ok(response)
}

/// One document made from two.
#[derive(Serialize)]
struct Joined<'a, R> {
    #[serde(flatten)]
    problem: Problem,
    #[serde(flatten)]
    report: &'a R,
}
