//! Reports of background work, as the library returns them. `api` has their shapes on the wire.

use std::collections::BTreeMap;

use super::id::{FileId, OrganizationNumber};
use super::provider::ProviderCode;
use super::status::{Location, Status};

/// One file that background work could not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkFailure {
    /// The file.
    pub file_id: FileId,
    /// The reason, fit to be shown.
    pub error: String,
}

impl WorkFailure {
    pub(crate) fn new(file_id: FileId, error: &super::error::Error) -> Self {
        Self { file_id, error: error.to_string() }
    }
}

/// The result of a purge run, or of counting what one would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgeReport {
    /// True if files were only counted and nothing was changed.
    pub dry_run: bool,
    /// TEMP files whose time was over, marked for purge.
    pub expired: u64,
    /// Records removed (dry run: due to be removed).
    pub purged: u64,
    /// Bytes of the purged files.
    pub purged_bytes: u64,
    /// Dropped blobs removed: bytes that no record refers to any more (dry run: due to be removed).
    pub blobs_removed: u64,
    /// Blobs removed, of files and dropped ones, by the provider that held them.
    pub removed_at: BTreeMap<ProviderCode, u64>,
    /// Deleted files that are still within their grace period.
    pub waiting: u64,
    /// Files and blobs that are due and were left to later, by the provider that holds them: one that
    /// does not answer, or is not configured.
    pub postponed: BTreeMap<ProviderCode, u64>,
    /// True if nothing is removed now because the wall clock leapt forward and is not trusted yet.
    pub is_paused: bool,
    /// Removals that failed and will be attempted again.
    pub failed: u64,
    /// The first failures, 100 at most.
    pub failures: Vec<WorkFailure>,
}

/// The result of a sync run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncReport {
    /// Files that had nowhere to go, or were there already: PENDING became NONE.
    pub settled: u64,
    /// Files copied to their provider: SYNCED.
    pub synced: u64,
    /// Bytes of the copied files.
    pub synced_bytes: u64,
    /// Files that still wait: for another run, for the pause after a failed attempt, for a provider
    /// that takes no files.
    pub waiting: u64,
    /// Files that wait for a provider that does not answer, or is not configured.
    pub postponed: BTreeMap<ProviderCode, u64>,
    /// Copies that failed; attempted again later, unless the file is FAILED now.
    pub failed: u64,
    /// The first failures, 100 at most.
    pub failures: Vec<WorkFailure>,
}

/// The number of files in each sync status, deleted ones left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncStatusReport {
    /// Files with nothing to do.
    pub none: u64,
    /// Files that wait.
    pub pending: u64,
    /// Files being copied.
    pub syncing: u64,
    /// Files at their provider.
    pub synced: u64,
    /// Files whose last attempt failed.
    pub failed: u64,
    /// Files moved to or between providers since the store was opened.
    pub files_moved: u64,
    /// Bytes read for such moves since then, failed ones included.
    pub bytes_copied: u64,
}

/// Files of an organization that are alike: one provider, one status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateHolding {
    /// The provider that holds the bytes.
    pub provider: ProviderCode,
    /// The status of the files.
    pub status: Status,
    /// The number of files.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// True if the provider is in the configuration.
    pub available: bool,
}

/// The work of a migration, counted without doing it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigratePlan {
    /// The target.
    pub to: ProviderCode,
    /// Files to move.
    pub move_files: u64,
    /// Bytes of the files to move.
    pub move_bytes: u64,
    /// The holdings that would move.
    pub from: Vec<MigrateHolding>,
    /// READY files that are at the target.
    pub there_files: u64,
    /// Bytes of the files at the target.
    pub there_bytes: u64,
    /// TEMP and THUMBNAIL files: they stay LOCAL.
    pub stay_files: u64,
    /// Bytes of the files that stay.
    pub stay_bytes: u64,
    /// The reason why the target takes no files, if it takes none.
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

/// The result of a migration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateReport {
    /// Files moved.
    pub moved_files: u64,
    /// Bytes of the moved files.
    pub moved_bytes: u64,
    /// READY files that are still elsewhere.
    pub left_files: u64,
    /// Bytes of the files that are still elsewhere.
    pub left_bytes: u64,
    /// True if the migration was told to stop.
    pub stopped: bool,
    /// Files that could not be moved; a later run attempts them again.
    pub failed: u64,
    /// The first failures, 100 at most.
    pub failures: Vec<WorkFailure>,
}

/// A migration under way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateRunning {
    /// The target.
    pub to: ProviderCode,
    /// Files moved so far.
    pub files: u64,
    /// Bytes of the files moved so far.
    pub bytes: u64,
}

/// The providers that hold an organization's files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateStatus {
    /// The organization's number.
    pub organization: OrganizationNumber,
    /// The provider of its active binding.
    pub bound_to: Option<ProviderCode>,
    /// Files of the organization, by provider and status.
    pub holdings: Vec<MigrateHolding>,
    /// The migration under way, if there is one.
    pub running: Option<MigrateRunning>,
}

/// The result of reading an organization's files at a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateVerifyReport {
    /// Files read.
    pub checked_files: u64,
    /// Bytes of the files read.
    pub checked_bytes: u64,
    /// READY files that are elsewhere and so were not read.
    pub elsewhere: u64,
    /// Files that cannot be read, or whose digest is not the record's.
    pub failed: u64,
    /// The first failures, 10,000 at most.
    pub failures: Vec<WorkFailure>,
}

/// A provider as an administrator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderInfo {
    /// The provider's code.
    pub code: ProviderCode,
    /// The provider's name, for people.
    pub name: String,
    /// The location of the bytes it holds: served from here, or from there.
    pub location: Location,
    /// True if it takes new files.
    pub is_active: bool,
    /// The kind of service: `s3`, `azblob`, `gcs`, `fs` or `memory`; `local` for the store's own disk.
    pub scheme: String,
    /// True if that kind of service is part of the project's tests.
    pub is_tested: bool,
}
