//! Reports of background work. `api` has the same reports in JSON.

pub mod overview;
pub mod fsck;
pub mod erasure;
pub mod receipt;
pub mod receipt_key;
pub mod explain;
pub mod backup;
pub mod load;
pub mod webhooks;

use std::collections::BTreeMap;
use std::fmt;

use super::file::status::{Location, Status};
use super::file::usage::Stored;
use super::id::{FileId, OrganizationId, OrganizationNumber};
use super::provider::ProviderCode;
use super::time::clock::Timestamp;

/// A file that background work could not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkFailure {
    /// File id.
    pub file_id: FileId,
    /// Explanation for people.
    pub error: String,
}

impl WorkFailure {
    pub(crate) fn new(file_id: FileId, error: &super::error::Error) -> Self {
        Self { file_id, error: error.to_string() }
    }
}

/// The records database's schema. Displays as `SQLite 7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Schema {
    /// Database engine name: `SQLite` or `PostgreSQL`.
    pub engine: &'static str,
    /// Schema version, which each engine counts on its own.
    pub version: usize,
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.engine, self.version)
    }
}

/// When a purge run removes deleted files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PurgeWhen {
    /// After their grace period.
    #[default]
    Due,
    /// At once, without their grace period. Exception: files that a running snapshot might contain
    /// wait for the end of the snapshot.
    Now,
}

/// The files of a purge run. `Default` purges files of all organizations after their grace period.
///
/// ```
/// use filestore_core::admin::{PurgeOptions, PurgeWhen};
///
/// # fn main() -> filestore_core::Result<()> {
/// let mut options = PurgeOptions::default();
/// options.when = PurgeWhen::Now;
/// options.organization = Some("42".parse()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgeOptions {
    /// When the run removes deleted files.
    pub when: PurgeWhen,
    /// Purge only this organization's files. `None` means all. A run for one organization leaves
    /// replaced blobs to other runs, except blobs of its deleted files.
    pub organization: Option<OrganizationId>,
}

/// The result of a purge run, or of a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgeReport {
    /// True for a dry run, which only counts.
    pub dry_run: bool,
    /// Expired TEMP files, now marked as deleted.
    pub expired: u64,
    /// Removed records. In a dry run: records to remove.
    pub purged: u64,
    /// Total purged bytes.
    pub purged_bytes: u64,
    /// Removed replaced blobs. In a dry run: blobs to remove.
    pub blobs_removed: u64,
    /// Removed blobs by provider, with replaced blobs.
    pub removed_at: BTreeMap<ProviderCode, u64>,
    /// Deleted files within their grace period.
    pub waiting: u64,
    /// Their total size, in bytes.
    pub waiting_bytes: u64,
    /// Time at which the first grace period ends. `None` if no file waits.
    pub next_due_at: Option<Timestamp>,
    /// Files and blobs that wait for a provider that does not answer or is not configured.
    pub postponed: BTreeMap<ProviderCode, u64>,
    /// True if the purge waits because the clock jumped forward.
    pub is_paused: bool,
    /// Failed removals. A later run retries.
    pub failed: u64,
    /// The first failures, at most 100.
    pub failures: Vec<WorkFailure>,
}

/// The sync run result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncReport {
    /// Files without work: their status changed from PENDING to NONE.
    pub settled: u64,
    /// Files copied to their provider (SYNCED).
    pub synced: u64,
    /// Their total size, in bytes.
    pub synced_bytes: u64,
    /// Files that still wait: for another run, for the pause after a failure, or for a provider
    /// that accepts no files.
    pub waiting: u64,
    /// Files that wait for a provider that does not answer or is not configured.
    pub postponed: BTreeMap<ProviderCode, u64>,
    /// Failed copies. A later run retries, except for FAILED files.
    pub failed: u64,
    /// The first failures, at most 100.
    pub failures: Vec<WorkFailure>,
}

/// The number of files in each sync status, without deleted files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncStatusReport {
    /// Files without work.
    pub none: u64,
    /// Files that wait.
    pub pending: u64,
    /// Files that the worker is copying.
    pub syncing: u64,
    /// Files at their provider.
    pub synced: u64,
    /// Files with no attempts left.
    pub failed: u64,
    /// Files moved to or between providers since the store was opened.
    pub files_moved: u64,
    /// Bytes read for these moves, with failed moves.
    pub bytes_copied: u64,
}

/// An organization's files with one status at one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateHolding {
    /// Provider that stores the bytes.
    pub provider: ProviderCode,
    /// File status.
    pub status: Status,
    /// File count.
    pub files: u64,
    /// Total size, in bytes.
    pub bytes: u64,
    /// True if the provider is in the configuration.
    pub available: bool,
}

/// The migration plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigratePlan {
    /// Target provider.
    pub to: ProviderCode,
    /// Files to move.
    pub move_files: u64,
    /// Their total size, in bytes.
    pub move_bytes: u64,
    /// The files' current providers.
    pub from: Vec<MigrateHolding>,
    /// READY files already at the target.
    pub there_files: u64,
    /// Their total size, in bytes.
    pub there_bytes: u64,
    /// TEMP and THUMBNAIL files, which stay LOCAL.
    pub stay_files: u64,
    /// Their total size, in bytes.
    pub stay_bytes: u64,
    /// Reason why the target accepts no files. `None` if it does.
    pub refused: Option<String>,
}

impl MigratePlan {
    pub(crate) fn new(to: ProviderCode) -> Self {
        Self {
            to,
            move_files: 0,
            move_bytes: 0,
            from: Vec::new(),
            there_files: 0,
            there_bytes: 0,
            stay_files: 0,
            stay_bytes: 0,
            refused: None,
        }
    }
}

/// The migration result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateReport {
    /// Moved files.
    pub moved_files: u64,
    /// Their total size, in bytes.
    pub moved_bytes: u64,
    /// READY files still at another provider.
    pub left_files: u64,
    /// Their total size, in bytes.
    pub left_bytes: u64,
    /// True if the migration was stopped.
    pub stopped: bool,
    /// Files that could not be moved. Run the migration again to retry.
    pub failed: u64,
    /// The first failures, at most 100.
    pub failures: Vec<WorkFailure>,
}

/// A running migration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateRunning {
    /// Target provider.
    pub to: ProviderCode,
    /// Files moved so far.
    pub files: u64,
    /// Bytes moved so far.
    pub bytes: u64,
    /// Files to move and their size, counted when the migration began. `None` before the count, and for a
    /// migration on an older server.
    pub planned: Option<Stored>,
    /// Start time. `None` for a migration on an older server.
    pub started_at: Option<Timestamp>,
}

/// The sync queue of one organization, without deleted files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrganizationSyncStatus {
    /// Organization number.
    pub organization: OrganizationNumber,
    /// Files that wait.
    pub pending: u64,
    /// Files that the worker is copying.
    pub syncing: u64,
    /// Files with no attempts left.
    pub failed: u64,
    /// All other files: they are where they stay.
    pub done: u64,
}

/// Where an organization's files are, and the migration that is running.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateStatus {
    /// Organization number.
    pub organization: OrganizationNumber,
    /// The active binding's provider.
    pub bound_to: Option<ProviderCode>,
    /// Files for each provider and status.
    pub holdings: Vec<MigrateHolding>,
    /// The running migration, if there is one.
    pub running: Option<MigrateRunning>,
}

/// The verification result for files at a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateVerifyReport {
    /// Files read.
    pub checked_files: u64,
    /// Their total size, in bytes.
    pub checked_bytes: u64,
    /// READY files at other providers, which were not read.
    pub elsewhere: u64,
    /// Files that cannot be read, or do not match the digest in the record.
    pub failed: u64,
    /// The first failures, at most 10,000.
    pub failures: Vec<WorkFailure>,
}

/// A provider, with the details for an administrator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderInfo {
    /// Provider code.
    pub code: ProviderCode,
    /// Display name.
    pub name: String,
    /// The provider's location.
    pub location: Location,
    /// True if the provider accepts new files.
    pub is_active: bool,
    /// Service kind: `s3`, `azblob`, `gcs`, `fs` or `memory`. `local` for the local disk.
    pub scheme: String,
    /// True if filestore's tests cover this service kind.
    pub is_tested: bool,
}
