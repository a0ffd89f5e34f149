//! The client's error.
//!
//! An [`Error`] contains the kind of failure, the server's reply, and a hint. The error can
//! contain host names and the base URL, but never a presigned URL or an API key.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use filestore_core::api::{ErrorCode, InvalidId, Problem};

/// A call's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The failure kind. Later versions can add kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The connection failed before the client sent the request, or client and server do not agree
    /// on TLS. See [`Error::tls_problem`].
    Connect,
    /// The server or its storage provider did not answer in time.
    Timeout,
    /// The connection broke during the request or the reply.
    Interrupted,
    /// The file, binding or organization does not exist, or the key has no access to it.
    NotFound,
    /// The state of the file or binding does not allow the change, another request was faster, or
    /// the file was replaced during the download.
    Conflict,
    /// The request is invalid. [`Error::field`] often names the field.
    Invalid,
    /// The request exceeds a file, batch or quota limit.
    TooLarge,
    /// The server is busy. See [`Error::retry_after`].
    Busy,
    /// The API key is missing or invalid.
    Unauthorized,
    /// The API key does not have the required right.
    Forbidden,
    /// The file has changed since you read its ETag.
    PreconditionFailed,
    /// The storage provider of the server failed.
    Provider,
    /// The server failed.
    Server,
    /// The bytes do not match their SHA-256.
    Digest,
    /// The reply is not from a filestore server.
    Protocol,
    /// A local read or write failed.
    Io,
}

/// The reason why client and server do not agree on TLS. Later versions can add reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsProblem {
    /// The server's certificate is invalid, or its issuer is not trusted.
    Certificate,
    /// The server answered without TLS. Probably it expects `http://`.
    NotTls,
    /// The server did not answer a request without TLS with HTTP. Probably it expects `https://`.
    NotHttp,
}

/// A failed call.
///
/// Branch on [`kind`](Self::kind). The `Display` text is one line for people. The line contains the
/// failure, the reply of the server (status, code and request id), and a hint. For example:
///
/// ```no_run
/// use filestore_client::{Client, ErrorKind};
///
/// # async fn run(client: Client) {
/// match client.info("01JD0000000000000000000000").await {
///     Ok(info) => println!("{}", info.value.original_name),
///     Err(error) if error.kind() == ErrorKind::NotFound => println!("gone"),
///     Err(error) => eprintln!("{error}"),
/// }
/// # }
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    status: Option<u16>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    problem: Option<Problem>,
    tls: Option<TlsProblem>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Returns the failure kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the message without status, ids and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the HTTP status, if the server replied.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// Returns the server's stable code, for example [`ErrorCode::InvalidTransition`].
    pub fn code(&self) -> Option<&ErrorCode> {
        let code = &self.0.problem.as_ref()?.code;
        (!code.as_str().is_empty()).then_some(code)
    }

    /// Returns the invalid field, parameter or key.
    pub fn field(&self) -> Option<&str> {
        self.0.problem.as_ref()?.field.as_deref()
    }

    /// Returns the id of the request in the server's log.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Returns the time to wait before the next attempt, if the server sets it.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the server's problem document (RFC 9457).
    pub fn problem(&self) -> Option<&Problem> {
        self.0.problem.as_ref()
    }

    /// Returns the reason why client and server do not agree on TLS. The kind is then
    /// [`ErrorKind::Connect`], and another attempt would fail in the same way.
    pub fn tls_problem(&self) -> Option<TlsProblem> {
        self.0.tls
    }

    /// Returns true if the same call might succeed later.
    ///
    /// A second call is not always safe. For example, the server might have stored an upload
    /// without an idempotency key although the reply got lost.
    pub fn is_transient(&self) -> bool {
        match self.kind() {
            ErrorKind::Connect => self.tls_problem().is_none(),
            ErrorKind::Timeout | ErrorKind::Interrupted | ErrorKind::Busy | ErrorKind::Provider => {
                true
            }
            ErrorKind::Server => self.is_gateway_failure(),
            ErrorKind::Conflict => self.is_in_progress(),
            _ => false,
        }
    }

    /// Returns true if the server might have processed the request without a reply.
    pub(crate) fn may_have_arrived(&self) -> bool {
        match self.kind() {
            ErrorKind::Busy => self.code() == Some(&ErrorCode::OutcomeUnknown),
            ErrorKind::Timeout | ErrorKind::Interrupted => self.status().is_none(),
            ErrorKind::Server => self.is_gateway_failure(),
            _ => false,
        }
    }

    /// Returns true if the service reports that it did not process the request, because it is busy
    /// or limits the rate.
    pub(crate) fn changed_nothing(&self) -> bool {
        let says_so = self.code() == Some(&ErrorCode::Busy) || self.status() == Some(429);
        self.kind() == ErrorKind::Busy && self.problem().is_some() && says_so
    }

    /// Returns true if an earlier request with the same idempotency key is still running.
    pub(crate) fn is_in_progress(&self) -> bool {
        self.code() == Some(&ErrorCode::IdempotencyInProgress)
    }

    /// Returns true if a proxy got an invalid reply from the server (502), or no reply in time
    /// (504).
    fn is_gateway_failure(&self) -> bool {
        matches!(self.status(), Some(502 | 504))
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            status: None,
            request_id: None,
            retry_after: None,
            problem: None,
            tls: None,
            source: None,
        }))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Protocol, message)
    }

    /// Creates the error for a failed local read or write. `doing` names the operation and its
    /// object.
    pub(crate) fn io(doing: &str, source: io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("{doing} failed: {source}")).with_source(source)
    }

    /// Creates the error for a request without a reply. `peer` is the name of the other side.
    pub(crate) fn transport(peer: &str, error: reqwest::Error) -> Self {
        let is_plain = error.url().is_some_and(|url| url.scheme() == "http");
        let error = error.without_url();
        let cause = root_cause(&error);
        let tls = find_tls_problem(&error, is_plain);

        let (kind, message) = if error.is_builder() {
            (ErrorKind::Invalid, format!("the request cannot be built: {cause}"))
        } else if error.is_connect() || tls == Some(TlsProblem::NotHttp) {
            let cause = match tls {
                _ if error.is_timeout() => "timed out".to_owned(),
                Some(TlsProblem::NotTls) => "the server does not use TLS on this port".to_owned(),
                Some(TlsProblem::NotHttp) => {
                    "the server does not speak HTTP on this port".to_owned()
                }
                _ => cause,
            };
            (ErrorKind::Connect, format!("cannot connect to {peer}: {cause}"))
        } else if error.is_timeout() {
            (ErrorKind::Timeout, format!("no reply in time from {peer}"))
        } else {
            (ErrorKind::Interrupted, format!("the connection to {peer} broke: {cause}"))
        };

        let mut failed = Self::new(kind, message);
        failed.0.tls = tls;
        failed.with_source(error)
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    pub(crate) fn with_request_id(mut self, id: Option<String>) -> Self {
        self.0.request_id = id;
        self
    }

    pub(crate) fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.0.retry_after = wait;
        self
    }

    pub(crate) fn with_problem(mut self, problem: Problem) -> Self {
        if !problem.request_id.is_empty() {
            self.0.request_id = Some(problem.request_id.clone());
        }
        self.0.problem = Some(problem);
        self
    }

    pub(crate) fn with_source(
        mut self,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Wraps the error as the source of an error with another kind and message.
    pub(crate) fn wrapped(self, kind: ErrorKind, message: impl Into<String>) -> Self {
        let (status, retry_after) = (self.status(), self.retry_after());
        let mut outer = Self::new(kind, message).with_retry_after(retry_after);
        outer.0.status = status;
        outer.0.request_id.clone_from(&self.0.request_id);
        outer.with_source(self)
    }

    fn advice(&self) -> Option<String> {
        let advice = match self.kind() {
            ErrorKind::Connect if self.tls_problem() == Some(TlsProblem::Certificate) => {
                "trust the issuer of the certificate with extra_root_certificates"
            }
            ErrorKind::Connect if self.tls_problem() == Some(TlsProblem::NotTls) => {
                "use a base URL with http://"
            }
            ErrorKind::Connect if self.tls_problem() == Some(TlsProblem::NotHttp) => {
                "use a base URL with https://"
            }
            ErrorKind::Connect if self.is_refused() => "check that the server is running",
            ErrorKind::Connect => "check the base URL",
            ErrorKind::Unauthorized => "use a valid API key",
            ErrorKind::Forbidden => "use a key with the required scope and organization",
            ErrorKind::PreconditionFailed => {
                "read the info of the file again and retry with the new ETag"
            }
            ErrorKind::Provider => "try again later, or check the provider's configuration",
            ErrorKind::Server if self.is_gateway_failure() => {
                "check that the server behind the proxy is running"
            }
            ErrorKind::Protocol => "check that the base URL belongs to a filestore server",
            ErrorKind::Busy => match self.retry_after() {
                Some(wait) => return Some(format!("try again in {} s", wait.as_secs())),
                None => "try again later",
            },
            _ => return self.allowed(),
        };

        Some(advice.to_owned())
    }

    fn allowed(&self) -> Option<String> {
        let problem = self.problem().filter(|problem| !problem.allowed.is_empty())?;
        Some(format!("allowed: {}", problem.allowed.join(", ")))
    }

    /// Returns true if the server refused the connection or broke it off without a reply, as while
    /// the server restarts.
    pub(crate) fn is_outage(&self) -> bool {
        match self.kind() {
            ErrorKind::Connect => self.is_refused(),
            ErrorKind::Interrupted => self.status().is_none(),
            _ => false,
        }
    }

    fn is_refused(&self) -> bool {
        let mut cause = self.source();
        while let Some(error) = cause {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                let kind = io.kind();
                // NotFound means that the file of the Unix socket is missing.
                if kind == io::ErrorKind::ConnectionRefused || kind == io::ErrorKind::NotFound {
                    return true;
                }
            }
            cause = error.source();
        }
        false
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(status) = self.0.status {
            write!(f, " (HTTP {status}")?;
            if let Some(code) = self.code() {
                write!(f, ", {code}")?;
            }
            if let Some(id) = self.request_id() {
                write!(f, ", request {id}")?;
            }
            f.write_str(")")?;
        }

        match self.advice() {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)?;
        match &self.0.source {
            Some(source) => write!(f, " [{source:?}]"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<InvalidId> for Error {
    fn from(refused: InvalidId) -> Self {
        Self::invalid(refused.to_string()).with_source(refused)
    }
}

/// For arguments that are already ids. The conversion cannot fail.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Finds the TLS problem among the causes of an error. `is_plain` is true for a URL with `http://`.
fn find_tls_problem(error: &reqwest::Error, is_plain: bool) -> Option<TlsProblem> {
    let mut cause: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(found) = cause {
        match found.downcast_ref::<rustls::Error>() {
            Some(rustls::Error::InvalidCertificate(_)) => return Some(TlsProblem::Certificate),
            Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => {
                return Some(TlsProblem::NotTls);
            }
            _ => {}
        }
        // A TLS server answers a plain request with an alert, which has no HTTP version.
        if is_plain && found.downcast_ref::<hyper::Error>().is_some_and(is_no_http) {
            return Some(TlsProblem::NotHttp);
        }
        // The error inside an `io::Error` is not its source.
        cause = match found.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => found.source(),
        };
    }
    None
}

/// Returns true if a reply does not start like HTTP. A reply with an invalid status or a large head is HTTP.
fn is_no_http(error: &hyper::Error) -> bool {
    error.is_parse() && !error.is_parse_status() && !error.is_parse_too_large()
}

/// Returns the message of the innermost cause. The outer layers contain no details.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn StdError = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_holds_what_happened_who_said_it_and_what_to_do() {
        let mut problem = Problem::new(ErrorCode::UnknownProvider, 422, "01R");
        problem.allowed = vec!["LOCAL".into(), "S3".into()];
        let error =
            Error::invalid("unknown storage provider: X").with_status(422).with_problem(problem);
        assert_eq!(
            error.to_string(),
            "unknown storage provider: X (HTTP 422, unknown_provider, request 01R); allowed: LOCAL, S3"
        );
    }

    #[test]
    fn a_busy_server_says_when_to_come_back() {
        let error = Error::new(ErrorKind::Busy, "the queue is full")
            .with_status(503)
            .with_retry_after(Some(Duration::from_secs(7)));
        assert_eq!(error.to_string(), "the queue is full (HTTP 503); try again in 7 s");
    }

    #[test]
    fn only_a_conflict_with_a_running_request_of_the_same_key_is_transient() {
        let running = Problem::new(ErrorCode::IdempotencyInProgress, 409, "");
        let race = Problem::new(ErrorCode::Conflict, 409, "");
        assert!(Error::new(ErrorKind::Conflict, "").with_problem(running).is_transient());
        assert!(!Error::new(ErrorKind::Conflict, "").with_problem(race).is_transient());
    }

    #[test]
    fn an_error_fits_in_a_pointer() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
