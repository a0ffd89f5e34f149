//! Failures as replies.
//!
//! A failure has the status and the code of its kind. The core's kinds come from [`ErrorKind`], and the
//! server's own kinds come from [`RefusalKind`].
//!
//! Every failure becomes a problem document (RFC 9457). Details that clients must not see stay in the source
//! chain of the core's error. The server logs this chain here, once, with the request's id.

use std::borrow::Cow;

use bytes::Bytes;
use filestore_core::api::{ErrorCode, Problem, problem_of};
use filestore_core::{Details, Error, ErrorKind, web};
use http::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use warp::reply::Response;

use super::document;
use super::request_id::RequestId;
use crate::admission::guard::Unwanted;
use crate::admission::limiter::Refused;
use crate::error::{self, Refusal, RefusalKind};
use crate::http::range::ByteRange;
use crate::listen::throttle::Throttle;
use crate::resumable::register;
use crate::streams::TooManyStreams;

/// The default value of Retry-After for a full queue.
const BUSY_RETRY_SECS: u64 = 1;

/// The value of Retry-After for one stream of events too many.
const STREAM_RETRY_SECS: u64 = 5;

/// The patch types of a resource (RFC 5789 section 3.1).
const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");

/// The type of JSON bodies that change single members of a resource (RFC 7396 section 4).
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// The advice for a full disk. Deletions and the purge need no free space.
const ROOM: &str = "delete files and have them purged: filestore purge run --now";

/// Limits the log lines about refused requests, because clients could otherwise fill the log.
static TURNED_AWAY: Throttle = Throttle::new();

/// The reasons why a request is refused or fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The core refused the request or failed.
    Core(Error),
    /// The request cannot be read, or has no valid key.
    Refused(Refusal),
    /// The request has no Host header, or several.
    WithoutOneHost,
    /// The request names a host that does not belong to this server.
    Misdirected,
    /// The client makes too many requests.
    RateLimited(Refused),
    /// The client, or all clients together, have too many streams of events.
    TooManyStreams(TooManyStreams),
    /// No resource has this path.
    UnknownPath,
    /// The resource does not support the method. The value is that of `Allow`.
    MethodNotAllowed(&'static str),
    /// The body does not have this type.
    UnsupportedMediaType(&'static str),
    /// The body is not a JSON merge patch.
    UnsupportedPatch,
    /// The body has a content coding.
    UnsupportedCoding,
    /// The range is outside the content, which has this many bytes.
    RangeNotSatisfiable(u64),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<error::Error> for Failure {
    fn from(error: error::Error) -> Self {
        match error {
            error::Error::Core(error) => Self::Core(error),
            error::Error::Refusal(refusal) => Self::Refused(refusal),
        }
    }
}

impl From<web::Refusal> for Failure {
    fn from(refusal: web::Refusal) -> Self {
        match refusal {
            web::Refusal::Core(error) => Self::Core(error),
            web::Refusal::RangeNotSatisfiable { size_bytes } => {
                Self::RangeNotSatisfiable(size_bytes)
            }
        }
    }
}

impl From<Unwanted> for Failure {
    fn from(unwanted: Unwanted) -> Self {
        match unwanted {
            Unwanted::Misdirected => Self::Misdirected,
            Unwanted::Forbidden(message) => Error::new(ErrorKind::Forbidden, message).into(),
        }
    }
}

impl From<TooManyStreams> for Failure {
    fn from(refusal: TooManyStreams) -> Self {
        Self::TooManyStreams(refusal)
    }
}

/// The failure kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Core(ErrorKind),
    Own(RefusalKind),
}

impl Kind {
    fn status(self) -> StatusCode {
        match self {
            Self::Core(kind) => kind.http_status(),
            Self::Own(kind) => kind.http_status(),
        }
    }

    fn code(self) -> ErrorCode {
        match self {
            Self::Core(kind) => kind.into(),
            Self::Own(kind) => kind.code(),
        }
    }
}

/// Returns true if the disk of the data directory is full, and not the destination of a backup.
fn is_disk_full(error: &Error) -> bool {
    error.kind() == ErrorKind::StorageFull
        && error.details().field.as_deref() != Some("destination")
}

impl Failure {
    /// Creates the reply to request `id` of a resumable upload by a draft, with the problem types that the draft
    /// registers. `provided` is the offset of the request.
    pub(crate) fn into_draft_response(self, id: &RequestId, provided: Option<u64>) -> Response {
        let expected = match &self {
            Self::Core(error) => error.details().offset,
            _ => None,
        };
        let mut problem = self.problem(id);
        register(&mut problem, expected, provided);
        self.into_response_with(id, &problem)
    }

    /// Creates the reply to request `id`. Logs failures of the service.
    pub(crate) fn into_response(self, id: &RequestId) -> Response {
        let problem = self.problem(id);
        self.into_response_with(id, &problem)
    }

    fn into_response_with(self, id: &RequestId, problem: &Problem) -> Response {
        self.log(id);
        let body = serde_json::to_vec(problem).expect("a problem has string keys and plain values");
        let mut response = document::of_text(self.kind().status(), Bytes::from(body));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        self.add_headers(headers);
        response
    }

    /// Returns code and text for one of several results in a reply. Logs like
    /// [`into_response`](Self::into_response).
    pub(crate) fn told(self, id: &RequestId) -> (ErrorCode, String) {
        self.log(id);
        (self.kind().code(), self.detail().into_owned())
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Core(error) => Kind::Core(error.kind()),
            Self::Refused(refusal) => Kind::Own(refusal.kind()),
            Self::UnknownPath => Kind::Core(ErrorKind::NotFound),
            Self::WithoutOneHost => Kind::Own(RefusalKind::MalformedRequest),
            Self::Misdirected => Kind::Own(RefusalKind::MisdirectedRequest),
            Self::RateLimited(_) | Self::TooManyStreams(_) => Kind::Own(RefusalKind::RateLimited),
            Self::MethodNotAllowed(_) => Kind::Own(RefusalKind::MethodNotAllowed),
            Self::UnsupportedMediaType(_) | Self::UnsupportedPatch | Self::UnsupportedCoding => {
                Kind::Own(RefusalKind::UnsupportedMediaType)
            }
            Self::RangeNotSatisfiable(_) => Kind::Own(RefusalKind::RangeNotSatisfiable),
        }
    }

    fn detail(&self) -> Cow<'_, str> {
        match self {
            Self::Core(error) if is_disk_full(error) => {
                format!("{}, so {ROOM}", error.message()).into()
            }
            Self::Core(error) => error.message().into(),
            Self::Refused(refusal) => refusal.message().into(),
            Self::WithoutOneHost => "a request has exactly one Host header".into(),
            Self::Misdirected => {
                "a server without keys answers to its own hosts only: loopback, its address, \
                public_url's host, allowed_hosts"
                    .into()
            }
            Self::RateLimited(refused) => refused.detail().into(),
            Self::TooManyStreams(TooManyStreams { limit, of }) => {
                format!("too many streams of events, limit for each {of}: {limit}").into()
            }
            Self::UnknownPath => "no such path".into(),
            Self::MethodNotAllowed(allow) => format!("this path answers only {allow}").into(),
            Self::UnsupportedMediaType(expected) => format!("the body must be {expected}").into(),
            Self::UnsupportedPatch => format!("the body must be {MERGE_PATCH}").into(),
            Self::UnsupportedCoding => "the body must have no content encoding".into(),
            Self::RangeNotSatisfiable(size) => {
                format!("the range lies outside of the file's bytes: {size}").into()
            }
        }
    }

    fn details(&self) -> Details {
        let mut details = Details::default();
        match self {
            Self::Refused(refusal) => details = refusal.details().clone(),
            Self::MethodNotAllowed(allow) => {
                details.allowed = allow.split(", ").map(str::to_owned).collect();
            }
            Self::UnsupportedMediaType(expected) => details.allowed = vec![(*expected).to_owned()],
            Self::UnsupportedPatch => details.allowed = vec![MERGE_PATCH.to_owned()],
            Self::UnsupportedCoding => details.field = Some("Content-Encoding".to_owned()),
            Self::TooManyStreams(refusal) => details.limit = Some(refusal.limit as u64),
            Self::Misdirected => details.field = Some("Host".to_owned()),
            // The core makes the document of its errors.
            Self::Core(_)
            | Self::WithoutOneHost
            | Self::RateLimited(_)
            | Self::UnknownPath
            | Self::RangeNotSatisfiable(_) => {}
        }
        details
    }

    fn problem(&self, id: &RequestId) -> Problem {
        if let Self::Core(error) = self {
            let detail = self.detail().into_owned();
            let mut problem = problem_of(error, id.to_string());
            problem.detail = detail;
            return problem;
        }
        let (details, status) = (self.details(), self.kind().status());
        let mut problem = Problem::new(self.kind().code(), status.as_u16(), id.to_string());
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
            }
            Self::Refused(refusal) => {
                if refusal.kind() == RefusalKind::Unauthorized {
                    headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                }
            }

            Self::RateLimited(refused) => {
                headers.insert(RETRY_AFTER, refused.retry_after_secs.into());
                if let Some(rate) = refused.rate {
                    rate.add_headers(headers);
                }
            }
            Self::TooManyStreams(_) => {
                headers.insert(RETRY_AFTER, STREAM_RETRY_SECS.into());
            }
            Self::MethodNotAllowed(allow) => {
                headers.insert(ALLOW, HeaderValue::from_static(allow));
            }
            Self::RangeNotSatisfiable(size) => {
                headers.extend(
                    ByteRange::Unsatisfiable.content_range(*size).map(|v| (CONTENT_RANGE, v)),
                );
            }

            // RFC 5789 section 2.2.
            Self::UnsupportedPatch => {
                headers.insert(ACCEPT_PATCH, HeaderValue::from_static(MERGE_PATCH));
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
        let status = error.kind().http_status();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            if let Some(before) = TURNED_AWAY.admit() {
                tracing::warn!(request_id = %id, trace_id = id.trace_id(), code = error.kind().code(), error = %error.chain(), before, "turned away");
            }
        } else if status.is_server_error() {
            tracing::error!(request_id = %id, trace_id = id.trace_id(), code = error.kind().code(), error = %error.chain(), "request failed");
        }
    }
}

/// Replies 404 instead of 410, to clients that do not know 410.
pub(crate) fn without_gone(mut response: Response) -> Response {
    if response.status() == StatusCode::GONE {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use http_body_util::BodyExt;

    use super::*;

    async fn shown(failure: Failure) -> (http::response::Parts, Problem) {
        let (parts, body) = failure.into_response(&RequestId::fresh()).into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts, serde_json::from_slice(&body).unwrap())
    }

    /// Lists every kind of both with whether a retry can help.
    fn kinds() -> impl Iterator<Item = (Kind, bool)> {
        let core = ErrorKind::ALL.iter().map(|&kind| (Kind::Core(kind), kind.is_retryable()));
        core.chain(RefusalKind::ALL.iter().map(|&kind| (Kind::Own(kind), kind.is_retryable())))
    }

    #[test]
    fn the_reference_lists_every_kind_with_its_status_and_its_code_and_no_other() {
        let reference = include_str!("../../docs/reference/errors.md");
        let rows = reference.lines().filter(|line| line.starts_with("| ") && line.contains(" | `"));
        let documented: BTreeSet<_> = rows
            .filter_map(|row| {
                let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
                let status: u16 = cells[0].parse().ok()?;
                let may_help = cells.last()?.starts_with("yes");
                Some((status, cells[1].trim_matches('`').to_owned(), may_help))
            })
            .collect();

        let made = kinds().map(|(kind, may_help)| {
            (kind.status().as_u16(), kind.code().as_str().to_owned(), may_help)
        });
        assert_eq!(documented, made.collect());
    }

    #[test]
    fn every_code_of_the_wire_has_one_kind() {
        let mut codes: Vec<_> = kinds().map(|(kind, _)| kind.code().as_str().to_owned()).collect();
        let mut known: Vec<_> =
            ErrorCode::KNOWN.iter().map(|code| code.as_str().to_owned()).collect();
        codes.sort();
        known.sort();
        assert_eq!(codes, known);
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
