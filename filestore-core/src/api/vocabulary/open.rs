//! States and outcomes, as replies hold them.

use super::open_word;

open_word! {
    /// The stage of a file's life.
    Status {
        /// Temporary: local only, expires.
        Temp = "TEMP",
        /// A thumbnail source: local only, kept.
        Thumbnail = "THUMBNAIL",
        /// An ordinary file, kept until it is deleted.
        Ready = "READY",
    }
}

open_word! {
    /// The progress of a file on its way to the organization's provider.
    SyncStatus {
        /// Nothing to do: the file has nowhere to go, or is there already.
        None = "NONE",
        /// Waiting for the sync worker.
        Pending = "PENDING",
        /// Claimed by the sync worker.
        Syncing = "SYNCING",
        /// Copied, verified and served from the provider.
        Synced = "SYNCED",
        /// Failed for good after the last attempt; served from its old place.
        Failed = "FAILED",
    }
}

open_word! {
    /// The mark of a deleted file.
    PurgeStatus {
        /// Deleted; the background job removes the bytes, then the record.
        SystemPurge = "SYSTEM_PURGE",
    }
}

open_word! {
    /// The side that serves a file's bytes.
    StorageLocation {
        /// The service itself, from its data directory.
        Local = "LOCAL",
        /// A provider, by redirect.
        Cloud = "CLOUD",
    }
}

open_word! {
    /// The end of one step of a provider check.
    CheckOutcome {
        /// Works as it should.
        Ok = "ok",
        /// Not offered by the provider, which is used without it.
        Cannot = "cannot",
        /// Offered by the provider, but does not work.
        Failed = "failed",
        /// Not attempted, because a step before failed.
        Skipped = "skipped",
    }
}

open_word! {
    /// The state of the breaker before a provider.
    BreakerState {
        /// The provider answers: operations pass.
        Closed = "closed",
        /// One operation is trying the provider; all others fail at once.
        HalfOpen = "half_open",
        /// The provider does not answer: operations fail at once until the next trial.
        Open = "open",
    }
}
