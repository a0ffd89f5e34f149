//! Snapshots of the store.

use serde::{Deserialize, Serialize};

use crate::api::vocabulary::ErrorCode;

/// A place for snapshots that the server's configuration names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupDestination {
    /// Name by which requests ask for it.
    pub name: String,
}

impl BackupDestination {
    /// Names a destination.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// A finished snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Snapshot {
    /// Id of the snapshot; that of a later one is greater.
    pub snapshot_id: String,
    /// Id of the store that was backed up.
    pub store_id: String,
    /// Instant of which the snapshot is.
    pub created_at: String,
    /// True if it shares the disk of the store: its bytes are second names of the same files.
    pub shares_disk: bool,
    /// True if files at providers are only noted.
    pub local_only: bool,
    /// Number of records whose bytes it names.
    pub files: u64,
    /// Number of different contents that it holds.
    pub blobs: u64,
    /// Size of these contents, in bytes.
    pub bytes: u64,
    /// Number of contents that it notes at providers and does not hold.
    pub elsewhere: u64,
    /// Number of contents that the store did not have any more, or had with other bytes.
    pub damaged: u64,
    /// Number of records that could not be read, and whose bytes it does not name.
    #[serde(default)]
    pub damaged_records: u64,
    /// Size of its copy of the database, in bytes.
    pub database_bytes: u64,
}

/// Bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupFault {
    /// SHA-256 that the bytes should have, in hexadecimal digits.
    pub sha256: String,
    /// Size that they should have, in bytes.
    pub size_bytes: u64,
    /// Id of a file that has them, if it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file_id: Option<String>,
    /// `missing`, `wrong` (other bytes) or `unreachable` (at a provider that does not answer).
    pub problem: String,
}

impl BackupFault {
    /// Describes a fault.
    pub fn new(sha256: impl Into<String>, size_bytes: u64, problem: impl Into<String>) -> Self {
        Self { sha256: sha256.into(), size_bytes, file_id: None, problem: problem.into() }
    }
}

/// The reason why work that had begun did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupError {
    /// Stable code, as of a problem document.
    pub code: ErrorCode,
    /// Reason, fit to be shown.
    pub message: String,
}

impl BackupError {
    /// Describes a failure.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// The body of POST `/admin/backups/{destination}/create`; it may be absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CreateBackup {
    /// True to give files second names instead of copying them, which no failing disk leaves alone.
    pub hard_links: bool,
    /// True to note files at providers instead of copying them.
    pub local_only: bool,
}

impl CreateBackup {
    /// Gives files second names instead of copying them.
    #[must_use]
    pub fn with_hard_links(mut self) -> Self {
        self.hard_links = true;
        self
    }

    /// Notes files at providers instead of copying them.
    #[must_use]
    pub fn local_only(mut self) -> Self {
        self.local_only = true;
        self
    }
}

/// The outcome of taking a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupReport {
    /// The snapshot; absent if the run failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub snapshot: Option<Snapshot>,
    /// Number of contents that this run copied or linked.
    pub copied: u64,
    /// Size of these contents, in bytes.
    pub copied_bytes: u64,
    /// Number of contents that were there already.
    pub reused: u64,
    /// First of the contents that are damaged in the store.
    #[serde(default)]
    pub faults: Vec<BackupFault>,
    /// Reason why the run failed after it had begun. What was copied stays, and the next run goes on
    /// from there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<BackupError>,
}

/// The body of POST `/admin/backups/{destination}/verify`; it may be absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct VerifyBackup {
    /// Id of the snapshot; the newest if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
}

impl VerifyBackup {
    /// Asks to read a snapshot, the newest if none is named.
    pub fn new(snapshot_id: impl Into<Option<String>>) -> Self {
        Self { snapshot_id: snapshot_id.into() }
    }
}

/// The outcome of reading a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupVerifyReport {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Number of contents that were read.
    pub checked: u64,
    /// Size of these contents, in bytes.
    pub checked_bytes: u64,
    /// Number of contents that are missing.
    pub missing: u64,
    /// Number of contents with other bytes, or that cannot be read.
    pub wrong: u64,
    /// Number of those that were set aside within the destination, so that the next snapshot takes them
    /// anew.
    #[serde(default)]
    pub set_aside: u64,
    /// True if the copy of the database is as it was written.
    pub database_ok: bool,
    /// True if all that the snapshot names is there as it was, and the store had everything when the
    /// snapshot was taken (no `damaged`, no `damaged_records`).
    pub ok: bool,
    /// First of the contents that are missing or have other bytes.
    #[serde(default)]
    pub faults: Vec<BackupFault>,
    /// Reason why reading failed after it had begun.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<BackupError>,
}

/// The body of POST `/admin/backups/{destination}/restore`: one file, or those of one organization.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RestoreBackup {
    /// Id of the snapshot; the newest if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Organization whose files are restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// Id of the file that is restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
}

impl RestoreBackup {
    /// Asks for all files of an organization.
    pub fn organization(organization_id: impl Into<String>) -> Self {
        Self { organization_id: Some(organization_id.into()), ..Self::default() }
    }

    /// Asks for one file.
    pub fn file(file_id: impl Into<String>) -> Self {
        Self { file_id: Some(file_id.into()), ..Self::default() }
    }

    /// Names the snapshot.
    #[must_use]
    pub fn from_snapshot(mut self, snapshot_id: impl Into<Option<String>>) -> Self {
        self.snapshot_id = snapshot_id.into();
        self
    }
}

/// The outcome of restoring.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupRestoreReport {
    /// Number of files whose bytes were restored and compared.
    pub restored: u64,
    /// Size of these bytes.
    pub restored_bytes: u64,
    /// Number of files that were left at their providers and compared there.
    pub left_at_providers: u64,
    /// Number of files that the store has, and that were left as they are.
    pub present: u64,
    /// Number of files whose bytes could not be had, or not be compared.
    pub failed: u64,
    /// First of those.
    #[serde(default)]
    pub faults: Vec<BackupFault>,
    /// Number of records of the snapshot that cannot be read, and whose files were not restored.
    #[serde(default)]
    pub damaged_records: u64,
    /// Reason why the run failed after it had begun.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<BackupError>,
}

/// The body of POST `/admin/backups/{destination}/prune`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PruneBackups {
    /// Number of snapshots to keep, the newest; at least 1.
    pub keep: u64,
}

impl PruneBackups {
    /// Asks to keep the newest `keep` snapshots.
    pub fn new(keep: u64) -> Self {
        Self { keep }
    }
}

/// The outcome of removing old snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupPruneReport {
    /// Ids of the snapshots that were removed.
    pub removed: Vec<String>,
    /// Ids of the snapshots that were kept.
    pub kept: Vec<String>,
    /// Number of contents that no kept snapshot names, and that were removed.
    pub blobs_removed: u64,
    /// Size of these contents, in bytes.
    pub bytes_removed: u64,
    /// Reason why the run failed after it had begun.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<BackupError>,
}

/// The body of POST `/admin/backups/{destination}/forget`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ForgetBackups {
    /// Id of the directory, as receipts show it; all that are not there any more if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_id: Option<String>,
}

impl ForgetBackups {
    /// Asks to forget one directory, or all that are not there any more.
    pub fn new(destination_id: impl Into<Option<String>>) -> Self {
        Self { destination_id: destination_id.into() }
    }
}

/// The outcome of forgetting directories of snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupForgetReport {
    /// Number of directories that were forgotten.
    pub forgotten: u64,
}

impl BackupForgetReport {
    /// Reports that so many directories were forgotten.
    pub fn new(forgotten: u64) -> Self {
        Self { forgotten }
    }
}

macro_rules! failed {
    ($($report:ident),*) => {$(
        impl $report {
            /// Reports a run that failed after it had begun.
            pub fn failed(error: BackupError) -> Self {
                Self { error: Some(error), ..Self::default() }
            }
        }
    )*};
}
failed!(BackupReport, BackupVerifyReport, BackupRestoreReport, BackupPruneReport);
