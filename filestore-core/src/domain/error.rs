//! The one public error of the core.
//!
//! An [`Error`] says what kind of failure it is (closed set, stable codes), in words that may be
//! shown to the caller, with the details a program branches on. Paths, SQL and the text of a source
//! must not be shown: they stay in the source chain and are logged once where the error is handled.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// `ENFILE` and `EMFILE`, for which the standard library has no kind: no more files can be open in the
/// system or in the process.
const TOO_MANY_FILES: [i32; 2] = [23, 24];

/// The result of the core's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident => $code:literal,)*) => {
        /// The kind of a failure. Closed: a new kind is a change every caller must look at.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorKind {
            $($(#[$doc])* $name,)*
        }

        impl ErrorKind {
            /// Every kind, in declaration order.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$name,)*];

            /// Returns the stable snake_case code that clients branch on (`code` of a problem
            /// document).
            pub const fn code(self) -> &'static str {
                match self { $(ErrorKind::$name => $code,)* }
            }
        }
    };
}

kinds! {
    /// A field, parameter or header has a bad value; `details.field` names it.
    InvalidField => "invalid_field",
    /// A field that must be there is not.
    MissingField => "missing_field",
    /// A field or key the endpoint does not know.
    UnknownField => "unknown_field",
    /// A field or key given more than once.
    RepeatedField => "repeated_field",
    /// The body is not what its type says (bad multipart, bad JSON, cut short).
    MalformedBody => "malformed_body",
    /// No or no valid key.
    Unauthorized => "unauthorized",
    /// The caller may not do that: the key's scopes or organizations do not cover it, for one.
    Forbidden => "forbidden",
    /// The signature of a URL is none of the service for this request.
    SignatureInvalid => "signature_invalid",
    /// The signed URL has expired.
    SignatureExpired => "signature_expired",
    /// The one upload that the signed URL was for has been made.
    SignatureUsed => "signature_used",
    /// Nothing is there, or nothing that this caller may see.
    NotFound => "not_found",
    /// The state does not allow the change; details carry from, to and allowed.
    InvalidTransition => "invalid_transition",
    /// Another request changed the same thing at the same moment, or its state does not allow the request.
    Conflict => "conflict",
    /// The file was claimed by the purge and cannot be restored.
    AlreadyPurging => "already_purging",
    /// `require_binding` is set and the organization has no active binding.
    BindingRequired => "binding_required",
    /// The organization has an active binding already.
    BindingAlreadyActive => "binding_already_active",
    /// The organization has no active binding (and none that could be resumed).
    NoActiveBinding => "no_active_binding",
    /// The provider code is unknown; details list the valid ones.
    UnknownProvider => "unknown_provider",
    /// The provider takes no new files.
    ProviderInactive => "provider_inactive",
    /// The provider that holds or should take the bytes fails or is not configured.
    ProviderUnavailable => "provider_unavailable",
    /// A precondition (If-Match, If-Unmodified-Since) does not hold.
    PreconditionFailed => "precondition_failed",
    /// The request carries the idempotency key of another content.
    IdempotencyMismatch => "idempotency_mismatch",
    /// A request with the same idempotency key still runs.
    IdempotencyInProgress => "idempotency_in_progress",
    /// The bytes do not have the given SHA-256.
    DigestMismatch => "digest_mismatch",
    /// A file, batch or body is over its limit.
    TooLarge => "too_large",
    /// A batch has more items than allowed, or a deletion more ids.
    TooManyItems => "too_many_items",
    /// The organization is over its quota.
    QuotaExceeded => "quota_exceeded",
    /// A variant was asked of a file that is no raster image.
    NotAnImage => "not_an_image",
    /// The image is broken.
    CorruptImage => "corrupt_image",
    /// The file could not be turned into a picture by its converter.
    ConversionFailed => "conversion_failed",
    /// The image is over the pixel or memory limits.
    ImageTooLarge => "image_too_large",
    /// The client stopped sending.
    BodyTimeout => "body_timeout",
    /// A queue or budget is full; retry later.
    Busy => "busy",
    /// The database did not answer to a change: whether it was made will be known later.
    OutcomeUnknown => "outcome_unknown",
    /// The disk is full. Deletes still work.
    StorageFull => "storage_full",
    /// The disk of the database server is full: it stores nothing, and deletes nothing either.
    DatabaseFull => "database_full",
    /// The data directory is held by another process.
    Locked => "locked",
    /// The data directory, configuration or database cannot be used as it is.
    Unusable => "unusable",
    /// The record of the file cannot be read: it has to be repaired or restored.
    RecordDamaged => "record_damaged",
    /// A fault of the service or its disk.
    Internal => "internal",
}

/// The details a program may branch on besides the kind. All optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Details {
    /// The field, parameter or key at fault, as the caller spelled it.
    pub field: Option<String>,
    /// The index of the batch item at fault.
    pub item: Option<u32>,
    /// The allowed values, if few.
    pub allowed: Vec<String>,
    /// The limit that was passed, in the unit of the field (bytes for sizes).
    pub limit: Option<u64>,
    /// The state a refused transition would have left.
    pub from: Option<String>,
    /// The state a refused transition would have entered.
    pub to: Option<String>,
    /// The number of seconds after which a retry makes sense.
    pub retry_after_secs: Option<u64>,
}

/// A failure of the core. `Display` is safe to show to a caller; `source` is for logs. Cheap to
/// clone, for several callers that wait for the same outcome.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    details: Box<Details>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error of `kind`. The message is lower case, without a full stop, the value last.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Box::default(), source: None }
    }

    /// Reports a bad value of `field`.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidField, message).with_field(field)
    }

    /// Reports that nothing is there under that id.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("{what} not found"))
    }

    /// Reports a fault of the service; `doing` names the work under way, the source is only logged.
    pub fn internal(doing: &str, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Internal, format!("internal error while {doing}")).with_source(source)
    }

    /// Reports a failed file operation: [`ErrorKind::StorageFull`] for a full disk, a quota of the
    /// file system or the limit of file sizes (`ulimit -f`), [`ErrorKind::Busy`] where no more files can
    /// be open, else [`ErrorKind::Internal`].
    pub fn io(doing: &str, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        if source.raw_os_error().is_some_and(|code| TOO_MANY_FILES.contains(&code)) {
            return Self::new(ErrorKind::Busy, "too many files are open").with_source(source);
        }
        match source.kind() {
            Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => {
                Self::new(ErrorKind::StorageFull, "the storage is full").with_source(source)
            }
            _ => Self::internal(doing, source),
        }
    }

    /// Names the field at fault.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<String>) -> Self {
        self.details.field = Some(field.into());
        self
    }

    /// Names the batch item at fault.
    #[must_use]
    pub fn with_item(mut self, item: u32) -> Self {
        self.details.item = Some(item);
        self
    }

    /// Lists the allowed values.
    #[must_use]
    pub fn with_allowed<S: Into<String>>(mut self, allowed: impl IntoIterator<Item = S>) -> Self {
        self.details.allowed = allowed.into_iter().map(Into::into).collect();
        self
    }

    /// Names the limit that was passed.
    #[must_use]
    pub fn with_limit(mut self, limit: u64) -> Self {
        self.details.limit = Some(limit);
        self
    }

    /// Names the transition that was refused.
    #[must_use]
    pub fn with_transition(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.details.from = Some(from.into());
        self.details.to = Some(to.into());
        self
    }

    /// Names the number of seconds after which a retry makes sense.
    #[must_use]
    pub fn with_retry_after_secs(mut self, secs: u64) -> Self {
        self.details.retry_after_secs = Some(secs);
        self
    }

    /// Attaches the cause, for logs only.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message, which is safe to show.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the details that a program branches on.
    pub fn details(&self) -> &Details {
        &self.details
    }

    /// Tells if a disk had no room, the service's own or the database's: nothing was changed.
    pub(crate) fn is_lack_of_room(&self) -> bool {
        matches!(self.kind, ErrorKind::StorageFull | ErrorKind::DatabaseFull)
    }

    /// Writes the whole chain in one line, for the log.
    pub fn chain(&self) -> String {
        let mut line = self.message.clone();
        let mut cause = self.source();
        while let Some(error) = cause {
            line.push_str(": ");
            line.push_str(&error.to_string());
            cause = error.source();
        }
        line
    }
}

impl From<std::convert::Infallible> for Error {
    /// Never happens: lets a conversion that cannot fail stand where one that can is expected.
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.chain())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_snake_case() {
        let mut codes: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
        assert!(codes.iter().all(|c| c.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
    }

    #[test]
    fn a_source_is_in_the_chain_but_not_in_the_message() {
        let error = Error::internal("opening a blob", std::io::Error::other("/secret/path"));
        assert!(!error.to_string().contains("secret"));
        assert!(error.chain().contains("/secret/path"));
    }

    #[test]
    fn a_lack_of_descriptors_passes() {
        for code in TOO_MANY_FILES {
            let error = Error::io("opening", std::io::Error::from_raw_os_error(code));
            assert_eq!(error.kind(), ErrorKind::Busy, "{code}");
        }
    }

    #[test]
    fn a_full_disk_is_its_own_kind() {
        use std::io::ErrorKind as Io;
        for full in [Io::StorageFull, Io::QuotaExceeded, Io::FileTooLarge] {
            assert_eq!(Error::io("writing", full.into()).kind(), ErrorKind::StorageFull);
        }
    }
}
