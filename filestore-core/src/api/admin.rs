//! Administration on the wire (`/api/v1/admin/...`): snake_case.

use std::collections::BTreeMap;

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
    /// Blobs removed, files' and replaced ones, by the code of the provider that held them.
    #[serde(default)]
    pub removed_at: BTreeMap<String, u64>,
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
    /// Files that had nowhere to go, or were there already: PENDING became NONE.
    pub settled: u64,
    /// Files copied to their provider: SYNCED.
    #[serde(default)]
    pub synced: u64,
    /// Bytes of those files.
    #[serde(default)]
    pub synced_bytes: u64,
    /// Files that wait still: for another run, for the pause after a failed try, for a provider that
    /// takes no files.
    #[serde(default)]
    pub waiting: u64,
    /// What could not be copied; tried again later, unless it is FAILED now.
    pub failures: Vec<WorkFailure>,
}

/// The body of POST `/admin/sync/enqueue` and `/admin/sync/retry`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncQueueRequest {
    /// The organization's number; all organizations if absent (retry only).
    #[serde(rename = "organizationId", skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<i64>,
}

/// What was queued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncQueueReport {
    /// Files that are PENDING now.
    pub queued: u64,
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
    /// Files moved to or between providers since the server started.
    #[serde(default)]
    pub files_moved: u64,
    /// Bytes read for such moves since then, failed ones included.
    #[serde(default)]
    pub bytes_copied: u64,
}

/// Where files of an organization are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrateHolding {
    /// Who holds their bytes.
    pub provider_code: String,
    /// Their status.
    pub status: String,
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether that provider is in the configuration.
    pub available: bool,
}

/// What a migration would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigratePlan {
    /// The target.
    pub to: String,
    /// Files to move.
    pub move_files: u64,
    /// Their bytes.
    pub move_bytes: u64,
    /// Who holds them now.
    pub from: Vec<MigrateHolding>,
    /// READY files that are at the target.
    pub there_files: u64,
    /// Their bytes.
    pub there_bytes: u64,
    /// TEMP and THUMBNAIL files: they stay LOCAL.
    pub stay_files: u64,
    /// Their bytes.
    pub stay_bytes: u64,
    /// Why the target takes no files, if it does not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<String>,
}

/// The body of POST `/admin/migrate/run`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigrateRunRequest {
    /// The organization's number.
    #[serde(rename = "organizationId")]
    pub organization_id: i64,
    /// The target: the provider of the organization's active binding.
    pub to: String,
    /// No more than that many bytes are read in a second; as many as go if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes_per_second: Option<u64>,
}

/// The body of POST `/admin/migrate/verify`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigrateVerifyRequest {
    /// The organization's number.
    #[serde(rename = "organizationId")]
    pub organization_id: i64,
    /// The provider whose files are read.
    pub to: String,
}

/// The body of POST `/admin/migrate/stop`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigrateStopRequest {
    /// The organization's number.
    #[serde(rename = "organizationId")]
    pub organization_id: i64,
}

/// What a migration did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrateReport {
    /// Files moved.
    pub moved_files: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// READY files that are elsewhere still.
    pub left_files: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Whether it was told to stop.
    pub stopped: bool,
    /// What could not be moved; a later run tries it again.
    pub failures: Vec<WorkFailure>,
}

/// A migration under way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrateRunning {
    /// The target.
    pub to: String,
    /// Files moved so far.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Where an organization's files are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrateStatus {
    /// The organization's number.
    #[serde(rename = "organizationId")]
    pub organization_id: i64,
    /// The provider of its active binding.
    pub bound_to: Option<String>,
    /// Who holds what.
    pub holdings: Vec<MigrateHolding>,
    /// The migration under way, if one is.
    pub running: Option<MigrateRunning>,
}

/// What was found when the files at a provider were read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrateVerifyReport {
    /// Files read.
    pub checked_files: u64,
    /// Their bytes.
    pub checked_bytes: u64,
    /// READY files that are elsewhere and so were not read.
    pub elsewhere: u64,
    /// Files that cannot be read, or whose digest is not the record's.
    pub failures: Vec<WorkFailure>,
}

/// What was found when a provider was tried out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderCheckReport {
    /// Which provider.
    pub provider_code: String,
    /// Files can be kept at it.
    pub can_serve: bool,
    /// What was tried, in order.
    pub steps: Vec<ProviderCheckStep>,
}

/// One thing that was tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderCheckStep {
    /// What: `write`, `read`, `range`, `presign` and so on.
    pub name: String,
    /// `ok`, `cannot` (the provider has no such thing; it is done without), `failed` or `skipped`.
    pub outcome: String,
    /// What was seen, in one line.
    pub detail: String,
}

/// A provider as an administrator sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminProvider {
    /// Its code.
    pub provider_code: String,
    /// Its name, for people.
    pub provider_name: String,
    /// `LOCAL` or `CLOUD`.
    pub storage_location: String,
    /// Whether it takes new files.
    pub is_active: bool,
    /// Which kind of service it is: `s3`, `azblob`, `gcs`, `fs` or `memory`; `local` for the service's
    /// own disk.
    pub scheme: String,
    /// Whether that kind of service is part of the project's tests.
    pub is_tested: bool,
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
