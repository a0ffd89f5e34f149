//! The one error of the client.
//!
//! An [`Error`] says what kind of failure it is, what the server said about it, and what to do
//! next. A presigned URL or a key is never part of it: only hosts and the configured base URL are.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use filestore_core::api::{ErrorCode, InvalidId, Problem};

/// The result of every call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a call failed. A later version may know more kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No connection: nothing was sent.
    Connect,
    /// The server or the storage behind it was silent for too long.
    Timeout,
    /// The connection broke in the middle.
    Interrupted,
    /// The server has no such file, binding or organization (for this key).
    NotFound,
    /// The state of the file or binding does not allow it, another request was faster, or the file
    /// was replaced while it was downloaded.
    Conflict,
    /// The request is wrong: [`Error::field`] often says where.
    Invalid,
    /// A file, batch or quota limit was passed.
    TooLarge,
    /// The server asks to come back later; see [`Error::retry_after`].
    Busy,
    /// No valid API key.
    Unauthorized,
    /// The key may not do this.
    Forbidden,
    /// `If-Match` did not hold: the file changed since its ETag was read.
    PreconditionFailed,
    /// The storage provider behind the server fails.
    Provider,
    /// The server fails.
    Server,
    /// The bytes are not the ones their SHA-256 promises.
    Digest,
    /// The reply is not one a filestore server gives.
    Protocol,
    /// Reading or writing on this side failed.
    Io,
}

/// A failed call.
///
/// `Display` is one line fit for people: what happened, what the server said (status, code and
/// request id), and what to do next.
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
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Says what happened, without status, ids and advice.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the HTTP status, if a reply came.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// Returns the server's stable code, such as [`ErrorCode::InvalidTransition`].
    pub fn code(&self) -> Option<&ErrorCode> {
        let code = &self.0.problem.as_ref()?.code;
        (!code.as_str().is_empty()).then_some(code)
    }

    /// Returns the name of the field, parameter or key at fault.
    pub fn field(&self) -> Option<&str> {
        self.0.problem.as_ref()?.field.as_deref()
    }

    /// Returns the id under which the server logged the request.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Returns how long the server asks to wait before the next attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the server's whole problem document (RFC 9457).
    pub fn problem(&self) -> Option<&Problem> {
        self.0.problem.as_ref()
    }

    /// Returns true if the same call may succeed later without anything else being changed.
    ///
    /// That does not make it safe to repeat: an upload without an idempotency key may have been
    /// stored although its reply was lost.
    pub fn is_transient(&self) -> bool {
        match self.kind() {
            ErrorKind::Connect
            | ErrorKind::Timeout
            | ErrorKind::Interrupted
            | ErrorKind::Busy
            | ErrorKind::Provider => true,
            ErrorKind::Server => self.is_gateway_failure(),
            ErrorKind::Conflict => self.is_running_twin(),
            _ => false,
        }
    }

    /// Returns true if the request may have been carried out although no reply says so.
    pub(crate) fn may_have_arrived(&self) -> bool {
        match self.kind() {
            ErrorKind::Busy => self.code() == Some(&ErrorCode::OutcomeUnknown),
            ErrorKind::Timeout | ErrorKind::Interrupted => self.status().is_none(),
            ErrorKind::Server => self.is_gateway_failure(),
            _ => false,
        }
    }

    /// Returns true if the service says that it did nothing: it is busy, or limits the rate.
    pub(crate) fn changed_nothing(&self) -> bool {
        let says_so = self.code() == Some(&ErrorCode::Busy) || self.status() == Some(429);
        self.kind() == ErrorKind::Busy && self.problem().is_some() && says_so
    }

    /// Returns true if an earlier request with the same idempotency key still runs.
    pub(crate) fn is_running_twin(&self) -> bool {
        self.code() == Some(&ErrorCode::IdempotencyInProgress)
    }

    /// Returns true if a proxy got no valid reply from the server (502), or none in time (504).
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
            source: None,
        }))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Protocol, message)
    }

    /// Makes the error for a failed read or write on this side; `doing` names the operation and its
    /// object.
    pub(crate) fn io(doing: &str, source: io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("{doing} failed: {source}")).with_source(source)
    }

    /// Makes the error for a request that got no reply. `peer` names the other side in messages.
    pub(crate) fn transport(peer: &str, error: reqwest::Error) -> Self {
        let error = error.without_url();
        let cause = root_cause(&error);

        let (kind, message) = if error.is_builder() {
            (ErrorKind::Invalid, format!("the request cannot be built: {cause}"))
        } else if error.is_connect() {
            let cause = if error.is_timeout() { "timed out".to_owned() } else { cause };
            (ErrorKind::Connect, format!("cannot connect to {peer}: {cause}"))
        } else if error.is_timeout() {
            (ErrorKind::Timeout, format!("no reply in time from {peer}"))
        } else {
            (ErrorKind::Interrupted, format!("the connection to {peer} broke: {cause}"))
        };

        Self::new(kind, message).with_source(error)
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

    /// Wraps the failure in one of another kind and message, as its source.
    pub(crate) fn wrapped(self, kind: ErrorKind, message: impl Into<String>) -> Self {
        let (status, retry_after) = (self.status(), self.retry_after());
        let mut outer = Self::new(kind, message).with_retry_after(retry_after);
        outer.0.status = status;
        outer.0.request_id.clone_from(&self.0.request_id);
        outer.with_source(self)
    }

    fn advice(&self) -> Option<String> {
        let advice = match self.kind() {
            ErrorKind::Connect if self.is_refused() => "is the server running?",
            ErrorKind::Connect => "is the base URL right?",
            ErrorKind::Unauthorized => "give a valid API key",
            ErrorKind::Forbidden => "use a key with the scope and organization for it",
            ErrorKind::PreconditionFailed => {
                "read the file's info again and repeat with its new ETag"
            }
            ErrorKind::Provider => "try again later, or check the provider's configuration",
            ErrorKind::Server if self.is_gateway_failure() => {
                "is the server behind the proxy running?"
            }
            ErrorKind::Protocol => "is the base URL that of a filestore server?",
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

    fn is_refused(&self) -> bool {
        let mut cause = self.source();
        while let Some(error) = cause {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                let kind = io.kind();
                // NotFound: the file of the Unix socket is absent.
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

/// For arguments that are ids already: converting them cannot fail.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Returns the innermost cause in words: the layers above it only say that something failed.
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
