//! The stable codes of problem documents.

use super::open_word;

open_word! {
    /// The error code in a problem document.
    ///
    /// A code never changes its meaning. A later server can send new codes.
    ErrorCode {
        /// A field, parameter or header has an invalid value. See `field`.
        InvalidField = "invalid_field",
        /// A required field is missing.
        MissingField = "missing_field",
        /// The endpoint does not know this field or key.
        UnknownField = "unknown_field",
        /// A field or key occurs more than once.
        RepeatedField = "repeated_field",
        /// The body does not match its type, for example incomplete multipart or invalid JSON.
        MalformedBody = "malformed_body",
        /// The key is missing or invalid.
        Unauthorized = "unauthorized",
        /// The key does not have the scope or the organization, or a field differs from the signed
        /// URL. For an open server: a page of another site sent the request, or an administrative
        /// request came from outside.
        Forbidden = "forbidden",
        /// The signature of the URL is not valid for this request.
        SignatureInvalid = "signature_invalid",
        /// The signed URL has expired.
        SignatureExpired = "signature_expired",
        /// The signed URL was already used for an upload, or an upload with it is running.
        SignatureUsed = "signature_used",
        /// The file does not exist, or the caller has no access.
        NotFound = "not_found",
        /// The state does not allow this change. See `from`, `to` and `allowed`.
        InvalidTransition = "invalid_transition",
        /// Another request changed the file or binding at the same time. Also: the migration does
        /// not match the binding, another migration is running, the key is revoked, or the maximum
        /// number of keys exists.
        Conflict = "conflict",
        /// The purge has claimed the file. You can no longer restore it.
        AlreadyPurging = "already_purging",
        /// `require_binding` is set, and the organization has no active binding.
        BindingRequired = "binding_required",
        /// The organization already has an active binding.
        BindingAlreadyActive = "binding_already_active",
        /// The organization has no active binding, or no binding to resume.
        NoActiveBinding = "no_active_binding",
        /// The provider code is unknown. See `allowed`.
        UnknownProvider = "unknown_provider",
        /// The provider accepts no new files.
        ProviderInactive = "provider_inactive",
        /// The provider of the file fails or is not configured.
        ProviderUnavailable = "provider_unavailable",
        /// A precondition failed, for example `If-Match`.
        PreconditionFailed = "precondition_failed",
        /// The idempotency key was used for other content.
        IdempotencyMismatch = "idempotency_mismatch",
        /// Another request with this idempotency key is still running.
        IdempotencyInProgress = "idempotency_in_progress",
        /// The bytes do not match the SHA-256 digest.
        DigestMismatch = "digest_mismatch",
        /// The log of events no longer has this event, or is a new log. Read the records again, then follow
        /// the log from its end.
        EventsGone = "events_gone",
        /// Events are switched off in this store.
        EventsOff = "events_off",
        /// The server's configuration does not allow the URL or address of a webhook.
        UrlRefused = "url_refused",
        /// A file, batch or body exceeds its limit.
        TooLarge = "too_large",
        /// A batch has too many files, or a deletion too many ids.
        TooManyItems = "too_many_items",
        /// The organization exceeds its quota.
        QuotaExceeded = "quota_exceeded",
        /// The file is not an image, so it has no variants.
        NotAnImage = "not_an_image",
        /// The converter could not make an image from the file.
        ConversionFailed = "conversion_failed",
        /// The image is damaged.
        CorruptImage = "corrupt_image",
        /// The image exceeds the limits of pixels or memory.
        ImageTooLarge = "image_too_large",
        /// The client stopped sending.
        BodyTimeout = "body_timeout",
        /// The request starts at another offset than the resumable upload. See the header
        /// `Upload-Offset`.
        UploadOffsetMismatch = "upload_offset_mismatch",
        /// The request names another length of the resumable upload than an earlier request.
        UploadLengthInconsistent = "upload_length_inconsistent",
        /// The request has more bytes than the announced length of the resumable upload.
        UploadLengthExceeded = "upload_length_exceeded",
        /// A newer request for the same resumable upload ended this request.
        UploadSuperseded = "upload_superseded",
        /// The resumable upload takes its bytes from other uploads.
        UploadFinal = "upload_final",
        /// The resumable upload has failed or expired, or its file was deleted.
        UploadGone = "upload_gone",
        /// The client stopped sending. The received bytes of the resumable upload are kept.
        UploadStalled = "upload_stalled",
        /// Another server has the bytes of the resumable upload.
        UploadElsewhere = "upload_elsewhere",
        /// Too many resumable uploads are open, or they hold too many bytes.
        TooManyUploads = "too_many_uploads",
        /// The bytes of the request do not match `Upload-Checksum`.
        ChecksumMismatch = "checksum_mismatch",
        /// A queue or budget is full. Try again later.
        Busy = "busy",
        /// The database did not answer to a change. The change may or may not be stored.
        OutcomeUnknown = "outcome_unknown",
        /// The disk is full. You can still delete files.
        StorageFull = "storage_full",
        /// The disk of the database server is full. The server cannot store, change or delete
        /// anything.
        DatabaseFull = "database_full",
        /// Another process uses the data directory.
        Locked = "locked",
        /// The server cannot use the data directory, the configuration or the database.
        Unusable = "unusable",
        /// The record of the file is damaged. Repair or restore it.
        RecordDamaged = "record_damaged",
        /// The server or its disk has a fault. See the log.
        Internal = "internal",
        /// The server does not accept the HTTP request, for example without or with several `Host`
        /// headers.
        MalformedRequest = "malformed_request",
        /// The request names the host of another server. An open server answers only to its own
        /// hosts.
        MisdirectedRequest = "misdirected_request",
        /// The database or the storage does not answer (readiness check).
        NotReady = "not_ready",
        /// The client sends too many requests. Wait for `Retry-After`.
        RateLimited = "rate_limited",
        /// The path does not allow this method. See `allowed`.
        MethodNotAllowed = "method_not_allowed",
        /// The request uses a part of HTTP that the server does not have, for example a transfer coding
        /// other than `chunked`. See `allowed`.
        NotImplemented = "not_implemented",
        /// The body has an unsupported media type or content encoding. See `allowed`.
        UnsupportedMediaType = "unsupported_media_type",
        /// The request names a version of an upload protocol that the server does not speak.
        UnsupportedVersion = "unsupported_version",
        /// The creation of a resumable upload neither names nor defers the length.
        LengthRequired = "length_required",
        /// The range contains no byte of the file.
        RangeNotSatisfiable = "range_not_satisfiable",
    }
}
