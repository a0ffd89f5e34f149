//! Backups in JSON.

use serde::{Deserialize, Serialize};

use super::KeyReply;
use crate::api::SigningSecretReply;
use crate::api::vocabulary::ErrorCode;

/// A backup destination from the server configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupDestination {
    /// Destination name, for use in requests.
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
    /// Snapshot id. A later snapshot has a greater id.
    pub snapshot_id: String,
    /// Store id in the snapshot.
    pub store_id: String,
    /// Snapshot time, in RFC 3339 (UTC, milliseconds), for example
    /// `2026-11-21T08:15:30.123Z`.
    pub created_at: String,
    /// True if the snapshot is on the store's disk, with hard links to the same files.
    pub shares_disk: bool,
    /// True if the snapshot only lists files at providers, without their bytes.
    pub local_only: bool,
    /// Records with bytes in the snapshot.
    pub files: u64,
    /// Different blobs in the snapshot.
    pub blobs: u64,
    /// Their total size, in bytes.
    pub bytes: u64,
    /// Blobs at providers that the snapshot only lists.
    pub elsewhere: u64,
    /// Blobs that were missing or damaged in the store.
    pub damaged: u64,
    /// Damaged records. The snapshot does not contain their files.
    #[serde(default)]
    pub damaged_records: u64,
    /// Database copy size, in bytes.
    pub database_bytes: u64,
}

/// A missing or damaged blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupFault {
    /// Expected SHA-256 digest, in hexadecimal digits.
    pub sha256: String,
    /// Expected size, in bytes.
    pub size_bytes: u64,
    /// A file id with this blob, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file_id: Option<String>,
    /// `missing`, `wrong` (other bytes) or `unreachable` (the provider does not answer).
    pub problem: String,
}

impl BackupFault {
    /// Describes a fault.
    pub fn new(sha256: impl Into<String>, size_bytes: u64, problem: impl Into<String>) -> Self {
        Self { sha256: sha256.into(), size_bytes, file_id: None, problem: problem.into() }
    }
}

/// The reason why a started run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupError {
    /// Stable error code, as in a problem document.
    pub code: ErrorCode,
    /// Explanation for people.
    pub message: String,
}

impl BackupError {
    /// Describes a failure.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// The body for POST `/admin/backups/{destination}/create`. Can be absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CreateBackup {
    /// If true, use hard links instead of copies. A failing disk then also damages the snapshot.
    pub hard_links: bool,
    /// If true, only list files at providers, without a copy of their bytes.
    pub local_only: bool,
    /// If true, the reply is 202 with the destination, and the run continues without the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detach: Option<bool>,
}

impl CreateBackup {
    /// Uses hard links instead of copies.
    #[must_use]
    pub fn with_hard_links(mut self) -> Self {
        self.hard_links = true;
        self
    }

    /// Only lists files at providers, without a copy of their bytes.
    #[must_use]
    pub fn local_only(mut self) -> Self {
        self.local_only = true;
        self
    }
}

/// The `backup create` result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupReport {
    /// The snapshot. Absent if the run failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub snapshot: Option<Snapshot>,
    /// Blobs that this run copied or linked.
    pub copied: u64,
    /// Their total size, in bytes.
    pub copied_bytes: u64,
    /// Blobs that an earlier snapshot already contains.
    pub reused: u64,
    /// The first blobs that are damaged in the store.
    #[serde(default)]
    pub faults: Vec<BackupFault>,
    /// Reason why the run failed. Copied blobs stay at the destination, and the next run continues
    /// from there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<BackupError>,
}

/// The body for POST `/admin/backups/{destination}/verify`. Can be absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct VerifyBackup {
    /// Snapshot id (default: the newest snapshot).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// If true, the reply is 202 with the destination, and the run continues without the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detach: Option<bool>,
}

impl VerifyBackup {
    /// Requests the verification of a snapshot. `None` means the newest.
    pub fn new(snapshot_id: impl Into<Option<String>>) -> Self {
        Self { snapshot_id: snapshot_id.into(), detach: None }
    }
}

/// The `backup verify` result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupVerifyReport {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Blobs that were read.
    pub checked: u64,
    /// Their total size, in bytes.
    pub checked_bytes: u64,
    /// Missing blobs.
    pub missing: u64,
    /// Blobs that are damaged or cannot be read.
    pub wrong: u64,
    /// Damaged blobs that were moved aside within the destination. The next snapshot
    /// copies these blobs again.
    #[serde(default)]
    pub set_aside: u64,
    /// True if the database copy is intact.
    pub database_ok: bool,
    /// True if the snapshot is intact, and the store was complete at the snapshot time
    /// (`damaged` and `damaged_records` are 0).
    pub ok: bool,
    /// The first missing or damaged blobs.
    #[serde(default)]
    pub faults: Vec<BackupFault>,
    /// Reason why the run failed after its start.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<BackupError>,
}

/// The body for POST `/admin/backups/{destination}/restore`. Names one file, or one organization.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RestoreBackup {
    /// Snapshot id (default: the newest snapshot).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Restore all files for this organization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// Restore this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
}

impl RestoreBackup {
    /// Requests all files for an organization.
    pub fn organization(organization_id: impl Into<String>) -> Self {
        Self { organization_id: Some(organization_id.into()), ..Self::default() }
    }

    /// Requests one file.
    pub fn file(file_id: impl Into<String>) -> Self {
        Self { file_id: Some(file_id.into()), ..Self::default() }
    }

    /// Names the snapshot. `None` means the newest.
    #[must_use]
    pub fn from_snapshot(mut self, snapshot_id: impl Into<Option<String>>) -> Self {
        self.snapshot_id = snapshot_id.into();
        self
    }
}

/// The `backup restore` result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupRestoreReport {
    /// Files with restored and compared bytes.
    pub restored: u64,
    /// Total restored bytes.
    pub restored_bytes: u64,
    /// Files that stay at their providers, and were compared there.
    pub left_at_providers: u64,
    /// Files that the store already has. They do not change.
    pub present: u64,
    /// Files with bytes that are missing or cannot be compared.
    pub failed: u64,
    /// The first of these files.
    #[serde(default)]
    pub faults: Vec<BackupFault>,
    /// Damaged records in the snapshot. Their files were not restored.
    #[serde(default)]
    pub damaged_records: u64,
    /// API keys and signing secrets of a restored snapshot. Absent if only files were restored.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keys: Option<RestoredKeys>,
    /// Reason why the run failed after its start.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<BackupError>,
}

/// API keys and signing secrets that were valid in a snapshot. Some might have been revoked since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RestoredKeys {
    /// Snapshot time, in RFC 3339 (UTC, milliseconds).
    pub taken_at: String,
    /// True if the restore revoked all of them. If false, they are valid again.
    pub revoked: bool,
    /// API keys, oldest first.
    pub keys: Vec<KeyReply>,
    /// Signing secrets, oldest first.
    pub signing_secrets: Vec<SigningSecretReply>,
}

/// The body for POST `/admin/backups/{destination}/prune`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PruneBackups {
    /// Snapshots to keep, at least 1. The newest stay.
    pub keep: u64,
}

impl PruneBackups {
    /// Keeps the newest `keep` snapshots.
    pub fn new(keep: u64) -> Self {
        Self { keep }
    }
}

/// The `backup prune` result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupPruneReport {
    /// Removed snapshots, by id.
    pub removed: Vec<String>,
    /// Remaining snapshots, by id.
    pub kept: Vec<String>,
    /// Blobs that were removed, because no remaining snapshot contains them.
    pub blobs_removed: u64,
    /// Their total size, in bytes.
    pub bytes_removed: u64,
    /// Reason why the run failed after its start.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<BackupError>,
}

/// The body for POST `/admin/backups/{destination}/forget`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ForgetBackups {
    /// Directory id, from a receipt. If absent, forget all directories that no longer exist.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_id: Option<String>,
}

impl ForgetBackups {
    /// Forgets one directory. `None` means all directories that no longer exist.
    pub fn new(destination_id: impl Into<Option<String>>) -> Self {
        Self { destination_id: destination_id.into() }
    }
}

/// The `backup forget` result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BackupForgetReport {
    /// Forgotten directories.
    pub forgotten: u64,
}

impl BackupForgetReport {
    /// Reports the number of forgotten directories.
    pub fn new(forgotten: u64) -> Self {
        Self { forgotten }
    }
}

macro_rules! failed {
    ($($report:ident),*) => {$(
        impl $report {
            /// Reports a run that failed after its start.
            pub fn failed(error: BackupError) -> Self {
                Self { error: Some(error), ..Self::default() }
            }
        }
    )*};
}
failed!(BackupReport, BackupVerifyReport, BackupRestoreReport, BackupPruneReport);
