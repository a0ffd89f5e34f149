//! The state of the whole service, in JSON.

use serde::{Deserialize, Serialize};

use crate::api::vocabulary::AdviceCode;

use super::{AdminProvider, FsckStatus, MigrateRunning, SyncStatusReport, VariantCacheReport};

/// The reply to GET `/admin/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusReply {
    /// The store.
    pub store: StatusStore,
    /// `ok`, or the reason why the server cannot use the database.
    pub database: String,
    /// `ok`, or the reason why the server cannot use the storage.
    pub storage: String,
    /// Data directory disk. Null if its size is unknown.
    pub disk: Option<StatusDisk>,
    /// Uploads without a commit: still arriving, or waiting.
    pub unfinished: StatusUnfinished,
    /// Resumable uploads. They can wait for their client for a day.
    pub resumable: StatusResumable,
    /// Log of events. Null if the database does not answer.
    pub events: Option<StatusEvents>,
    /// Webhooks. Null if the database does not answer.
    pub webhooks: Option<StatusWebhooks>,
    /// Providers with their state, `LOCAL` first.
    pub providers: Vec<AdminProvider>,
    /// Number of files in the store. Temporary files count, and deleted files count until the purge.
    pub files: u64,
    /// Their total size, in bytes.
    pub bytes: u64,
    /// Files in each sync status.
    pub sync: SyncStatusReport,
    /// Purge work.
    pub purge: StatusPurge,
    /// Running migrations.
    pub migrations: Vec<StatusMigration>,
    /// Checks of the store: the running check and the last results.
    pub checks: FsckStatus,
    /// Variant cache size.
    pub variants: VariantCacheReport,
    /// Problems with advice, most serious first. Empty if there is no problem.
    pub advice: Vec<StatusAdvice>,
}

/// The store of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusStore {
    /// Store id.
    pub id: String,
    /// Service version, for example `0.2.0`.
    pub version: String,
    /// Time at which the store was opened, in RFC 3339 (UTC, milliseconds).
    pub opened_at: String,
    /// Seconds since that time.
    pub uptime_secs: u64,
    /// Data directory path.
    pub data_dir: String,
}

/// Space on the data directory's disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusDisk {
    /// Free space for the service, in bytes.
    pub free_bytes: u64,
    /// File system size, in bytes.
    pub total_bytes: u64,
    /// Space that uploads cannot use, in bytes (`reserve_bytes`).
    pub reserve_bytes: u64,
    /// True if there is space for uploads.
    pub takes_uploads: bool,
}

/// Uploads without a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusUnfinished {
    /// File count.
    pub files: u64,
    /// Bytes in these files so far.
    pub bytes: u64,
    /// Maximum files.
    pub max_files: u64,
    /// Maximum bytes.
    pub max_bytes: u64,
}

/// Resumable uploads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusResumable {
    /// Open uploads on all servers. Null if the database does not answer.
    pub open: Option<u64>,
    /// Bytes that these uploads hold: announced or received. Null if the database does not answer.
    pub open_bytes: Option<u64>,
    /// Resumable uploads to which a request sends bytes now.
    pub transfers: u64,
}

/// The log of events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusEvents {
    /// True if changes write events.
    pub is_on: bool,
    /// Number of events that are kept, about.
    pub kept: u64,
    /// Time of the oldest event, in RFC 3339 (UTC, milliseconds). Null if there is none.
    pub oldest_at: Option<String>,
    /// Time of the newest gap, if the log still has its event `log.gap`.
    pub gap_at: Option<String>,
    /// Number of events that readers cannot see yet, because an earlier write is open. 0 with
    /// SQLite.
    pub held_back: u64,
    /// Seconds for which an open write has held them back.
    pub held_back_secs: u64,
}

/// The webhooks of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusWebhooks {
    /// Enabled webhooks that accept events, or that no event waits for.
    pub ok: u64,
    /// Enabled webhooks that accept no event, although some wait.
    pub failing: u64,
    /// Disabled webhooks.
    pub disabled: u64,
    /// Number of times that a webhook can have missed events.
    pub gaps: u64,
    /// Time since which the worst enabled webhook has accepted no event. Null if no webhook fails.
    pub failing_since: Option<String>,
    /// Time of the oldest event that waits for a failing webhook. Null if no event waits.
    pub oldest_waiting_at: Option<String>,
}

/// Purge work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusPurge {
    /// Deleted files to remove now.
    pub due: u64,
    /// Their total size, in bytes.
    pub due_bytes: u64,
    /// Deleted files within their grace period.
    pub waiting: u64,
    /// Their total size, in bytes.
    pub waiting_bytes: u64,
    /// Time at which the first grace period ends, in RFC 3339 (UTC, milliseconds). Null if no file
    /// waits.
    pub next_due_at: Option<String>,
    /// Expired `TEMP` files.
    pub expired: u64,
    /// Replaced blobs to remove now.
    pub due_blobs: u64,
}

/// A running migration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusMigration {
    /// Organization id.
    pub organization_id: String,
    /// Migration progress.
    #[serde(flatten)]
    pub running: MigrateRunning,
}

/// A problem, with advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct StatusAdvice {
    /// Kind of the problem, for programs.
    pub code: AdviceCode,
    /// Subject: `database`, `storage`, `disk`, `records`, `blobs`, `checks`, `uploads`, `sync`, or
    /// a provider code.
    pub about: String,
    /// Explanation for people.
    pub problem: String,
    /// Next step for the administrator.
    pub next: String,
    /// Code of the provider with the problem. Null for other problems.
    pub provider_code: Option<String>,
    /// Organization of the newest file with the problem. Null for problems without a file.
    pub organization_id: Option<String>,
    /// Command line of the next step. Null if no single command does it.
    pub command: Option<String>,
}

impl Default for StatusAdvice {
    fn default() -> Self {
        Self {
            code: AdviceCode::Other,
            about: String::new(),
            problem: String::new(),
            next: String::new(),
            provider_code: None,
            organization_id: None,
            command: None,
        }
    }
}
