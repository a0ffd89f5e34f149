//! Failures as replies: the one place that maps failures to HTTP statuses.
//!
//! Every failure becomes a problem document (RFC 9457). Details that clients must not see stay in the
//! source chain of the core's error, which is logged here, once, under the request's id.

use std::borrow::Cow;

use bytes::Bytes;
use filestore_core::api::{ErrorCode, Problem, field_name};
use filestore_core::{Details, Error, ErrorKind};
use http::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use warp::reply::Response;

use super::document;
use super::request_id::RequestId;
use crate::http::range::ByteRange;
use crate::server::limiter::Refused;
use crate::throttle::Throttle;

/// The value of Retry-After for a full queue, unless the error carries another one.
const BUSY_RETRY_SECS: u64 = 1;

/// The value of Retry-After while the service is not ready.
const NOT_READY_RETRY_SECS: u64 = 5;

/// The log of requests that are turned away, which clients could otherwise fill.
static TURNED_AWAY: Throttle = Throttle::new();

/// Reasons why a request is refused or fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The core refused or failed.
    Core(Error),
    /// The request has no Host header, or several.
    WithoutOneHost,
    /// The request names a host that is not this server's.
    Misdirected,
    /// The client makes too many requests.
    RateLimited(Refused),
    /// No resource has that path.
    UnknownPath,
    /// The resource does not know the method; carries the value of `Allow`.
    MethodNotAllowed(&'static str),
    /// The body is of another type than this one.
    UnsupportedMediaType(&'static str),
    /// The body has a content coding.
    UnsupportedCoding,
    /// The range lies outside of so many bytes.
    RangeNotSatisfiable(u64),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

/// Maps a kind of error to its status. Exhaustive on purpose: a new kind needs a decision here.
const fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidField
        | ErrorKind::MissingField
        | ErrorKind::UnknownField
        | ErrorKind::RepeatedField
        | ErrorKind::MalformedBody => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden | ErrorKind::SignatureInvalid | ErrorKind::SignatureExpired => {
            StatusCode::FORBIDDEN
        }

        ErrorKind::NotFound | ErrorKind::NoActiveBinding => StatusCode::NOT_FOUND,
        ErrorKind::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
        ErrorKind::InvalidTransition
        | ErrorKind::Conflict
        | ErrorKind::AlreadyPurging
        | ErrorKind::BindingRequired
        | ErrorKind::BindingAlreadyActive
        | ErrorKind::ProviderInactive
        | ErrorKind::IdempotencyInProgress
        | ErrorKind::SignatureUsed => StatusCode::CONFLICT,

        ErrorKind::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ErrorKind::TooLarge | ErrorKind::TooManyItems | ErrorKind::QuotaExceeded => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        ErrorKind::UnknownProvider
        | ErrorKind::IdempotencyMismatch
        | ErrorKind::DigestMismatch
        | ErrorKind::NotAnImage
        | ErrorKind::ConversionFailed
        | ErrorKind::CorruptImage
        | ErrorKind::ImageTooLarge => StatusCode::UNPROCESSABLE_ENTITY,

        ErrorKind::Locked
        | ErrorKind::Unusable
        | ErrorKind::RecordDamaged
        | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorKind::ProviderUnavailable => StatusCode::BAD_GATEWAY,
        ErrorKind::Busy | ErrorKind::OutcomeUnknown | ErrorKind::DatabaseFull => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorKind::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
    }
}

/// Replies 503 with a problem document that holds the members of the readiness report as well, as
/// monitors read them.
pub(crate) fn not_ready(report: &impl Serialize, id: &RequestId) -> Result<Response, Failure> {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let mut problem = Problem::new(ErrorCode::NotReady, status.as_u16(), id.to_string());
    status.canonical_reason().unwrap_or_default().clone_into(&mut problem.title);
    "the database or the storage does not answer".clone_into(&mut problem.detail);

    let mut response = document::of_value(status, &Joined { problem, report })?;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(RETRY_AFTER, NOT_READY_RETRY_SECS.into());
    Ok(response)
}

/// One document of two.
#[derive(Serialize)]
struct Joined<'a, R> {
    #[serde(flatten)]
    problem: Problem,
    #[serde(flatten)]
    report: &'a R,
}

impl Failure {
    /// Builds the reply to request `id`. Logs failures that are the service's own fault.
    pub(crate) fn into_response(self, id: &RequestId) -> Response {
        self.log(id);
        let status = self.status();
        let problem = self.problem(id, status);
        let body =
            serde_json::to_vec(&problem).expect("a problem has string keys and plain values");
        let mut response = document::of_text(status, Bytes::from(body));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        self.add_headers(headers);
        response
    }

    /// Says in one result among several what a reply of its own would say. Logs as
    /// [`into_response`](Self::into_response) does.
    pub(crate) fn told(self, id: &RequestId) -> (ErrorCode, String) {
        self.log(id);
        (self.code(), self.detail().into_owned())
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Core(error) => status_of(error.kind()),
            Self::WithoutOneHost => StatusCode::BAD_REQUEST,
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::RateLimited(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::UnknownPath => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::UnsupportedMediaType(_) | Self::UnsupportedCoding => {
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            Self::RangeNotSatisfiable(_) => StatusCode::RANGE_NOT_SATISFIABLE,
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Core(error) => error.kind().into(),
            Self::WithoutOneHost => ErrorCode::MalformedRequest,
            Self::Misdirected => ErrorCode::MisdirectedRequest,
            Self::RateLimited(_) => ErrorCode::RateLimited,
            Self::UnknownPath => ErrorCode::NotFound,
            Self::MethodNotAllowed(_) => ErrorCode::MethodNotAllowed,
            Self::UnsupportedMediaType(_) | Self::UnsupportedCoding => {
                ErrorCode::UnsupportedMediaType
            }
            Self::RangeNotSatisfiable(_) => ErrorCode::RangeNotSatisfiable,
        }
    }

    fn detail(&self) -> Cow<'_, str> {
        match self {
            Self::Core(error) => error.message().into(),
            Self::WithoutOneHost => "a request has exactly one Host header".into(),
            Self::Misdirected => {
                "a server without keys answers to its own hosts only: loopback, its address, \
                public_url's host, allowed_hosts"
                    .into()
            }
            Self::RateLimited(refused) => refused.detail().into(),
            Self::UnknownPath => "no such path".into(),
            Self::MethodNotAllowed(allow) => format!("this path answers only {allow}").into(),
            Self::UnsupportedMediaType(expected) => format!("the body must be {expected}").into(),
            Self::UnsupportedCoding => "the body must have no content encoding".into(),
            Self::RangeNotSatisfiable(size) => {
                format!("the range lies outside of the file's bytes: {size}").into()
            }
        }
    }

    fn details(&self) -> Details {
        let mut details = Details::default();
        match self {
            Self::Core(error) => {
                details = error.details().clone();
                details.field = field_name(error);
            }
            Self::MethodNotAllowed(allow) => {
                details.allowed = allow.split(", ").map(str::to_owned).collect();
            }
            Self::UnsupportedMediaType(expected) => details.allowed = vec![(*expected).to_owned()],
            Self::UnsupportedCoding => details.field = Some("Content-Encoding".to_owned()),
            Self::Misdirected => details.field = Some("Host".to_owned()),
            Self::WithoutOneHost
            | Self::RateLimited(_)
            | Self::UnknownPath
            | Self::RangeNotSatisfiable(_) => {}
        }
        details
    }

    fn problem(&self, id: &RequestId, status: StatusCode) -> Problem {
        let details = self.details();
        let mut problem = Problem::new(self.code(), status.as_u16(), id.to_string());
        status.canonical_reason().unwrap_or_default().clone_into(&mut problem.title);
        problem.detail = self.detail().into_owned();
        problem.field = details.field;
        problem.item = details.item;
        problem.allowed = details.allowed;
        problem.limit = details.limit;
        problem.from = details.from;
        problem.to = details.to;
        problem
    }

    fn add_headers(&self, headers: &mut HeaderMap) {
        match self {
            Self::Core(error) => {
                let busy = (error.kind() == ErrorKind::Busy).then_some(BUSY_RETRY_SECS);
                if let Some(secs) = error.details().retry_after_secs.or(busy) {
                    headers.insert(RETRY_AFTER, secs.into());
                }
                if error.kind() == ErrorKind::Unauthorized {
                    headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                }
            }

            Self::RateLimited(refused) => {
                headers.insert(RETRY_AFTER, refused.retry_after_secs.into());
                if let Some(rate) = refused.rate {
                    rate.add_headers(headers);
                }
            }
            Self::MethodNotAllowed(allow) => {
                headers.insert(ALLOW, HeaderValue::from_static(allow));
            }
            Self::RangeNotSatisfiable(size) => {
                headers.extend(
                    ByteRange::Unsatisfiable.content_range(*size).map(|v| (CONTENT_RANGE, v)),
                );
            }

            // RFC 9110 section 15.5.16: a 415 says which coding would be accepted.
            Self::UnsupportedCoding => {
                headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            }
            Self::WithoutOneHost
            | Self::Misdirected
            | Self::UnknownPath
            | Self::UnsupportedMediaType(_) => {}
        }
    }

    fn log(&self, id: &RequestId) {
        let Self::Core(error) = self else { return };
        let status = status_of(error.kind());
        if status == StatusCode::SERVICE_UNAVAILABLE {
            if let Some(before) = TURNED_AWAY.admit() {
                tracing::warn!(request_id = %id, trace_id = id.trace_id(), code = error.kind().code(), error = %error.chain(), before, "turned away");
            }
        } else if status.is_server_error() {
            tracing::error!(request_id = %id, trace_id = id.trace_id(), code = error.kind().code(), error = %error.chain(), "request failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    async fn shown(failure: Failure) -> (http::response::Parts, Problem) {
        let (parts, body) = failure.into_response(&RequestId::fresh()).into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts, serde_json::from_slice(&body).unwrap())
    }

    #[test]
    fn every_kind_is_an_error_status() {
        for kind in ErrorKind::ALL {
            let status = status_of(*kind);
            assert!(status.is_client_error() || status.is_server_error(), "{kind:?} is {status}");
        }
    }

    #[test]
    fn the_reference_gives_every_code_its_status() {
        let reference = include_str!("../../docs/reference.md");

        for kind in ErrorKind::ALL {
            let row = format!("| {} | `{}` |", status_of(*kind).as_u16(), kind.code());
            assert!(reference.contains(&row), "{row}");
        }
    }

    #[test]
    fn statuses_are_those_of_the_contract() {
        for (kind, status) in [
            (ErrorKind::UnknownField, 400),
            (ErrorKind::Unauthorized, 401),
            (ErrorKind::Forbidden, 403),
            (ErrorKind::NoActiveBinding, 404),
            (ErrorKind::BodyTimeout, 408),
            (ErrorKind::InvalidTransition, 409),
            (ErrorKind::PreconditionFailed, 412),
            (ErrorKind::QuotaExceeded, 413),
            (ErrorKind::DigestMismatch, 422),
            (ErrorKind::ProviderUnavailable, 502),
            (ErrorKind::Busy, 503),
            (ErrorKind::OutcomeUnknown, 503),
            (ErrorKind::DatabaseFull, 503),
            (ErrorKind::StorageFull, 507),
        ] {
            assert_eq!(status_of(kind).as_u16(), status, "{kind:?}");
        }
    }

    #[tokio::test]
    async fn a_problem_carries_the_details_and_the_request_id_but_not_the_source() {
        let error = Error::internal("opening a file", std::io::Error::other("/secret/path"))
            .with_field("file")
            .with_item(3)
            .with_limit(7);

        let id = RequestId::fresh();
        let (parts, body) = Failure::from(error).into_response(&id).into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        assert!(!String::from_utf8_lossy(&body).contains("secret"));

        let problem: Problem = serde_json::from_slice(&body).unwrap();
        assert_eq!(parts.headers[CONTENT_TYPE], "application/problem+json");
        assert_eq!(problem.kind, "urn:filestore:problem:internal");
        assert_eq!((problem.status, problem.title.as_str()), (500, "Internal Server Error"));
        assert_eq!(
            (problem.field.as_deref(), problem.item, problem.limit),
            (Some("file"), Some(3), Some(7))
        );
        assert_eq!(problem.request_id, id.to_string());
        assert_eq!(problem.instance, format!("urn:request:{id}"));
    }

    #[tokio::test]
    async fn a_wrong_method_names_the_right_ones() {
        let (parts, problem) = shown(Failure::MethodNotAllowed("POST, PUT")).await;
        assert_eq!(
            (parts.status.as_u16(), &parts.headers[ALLOW]),
            (405, &"POST, PUT".parse().unwrap())
        );
        assert_eq!(problem.allowed, ["POST", "PUT"]);
    }

    #[tokio::test]
    async fn a_full_queue_says_when_to_come_back() {
        let (parts, _) = shown(Error::new(ErrorKind::Busy, "busy").into()).await;
        assert_eq!(parts.headers[RETRY_AFTER], "1");
        let (parts, _) =
            shown(Error::new(ErrorKind::Busy, "busy").with_retry_after_secs(9).into()).await;
        assert_eq!(parts.headers[RETRY_AFTER], "9");
    }

    #[tokio::test]
    async fn a_range_outside_names_the_size() {
        let (parts, _) = shown(Failure::RangeNotSatisfiable(5)).await;
        assert_eq!(
            (parts.status.as_u16(), &parts.headers[CONTENT_RANGE]),
            (416, &"bytes */5".parse().unwrap())
        );
    }
}
