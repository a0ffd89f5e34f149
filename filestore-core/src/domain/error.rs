//! The public error type.
//!
//! An [`Error`] has a kind with a stable code, a message that you can show to the caller, and
//! details for programs. Paths, SQL and source texts are only in the source chain, for the log. Log
//! an error once, where you handle it.
//!
//! For example, a server can reply with `error.message()` and log `error.chain()`.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use http::StatusCode;

/// `ENFILE` and `EMFILE`: the system or the process cannot open more files. The standard library
/// has no kind for them.
const TOO_MANY_FILES: [i32; 2] = [23, 24];

/// The call result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Declares the kinds, each with its code, its HTTP status and the answer to the question if a retry can help.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident => $code:literal, $status:ident, $retry:ident,)*) => {
        /// The failure kind.
        ///
        /// Branch on the kinds that you handle, and treat every other kind by its [`http_status`] class. A later
        /// version can add kinds.
        ///
        /// ```
        /// use filestore_core::{Error, ErrorKind};
        ///
        /// let error = Error::new(ErrorKind::QuotaExceeded, "the organization is over its quota");
        /// assert_eq!(error.kind().code(), "quota_exceeded");
        /// assert_eq!(error.kind().http_status(), 413);
        /// assert!(!error.kind().is_retryable());
        /// ```
        ///
        /// [`http_status`]: Self::http_status
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $name,)*
        }

        impl ErrorKind {
            /// Every kind, in declaration order.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$name,)*];

            /// Returns the stable code in snake_case, for example `not_found`. The same code is in
            /// problem documents.
            pub const fn code(self) -> &'static str {
                match self { $(ErrorKind::$name => $code,)* }
            }

            /// Returns the HTTP status of a reply with this failure: 4xx if the caller can do something about
            /// it, 5xx if the store is at fault.
            pub const fn http_status(self) -> StatusCode {
                match self { $(ErrorKind::$name => kinds!(@status $status),)* }
            }

            /// Tells whether the same call can succeed later.
            ///
            /// After [`OutcomeUnknown`](Self::OutcomeUnknown) a change might have been made, so that kind is
            /// not retryable. With an idempotency key you can retry it.
            pub const fn is_retryable(self) -> bool {
                match self { $(ErrorKind::$name => kinds!(@ $retry),)* }
            }
        }
    };
    (@ retry) => { true };
    (@ final) => { false };
    (@status CHECKSUM_MISMATCH) => { CHECKSUM_MISMATCH };
    (@status $status:ident) => { StatusCode::$status };
}

/// The status of a wrong checksum in the tus protocol, for which HTTP has no name.
const CHECKSUM_MISMATCH: StatusCode = match StatusCode::from_u16(460) {
    Ok(status) => status,
    Err(_) => StatusCode::BAD_REQUEST,
};

kinds! {
    /// A field, parameter or header has an invalid value. See `details.field`.
    InvalidField => "invalid_field", BAD_REQUEST, final,
    /// A required field is missing.
    MissingField => "missing_field", BAD_REQUEST, final,
    /// The body does not match its type, for example incomplete multipart or invalid JSON.
    MalformedBody => "malformed_body", BAD_REQUEST, final,
    /// The caller is not allowed to do this. For example, the key does not have the scope or the
    /// organization.
    Forbidden => "forbidden", FORBIDDEN, final,
    /// The signature of the URL is not valid for this request.
    SignatureInvalid => "signature_invalid", FORBIDDEN, final,
    /// The signed URL has expired.
    SignatureExpired => "signature_expired", FORBIDDEN, final,
    /// The signed URL was already used for an upload.
    SignatureUsed => "signature_used", CONFLICT, final,
    /// The file does not exist, or the caller has no access.
    NotFound => "not_found", NOT_FOUND, final,
    /// The state does not allow this change. See `from`, `to` and `allowed` in the details.
    InvalidTransition => "invalid_transition", CONFLICT, final,
    /// Another request made a change at the same time, or the state does not allow the request.
    Conflict => "conflict", CONFLICT, retry,
    /// The purge has claimed the file. You can no longer restore it.
    AlreadyPurging => "already_purging", CONFLICT, final,
    /// `require_binding` is set, and the organization has no active binding.
    BindingRequired => "binding_required", CONFLICT, final,
    /// The organization already has an active binding.
    BindingAlreadyActive => "binding_already_active", CONFLICT, final,
    /// The organization has no active binding, or no binding to resume.
    NoActiveBinding => "no_active_binding", NOT_FOUND, final,
    /// The provider code is unknown. The details list the valid codes.
    UnknownProvider => "unknown_provider", UNPROCESSABLE_ENTITY, final,
    /// The provider accepts no new files.
    ProviderInactive => "provider_inactive", CONFLICT, final,
    /// The provider of the file fails or is not configured.
    ProviderUnavailable => "provider_unavailable", BAD_GATEWAY, retry,
    /// A precondition failed, for example `If-Match`.
    PreconditionFailed => "precondition_failed", PRECONDITION_FAILED, final,
    /// The idempotency key was used for other content.
    IdempotencyMismatch => "idempotency_mismatch", UNPROCESSABLE_ENTITY, final,
    /// A request with the same idempotency key is still running.
    IdempotencyInProgress => "idempotency_in_progress", CONFLICT, retry,
    /// The bytes do not match the SHA-256 digest.
    DigestMismatch => "digest_mismatch", UNPROCESSABLE_ENTITY, final,
    /// The log of events no longer has the event, or is another log. Read the records anew, then follow the log
    /// from its end.
    EventsGone => "events_gone", GONE, final,
    /// Events are switched off in this store.
    EventsOff => "events_off", CONFLICT, final,
    /// The configuration does not allow the URL or address of a webhook.
    UrlRefused => "url_refused", UNPROCESSABLE_ENTITY, final,
    /// A file, batch or body exceeds its limit.
    TooLarge => "too_large", PAYLOAD_TOO_LARGE, final,
    /// A batch has too many files, or a deletion too many ids.
    TooManyItems => "too_many_items", PAYLOAD_TOO_LARGE, final,
    /// The organization exceeds its quota.
    QuotaExceeded => "quota_exceeded", PAYLOAD_TOO_LARGE, final,
    /// The file is not an image, so it has no variants.
    NotAnImage => "not_an_image", UNPROCESSABLE_ENTITY, final,
    /// The image is damaged.
    CorruptImage => "corrupt_image", UNPROCESSABLE_ENTITY, final,
    /// The converter could not make an image from the file.
    ConversionFailed => "conversion_failed", UNPROCESSABLE_ENTITY, final,
    /// The image exceeds the limits of pixels or memory.
    ImageTooLarge => "image_too_large", UNPROCESSABLE_ENTITY, final,
    /// The offset of the request is not the offset of the resumable upload. See `offset` in the details.
    UploadOffsetMismatch => "upload_offset_mismatch", CONFLICT, final,
    /// The request names another length of the resumable upload than an earlier request, or fewer
    /// bytes than were received.
    UploadLengthInconsistent => "upload_length_inconsistent", BAD_REQUEST, final,
    /// The request has more bytes than the announced length of the resumable upload.
    UploadLengthExceeded => "upload_length_exceeded", PAYLOAD_TOO_LARGE, final,
    /// A newer request for the same resumable upload ended this request.
    UploadSuperseded => "upload_superseded", BAD_REQUEST, final,
    /// The resumable upload takes its bytes from other uploads, and not from a request.
    UploadFinal => "upload_final", FORBIDDEN, final,
    /// The resumable upload has failed or expired, or its file was deleted.
    UploadGone => "upload_gone", GONE, final,
    /// The client stopped sending bytes of a resumable upload. The received bytes are kept.
    UploadStalled => "upload_stalled", SERVICE_UNAVAILABLE, retry,
    /// Another server has the bytes of the resumable upload.
    UploadElsewhere => "upload_elsewhere", SERVICE_UNAVAILABLE, retry,
    /// Too many resumable uploads are open, or they hold too many bytes.
    TooManyUploads => "too_many_uploads", SERVICE_UNAVAILABLE, retry,
    /// The bytes of the request do not match its checksum.
    ChecksumMismatch => "checksum_mismatch", CHECKSUM_MISMATCH, final,
    /// A queue or budget is full. Try again later.
    Busy => "busy", SERVICE_UNAVAILABLE, retry,
    /// The database did not answer to a change. The change may or may not be stored.
    OutcomeUnknown => "outcome_unknown", SERVICE_UNAVAILABLE, final,
    /// The disk is full. You can still delete files.
    StorageFull => "storage_full", INSUFFICIENT_STORAGE, retry,
    /// The disk of the database server is full. The store cannot change or delete anything.
    DatabaseFull => "database_full", SERVICE_UNAVAILABLE, retry,
    /// Another process uses the data directory.
    Locked => "locked", INTERNAL_SERVER_ERROR, final,
    /// The store cannot use the data directory, the configuration or the database.
    Unusable => "unusable", INTERNAL_SERVER_ERROR, final,
    /// The file's record is damaged. Repair or restore it.
    RecordDamaged => "record_damaged", INTERNAL_SERVER_ERROR, final,
    /// The service or its disk has a fault. See the log.
    Internal => "internal", INTERNAL_SERVER_ERROR, retry,
}

/// Details for programs, in addition to the kind. All are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Details {
    /// Field, parameter or key with the error, in the words of the caller.
    pub field: Option<String>,
    /// Index of the batch item with the error, from 0.
    pub item: Option<u32>,
    /// Allowed values, if few.
    pub allowed: Vec<String>,
    /// The exceeded limit. Sizes are in bytes.
    pub limit: Option<u64>,
    /// Current state, if the state does not allow the change.
    pub from: Option<String>,
    /// Requested state, if the state does not allow the change.
    pub to: Option<String>,
    /// Seconds to wait before a retry.
    pub retry_after_secs: Option<u64>,
    /// Offset at which a resumable upload continues.
    pub offset: Option<u64>,
}

/// An error of the store. You can show `Display` to callers. `source` is only for logs. Cheap to
/// clone, so that several callers can get the same result.
///
/// ```
/// use filestore_core::{Error, ErrorKind};
///
/// fn status(error: &Error) -> u16 {
///     match error.kind() {
///         ErrorKind::NotFound => 404,
///         ErrorKind::Busy => 503, // try again later
///         _ => 500,
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    details: Box<Details>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error. The message begins in lower case, has no full stop, and ends with the
    /// value.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Box::default(), source: None }
    }

    /// Creates the error for an invalid value of `field`.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidField, message).with_field(field)
    }

    /// Creates the error for an unknown id.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("{what} not found"))
    }

    /// Creates the error for a fault of the service. `doing` names the operation. The source is
    /// only for the log.
    pub fn internal(doing: &str, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Internal, format!("internal error while {doing}")).with_source(source)
    }

    /// Creates the error for a failed file operation. The kind is [`ErrorKind::StorageFull`] for a
    /// full disk, a disk quota, or the limit for file sizes (`ulimit -f`). The kind is
    /// [`ErrorKind::Busy`] if no more files can be open, and otherwise [`ErrorKind::Internal`].
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

    /// Names the field with the error.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<String>) -> Self {
        self.details.field = Some(field.into());
        self
    }

    /// Names the batch item with the error.
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

    /// Names the exceeded limit.
    #[must_use]
    pub fn with_limit(mut self, limit: u64) -> Self {
        self.details.limit = Some(limit);
        self
    }

    /// Names the refused change of state.
    #[must_use]
    pub fn with_transition(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.details.from = Some(from.into());
        self.details.to = Some(to.into());
        self
    }

    /// Sets the seconds to wait before a retry.
    #[must_use]
    pub fn with_retry_after_secs(mut self, secs: u64) -> Self {
        self.details.retry_after_secs = Some(secs);
        self
    }

    /// Names the offset at which a resumable upload continues.
    #[must_use]
    pub fn with_offset(mut self, offset: u64) -> Self {
        self.details.offset = Some(offset);
        self
    }

    /// Attaches the cause, only for logs.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message. You can show it to callers.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the details for programs.
    pub fn details(&self) -> &Details {
        &self.details
    }

    /// Tests whether a disk was full: the store's disk or the database's. Then the call changed
    /// nothing.
    pub(crate) fn is_lack_of_room(&self) -> bool {
        matches!(self.kind, ErrorKind::StorageFull | ErrorKind::DatabaseFull)
    }

    /// Returns the whole error chain in one line, for the log.
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
    /// Never called. Conversions that cannot fail can use the same code as others.
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
    fn every_kind_is_an_error_status() {
        for kind in ErrorKind::ALL {
            let status = kind.http_status();
            assert!(status.is_client_error() || status.is_server_error(), "{kind:?} is {status}");
        }
    }

    #[test]
    fn statuses_are_those_of_the_contract() {
        for (kind, status) in [
            (ErrorKind::Forbidden, 403),
            (ErrorKind::NoActiveBinding, 404),
            (ErrorKind::InvalidTransition, 409),
            (ErrorKind::EventsOff, 409),
            (ErrorKind::EventsGone, 410),
            (ErrorKind::PreconditionFailed, 412),
            (ErrorKind::QuotaExceeded, 413),
            (ErrorKind::DigestMismatch, 422),
            (ErrorKind::ProviderUnavailable, 502),
            (ErrorKind::Busy, 503),
            (ErrorKind::OutcomeUnknown, 503),
            (ErrorKind::DatabaseFull, 503),
            (ErrorKind::StorageFull, 507),
        ] {
            assert_eq!(kind.http_status(), status, "{kind:?}");
        }
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
