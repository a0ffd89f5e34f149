//! Administration on the wire (`/api/v1/admin/...`): snake_case.

use serde::{Deserialize, Serialize};

/// The body of POST `/admin/purge/run`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PurgeRunRequest {
    /// Only count what would be purged.
    pub dry_run: bool,
}

/// What a purge run did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeReport {
    /// Nothing was touched.
    pub dry_run: bool,
    /// TEMP files whose time was over, marked for purge.
    pub expired: u64,
    /// Records removed (dry run: due to be removed).
    pub purged: u64,
    /// Bytes of those files.
    pub purged_bytes: u64,
    /// Replaced blobs removed (dry run: due to be removed).
    pub blobs_removed: u64,
    /// Deleted files that are still within their grace.
    pub waiting: u64,
    /// What could not be removed and will be tried again.
    pub failures: Vec<WorkFailure>,
}

/// One file that background work could not finish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkFailure {
    /// The file.
    pub file_id: String,
    /// Why, fit to be shown.
    pub error: String,
}

/// What a sync run did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReport {
    /// Files that had nowhere to go: PENDING became NONE.
    pub settled: u64,
    /// What could not be copied and will be tried again.
    pub failures: Vec<WorkFailure>,
}

/// How many files are in which sync status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncStatusReport {
    /// Nothing to do.
    pub none: u64,
    /// Waiting.
    pub pending: u64,
    /// Being copied.
    pub syncing: u64,
    /// At their provider.
    pub synced: u64,
    /// Given up.
    pub failed: u64,
}

/// The variant cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantCacheReport {
    /// Entries on disk.
    pub disk_entries: u64,
    /// Their bytes.
    pub disk_bytes: u64,
    /// Entries in memory.
    pub memory_entries: u64,
    /// Their bytes.
    pub memory_bytes: u64,
    /// Bytes of decoded pictures kept in memory for further sizes.
    #[serde(default)]
    pub intermediate_bytes: u64,
    /// Files whose variants wait to be made in advance (`variants.eager`).
    #[serde(default)]
    pub eager_waiting: u64,
    /// Variants made in advance since the server started.
    #[serde(default)]
    pub eager_made: u64,
    /// Files given up since then because requests came first.
    #[serde(default)]
    pub eager_dropped: u64,
    /// Entries removed by this call (prune only).
    pub removed: u64,
}
