//! The stable codes of problem documents.

use super::open_word;

open_word! {
    /// The reason of a refusal or failure, as `code` of a problem document.
    ///
    /// Codes never change their meaning; a later server may send more of them.
    ErrorCode {
        /// A field, parameter or header has a bad value; `field` names it.
        InvalidField = "invalid_field",
        /// A field that must be there is not.
        MissingField = "missing_field",
        /// A field or key the endpoint does not know.
        UnknownField = "unknown_field",
        /// A field or key given more than once.
        RepeatedField = "repeated_field",
        /// The body is not what its type says (bad multipart, bad JSON, cut short).
        MalformedBody = "malformed_body",
        /// No or no valid key.
        Unauthorized = "unauthorized",
        /// The key lacks the scope or may not act on the organization, a field says other than the signed
        /// URL, or an open server is asked by a page of another site, or from elsewhere for administration.
        Forbidden = "forbidden",
        /// The signature of a URL is none of the service for this request.
        SignatureInvalid = "signature_invalid",
        /// The signed URL has expired.
        SignatureExpired = "signature_expired",
        /// The one upload that the signed URL was for has been made, or runs.
        SignatureUsed = "signature_used",
        /// Nothing there, or nothing there for this caller.
        NotFound = "not_found",
        /// The state does not allow the change; `from`, `to` and `allowed` say more.
        InvalidTransition = "invalid_transition",
        /// Another request changed the file or binding at the same moment; or the migration does not fit the
        /// binding or another one runs; or the key is revoked, or there are as many as may be.
        Conflict = "conflict",
        /// The file was claimed by the purge and cannot be restored.
        AlreadyPurging = "already_purging",
        /// `require_binding` is set and the organization has no active binding.
        BindingRequired = "binding_required",
        /// The organization has an active binding already.
        BindingAlreadyActive = "binding_already_active",
        /// The organization has no active binding (and none that could be resumed).
        NoActiveBinding = "no_active_binding",
        /// The provider code is unknown; `allowed` lists the valid ones.
        UnknownProvider = "unknown_provider",
        /// The provider takes no new files.
        ProviderInactive = "provider_inactive",
        /// The provider that holds or should take the bytes fails or is not configured.
        ProviderUnavailable = "provider_unavailable",
        /// A precondition (If-Match, If-Unmodified-Since) does not hold.
        PreconditionFailed = "precondition_failed",
        /// The request carries the idempotency key of another content.
        IdempotencyMismatch = "idempotency_mismatch",
        /// Another request with the same idempotency key still runs.
        IdempotencyInProgress = "idempotency_in_progress",
        /// The bytes do not have the given SHA-256.
        DigestMismatch = "digest_mismatch",
        /// A file, batch or body is over its limit.
        TooLarge = "too_large",
        /// A batch has more items than allowed, or a deletion more ids.
        TooManyItems = "too_many_items",
        /// The organization is over its quota.
        QuotaExceeded = "quota_exceeded",
        /// A variant was asked of a file that is no raster image.
        NotAnImage = "not_an_image",
        /// The file could not be turned into a picture by its converter.
        ConversionFailed = "conversion_failed",
        /// The image is broken.
        CorruptImage = "corrupt_image",
        /// The image is over the pixel or memory limits.
        ImageTooLarge = "image_too_large",
        /// The client stopped sending.
        BodyTimeout = "body_timeout",
        /// A queue or budget is full; later it may not be.
        Busy = "busy",
        /// The database did not answer to a change: it may have been made.
        OutcomeUnknown = "outcome_unknown",
        /// The disk is full. Deletes still work.
        StorageFull = "storage_full",
        /// The disk of the database server is full: nothing can be stored, changed or deleted.
        DatabaseFull = "database_full",
        /// The data directory is held by another process.
        Locked = "locked",
        /// The data directory, configuration or database cannot be used as it is.
        Unusable = "unusable",
        /// The record of the file cannot be read: it has to be repaired or restored.
        RecordDamaged = "record_damaged",
        /// A fault of the service or its disk.
        Internal = "internal",
        /// The request is not HTTP as the service takes it: it has no or several `Host` headers.
        MalformedRequest = "malformed_request",
        /// The request names a host that is not this server's; an open server answers to its own.
        MisdirectedRequest = "misdirected_request",
        /// The database or the storage does not answer: the reply of a readiness check.
        NotReady = "not_ready",
        /// The client makes too many requests; `Retry-After` says when to come back.
        RateLimited = "rate_limited",
        /// The path exists, but not with this method; `allowed` lists its methods.
        MethodNotAllowed = "method_not_allowed",
        /// The body has another type or a content encoding; `allowed` lists the type.
        UnsupportedMediaType = "unsupported_media_type",
        /// No byte of the file lies in the range that was asked for.
        RangeNotSatisfiable = "range_not_satisfiable",
    }
}
