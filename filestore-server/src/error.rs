//! Errors of requests: the core's errors, and refusals of the HTTP server itself.
//!
//! The core's errors get their codes and statuses from [`ErrorKind`](filestore_core::ErrorKind). The kinds
//! here have their own codes and statuses, because no library call fails with them. A test next to the
//! replies compares both with the reference.

use std::fmt;

use filestore_core::Details;
use filestore_core::api::ErrorCode;
use http::StatusCode;

/// The result of reading a request.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Declares the kinds, each with its status, its code and whether a retry can help.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident => $status:ident, $retry:ident,)*) => {
        /// The kind of a refusal by the HTTP server.
        ///
        /// For example, a request without a valid key is `Unauthorized`: status 401, code `unauthorized`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum RefusalKind {
            $($(#[$doc])* $name,)*
        }

        impl RefusalKind {
            /// Every kind, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the stable code of the problem document.
            pub const fn code(self) -> ErrorCode {
                match self { $(Self::$name => ErrorCode::$name,)* }
            }

            /// Returns the HTTP status of the reply.
            pub const fn http_status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)* }
            }

            /// Returns true if the same request can succeed later.
            pub const fn is_retryable(self) -> bool {
                match self { $(Self::$name => kinds!(@ $retry),)* }
            }
        }
    };
    (@ retry) => { true };
    (@ final) => { false };
}

kinds! {
    /// The endpoint does not know a field or key.
    UnknownField => BAD_REQUEST, final,
    /// A field or key occurs more than once.
    RepeatedField => BAD_REQUEST, final,
    /// The request does not have exactly one `Host` header.
    MalformedRequest => BAD_REQUEST, final,
    /// The request has no valid key.
    Unauthorized => UNAUTHORIZED, final,
    /// The path does not support the method.
    MethodNotAllowed => METHOD_NOT_ALLOWED, final,
    /// The client stopped sending the body, or sent it too slowly.
    BodyTimeout => REQUEST_TIMEOUT, retry,
    /// The body is sent with a transfer coding other than chunked.
    NotImplemented => NOT_IMPLEMENTED, final,
    /// The request names a version of an upload protocol that this server does not speak.
    UnsupportedVersion => PRECONDITION_FAILED, final,
    /// A creation of a resumable upload neither names nor defers the length.
    LengthRequired => LENGTH_REQUIRED, final,
    /// The body has another type than the endpoint reads, or a content coding.
    UnsupportedMediaType => UNSUPPORTED_MEDIA_TYPE, final,
    /// The range is outside the file.
    RangeNotSatisfiable => RANGE_NOT_SATISFIABLE, final,
    /// The request names a host that does not belong to the server.
    MisdirectedRequest => MISDIRECTED_REQUEST, final,
    /// The key or address makes too many requests.
    RateLimited => TOO_MANY_REQUESTS, retry,
    /// The database or the storage does not answer.
    NotReady => SERVICE_UNAVAILABLE, retry,
}

/// A refusal by the HTTP server. `Display` is safe to show to the client.
#[derive(Debug, Clone)]
pub struct Refusal {
    kind: RefusalKind,
    message: String,
    details: Box<Details>,
}

impl Refusal {
    /// Creates a refusal. The message begins in lower case, has no full stop, and ends with the value.
    pub(crate) fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Box::default() }
    }

    /// Sets the field with the error, as the client spelled it.
    #[must_use]
    pub(crate) fn with_field(mut self, field: impl Into<String>) -> Self {
        self.details.field = Some(field.into());
        self
    }

    /// Lists the allowed values.
    #[must_use]
    pub(crate) fn with_allowed(mut self, allowed: &[&str]) -> Self {
        self.details.allowed = allowed.iter().map(|&value| value.to_owned()).collect();
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> RefusalKind {
        self.kind
    }

    /// Returns the message. The message is safe to show to the client.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the details for programs.
    pub fn details(&self) -> &Details {
        &self.details
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// The error for a request that cannot be read or is not admitted.
///
/// For example, a body that ends in the middle is `Refusal` with [`RefusalKind::BodyTimeout`]. A form with a
/// boundary that never ends is `Core` with `MalformedBody`.
#[derive(Debug, Clone)]
pub enum Error {
    /// An error of the core.
    Core(filestore_core::Error),
    /// A refusal by the server itself.
    Refusal(Refusal),
}

impl Error {
    /// Returns the stable snake_case code for programs.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Core(error) => error.kind().into(),
            Self::Refusal(refusal) => refusal.kind.code(),
        }
    }

    /// Returns the details for programs.
    pub fn details(&self) -> &Details {
        match self {
            Self::Core(error) => error.details(),
            Self::Refusal(refusal) => refusal.details(),
        }
    }

    /// Sets the batch item with the error.
    #[must_use]
    pub(crate) fn with_item(self, item: u32) -> Self {
        match self {
            Self::Core(error) => error.with_item(item).into(),
            Self::Refusal(mut refusal) => {
                refusal.details.item = Some(item);
                refusal.into()
            }
        }
    }
}

impl From<filestore_core::Error> for Error {
    fn from(error: filestore_core::Error) -> Self {
        Self::Core(error)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(refusal)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(error) => error.fmt(f),
            Self::Refusal(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Core(error) => error.source(),
            Self::Refusal(_) => None,
        }
    }
}
