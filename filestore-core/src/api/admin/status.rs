//! The whole service at a glance.

use serde::{Deserialize, Serialize};

use super::{AdminProvider, FsckStatus, MigrateRunning, SyncStatusReport, VariantCacheReport};

/// The reply to GET `/admin/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusReply {
    /// Store that the service works on.
    pub store: StatusStore,
    /// State of the database: `ok`, or the reason why it cannot be used.
    pub database: String,
    /// State of the storage: `ok`, or the reason why it cannot be used.
    pub storage: String,
    /// Disk of the data directory; null if it cannot be looked at.
    pub disk: Option<StatusDisk>,
    /// Uploads that are being received or wait for their commit.
    pub unfinished: StatusUnfinished,
    /// Providers with their state, `LOCAL` first.
    pub providers: Vec<AdminProvider>,
    /// Files by sync status.
    pub sync: SyncStatusReport,
    /// Work of the purge.
    pub purge: StatusPurge,
    /// Migrations under way.
    pub migrations: Vec<StatusMigration>,
    /// Checks of the store: the one under way, and the last results.
    pub checks: FsckStatus,
    /// Contents of the variant cache.
    pub variants: VariantCacheReport,
    /// Things that are not well, the gravest first; empty if all is well.
    pub advice: Vec<StatusAdvice>,
}

/// The store behind a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusStore {
    /// Id of the store.
    pub id: String,
    /// Version of the service.
    pub version: String,
    /// Time at which the store was opened.
    pub opened_at: String,
    /// Seconds since then.
    pub uptime_secs: u64,
    /// Path of the data directory.
    pub data_dir: String,
}

/// The space on the disk of the data directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusDisk {
    /// Bytes that the service may still write.
    pub free_bytes: u64,
    /// Bytes of the file system.
    pub total_bytes: u64,
    /// Bytes that are kept back from uploads.
    pub reserve_bytes: u64,
    /// True if there is room for uploads.
    pub takes_uploads: bool,
}

/// Uploads that are not committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusUnfinished {
    /// Number of files.
    pub files: u64,
    /// Bytes of these files so far.
    pub bytes: u64,
    /// Most files there may be.
    pub max_files: u64,
    /// Most bytes there may be.
    pub max_bytes: u64,
}

/// The work of the purge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusPurge {
    /// Deleted files that are due to be removed.
    pub due: u64,
    /// Bytes of the due files.
    pub due_bytes: u64,
    /// Deleted files that are still within their grace period.
    pub waiting: u64,
    /// TEMP files whose time is over.
    pub expired: u64,
    /// Replaced blobs that are due to be removed.
    pub due_blobs: u64,
}

/// A migration under way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusMigration {
    /// Organization whose files move.
    pub organization_id: String,
    /// Progress of the migration.
    #[serde(flatten)]
    pub running: MigrateRunning,
}

/// Something that is not well.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusAdvice {
    /// Subject: `database`, `storage`, `disk`, `records`, `blobs`, `checks`, `uploads`, `sync`, or the code of a
    /// provider.
    pub about: String,
    /// Problem, fit to be shown.
    pub problem: String,
    /// Next step for the administrator.
    pub next: String,
}
