//! States and results in replies.

use super::open_word;

open_word! {
    /// The lifecycle status of a file.
    Status {
        /// Temporary. Stored locally, and expires.
        Temp = "TEMP",
        /// Source of thumbnails. Stored locally, and does not expire.
        Thumbnail = "THUMBNAIL",
        /// An ordinary file. Stays until you delete it.
        Ready = "READY",
    }
}

open_word! {
    /// The progress of a file towards the provider of the organization.
    SyncStatus {
        /// No work: the file has no other provider, or is already there.
        None = "NONE",
        /// Waits for the sync worker.
        Pending = "PENDING",
        /// Claimed by the sync worker.
        Syncing = "SYNCING",
        /// Copied, verified and served from the provider.
        Synced = "SYNCED",
        /// All attempts failed. The file is served from its old location.
        Failed = "FAILED",
    }
}

open_word! {
    /// The purge status of a deleted file.
    PurgeStatus {
        /// Deleted. The purge removes the bytes and then the record.
        SystemPurge = "SYSTEM_PURGE",
    }
}

open_word! {
    /// The side that serves the bytes of a file.
    StorageLocation {
        /// The server sends the bytes.
        Local = "LOCAL",
        /// The server redirects to a provider.
        Cloud = "CLOUD",
    }
}

open_word! {
    /// The result of one step of a provider check.
    CheckOutcome {
        /// The step succeeded.
        Ok = "ok",
        /// The provider does not offer this, and filestore works without it.
        Cannot = "cannot",
        /// The provider offers this, but the step failed.
        Failed = "failed",
        /// Not attempted, because an earlier step failed.
        Skipped = "skipped",
    }
}

open_word! {
    /// The circuit breaker of a provider.
    BreakerState {
        /// The provider answers. Operations pass.
        Closed = "closed",
        /// One operation tests the provider. All other operations fail at once.
        HalfOpen = "half_open",
        /// The provider does not answer. Operations fail at once until the next test.
        Open = "open",
    }
}

open_word! {
    /// The way in which a service admits callers.
    AccessMode {
        /// Without keys: every caller who can reach the server can do everything.
        Open = "open",
        /// With keys: each request needs an API key.
        Keys = "keys",
    }
}

open_word! {
    /// Kind of a problem in `advice`.
    AdviceCode {
        /// The database does not answer, or its figures cannot be read.
        DatabaseFault = "database_fault",
        /// The storage accepts no bytes.
        StorageFault = "storage_fault",
        /// Uploads are refused, because the disk is full.
        DiskFull = "disk_full",
        /// The disk is nearly full.
        DiskLow = "disk_low",
        /// The store skips damaged rows.
        DamagedRows = "damaged_rows",
        /// Files have no bytes on the disk.
        MissingBlobs = "missing_blobs",
        /// The last check has open findings.
        OpenFindings = "open_findings",
        /// Uploads without a commit are close to their limit.
        UnfinishedUploads = "unfinished_uploads",
        /// A provider does not answer, or gets no writes.
        ProviderFailing = "provider_failing",
        /// Work waits for a provider that the configuration no longer contains.
        ProviderMissing = "provider_missing",
        /// Files wait for a copy to an inactive provider.
        ProviderInactive = "provider_inactive",
        /// A provider answers, and work still waits for it.
        WorkWaiting = "work_waiting",
        /// Files have no copy attempts left.
        SyncFailed = "sync_failed",
        /// Readers of events wait for an open transaction.
        EventsHeldBack = "events_held_back",
        /// The endpoint of a webhook accepts no event for a long time.
        WebhookFailing = "webhook_failing",
        /// The server has disabled a webhook.
        WebhookDisabled = "webhook_disabled",
        /// Another problem. `about` names its subject.
        Other = "other",
    }
}
