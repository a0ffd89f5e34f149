//! Backups: options and reports.

use crate::domain::access::key::ApiKey;
use crate::domain::access::signed_url::SigningSecretInfo;
use crate::domain::id::{FileId, OrganizationId, Sha256, SnapshotId, StoreId};
use crate::domain::time::clock::Timestamp;

/// Maximum faults in a report. Further faults are only counted.
pub const LISTED_FAULTS: usize = 100;

/// How a snapshot gets bytes from the local disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SnapshotBytes {
    /// Copies the bytes. If the file system supports it, the copy shares blocks with the original.
    /// Later damage of the original does not affect the copy.
    #[default]
    Copied,
    /// Creates a hard link, after the file was read once. Needs no space, and does not protect
    /// against a failing disk.
    HardLinked,
}

/// How a snapshot treats files at providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SnapshotClouds {
    /// Copies their bytes too.
    #[default]
    Copied,
    /// Lists them by provider and storage key, without their bytes.
    Noted,
}

/// Snapshot options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BackupOptions {
    /// How the snapshot gets bytes from the local disk.
    pub bytes: SnapshotBytes,
    /// How the snapshot treats files at providers.
    pub clouds: SnapshotClouds,
}

/// The newest complete snapshot in a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastBackup {
    /// Destination name in the configuration.
    pub destination: String,
    /// Time of the state that the snapshot contains. `None` if the store has taken no complete snapshot to
    /// this destination.
    pub taken_at: Option<Timestamp>,
}

/// A finished snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// Snapshot id.
    pub id: SnapshotId,
    /// Store id in the snapshot.
    pub store: StoreId,
    /// Snapshot time.
    pub created_at: Timestamp,
    /// How the snapshot got bytes from the local disk.
    pub bytes: SnapshotBytes,
    /// How the snapshot treats files at providers.
    pub clouds: SnapshotClouds,
    /// Records with bytes in the snapshot.
    pub files: u64,
    /// Different blobs in the snapshot.
    pub blobs: u64,
    /// Their total size, in bytes.
    pub blob_bytes: u64,
    /// Blobs at providers that the snapshot only lists.
    pub elsewhere: u64,
    /// Blobs missing or damaged in the store.
    pub damaged: u64,
    /// Damaged records. The snapshot does not contain their files.
    pub damaged_records: u64,
    /// Database copy size, in bytes.
    pub database_bytes: u64,
}

impl SnapshotInfo {
    /// Describes an empty snapshot.
    pub(crate) fn empty(
        id: SnapshotId,
        store: StoreId,
        created_at: Timestamp,
        options: BackupOptions,
    ) -> Self {
        Self {
            id,
            store,
            created_at,
            bytes: options.bytes,
            clouds: options.clouds,
            files: 0,
            blobs: 0,
            blob_bytes: 0,
            elsewhere: 0,
            damaged: 0,
            damaged_records: 0,
            database_bytes: 0,
        }
    }
}

/// The backup report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The snapshot.
    pub snapshot: SnapshotInfo,
    /// Blobs that this run copied or linked.
    pub copied: u64,
    /// Their total size, in bytes.
    pub copied_bytes: u64,
    /// Blobs that an earlier snapshot already contains.
    pub reused: u64,
    /// The first damaged blobs in the store.
    pub faults: Vec<BlobFault>,
}

impl BackupReport {
    pub(crate) fn new(snapshot: SnapshotInfo) -> Self {
        Self { snapshot, copied: 0, copied_bytes: 0, reused: 0, faults: Vec::new() }
    }

    /// Returns true if the snapshot contains every file of the store, undamaged.
    pub fn is_good(&self) -> bool {
        self.snapshot.damaged == 0 && self.snapshot.damaged_records == 0
    }
}

/// A missing or damaged blob.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobFault {
    /// Expected digest.
    pub sha256: Sha256,
    /// Expected size, in bytes.
    pub size_bytes: u64,
    /// A file with this blob, if known.
    pub file_id: Option<FileId>,
    /// The fault kind.
    pub problem: BlobProblem,
}

/// A blob fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobProblem {
    /// The blob is missing.
    Missing,
    /// The blob has other bytes.
    Wrong,
    /// The blob is at a provider that does not answer or is not configured.
    Unreachable,
}

impl BlobProblem {
    /// Returns the name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Wrong => "wrong",
            Self::Unreachable => "unreachable",
        }
    }
}

/// The verification result for a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The snapshot.
    pub snapshot: SnapshotInfo,
    /// Blobs read.
    pub checked: u64,
    /// Their total size, in bytes.
    pub checked_bytes: u64,
    /// Missing blobs.
    pub missing: u64,
    /// Damaged or unreadable blobs.
    pub wrong: u64,
    /// Damaged blobs moved aside. The next snapshot copies these blobs again.
    pub set_aside: u64,
    /// True if the database copy is intact.
    pub database_is_good: bool,
    /// The first missing or damaged blobs.
    pub faults: Vec<BlobFault>,
}

impl VerifyReport {
    pub(crate) fn new(snapshot: SnapshotInfo) -> Self {
        Self {
            snapshot,
            checked: 0,
            checked_bytes: 0,
            missing: 0,
            wrong: 0,
            set_aside: 0,
            database_is_good: false,
            faults: Vec::new(),
        }
    }

    /// Tests whether you can restore every file of the store from the snapshot or its provider: the
    /// snapshot is intact, and the store was complete at the snapshot's time.
    pub fn is_good(&self) -> bool {
        let had_everything = self.snapshot.damaged == 0 && self.snapshot.damaged_records == 0;
        self.missing == 0 && self.wrong == 0 && self.database_is_good && had_everything
    }
}

/// A restored store's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestoredAs {
    /// A new store with a new id. Providers of the original refuse this store. All files are LOCAL.
    #[default]
    Copy,
    /// The original store, which must no longer run. Files at providers stay there. The restore
    /// reads and compares each of them, and takes missing files from the snapshot.
    Original,
}

/// A restored store's API keys and signing secrets. A snapshot has the keys of its time, with
/// keys from before a later revocation or rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoredAccess {
    /// They are valid again.
    Kept,
    /// All are revoked. No key and no signed URL of the snapshot works. The store is closed until
    /// you create a key.
    Revoked,
}

/// How to restore a snapshot.
///
/// ```
/// use filestore_core::admin::{RestoreOptions, RestoredAccess, RestoredAs};
///
/// let options = RestoreOptions::from(RestoredAs::Original).with_access(RestoredAccess::Revoked);
/// assert_eq!(options.restored_as, RestoredAs::Original);
/// // By default, a copy revokes the keys of the original.
/// assert_eq!(RestoreOptions::from(RestoredAs::Copy).access, RestoredAccess::Revoked);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreOptions {
    /// The restored store's identity.
    pub restored_as: RestoredAs,
    /// Keep or revoke the API keys and signing secrets.
    pub access: RestoredAccess,
}

impl RestoreOptions {
    /// Keeps or revokes the snapshot's API keys and signing secrets.
    #[must_use]
    pub fn with_access(self, access: RestoredAccess) -> Self {
        Self { access, ..self }
    }
}

/// Revokes keys and signing secrets in a copy, and keeps them in the original.
impl From<RestoredAs> for RestoreOptions {
    fn from(restored_as: RestoredAs) -> Self {
        let access = match restored_as {
            RestoredAs::Copy => RestoredAccess::Revoked,
            RestoredAs::Original => RestoredAccess::Kept,
        };
        Self { restored_as, access }
    }
}

/// A restored snapshot's API keys and signing secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoredKeys {
    /// Snapshot time. Later revocations and rotations are not included.
    pub taken_at: Timestamp,
    /// The snapshot's valid keys, oldest first. Expired keys are not included.
    pub keys: Vec<ApiKey>,
    /// Secrets that sign or verify URLs, oldest first. Configured secrets are not included.
    pub secrets: Vec<SigningSecretInfo>,
    /// Their state after the restore: kept or revoked.
    pub access: RestoredAccess,
}

/// The restore report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Files with restored and compared bytes.
    pub restored: u64,
    /// Total restored bytes.
    pub restored_bytes: u64,
    /// Files that stay at their providers, and were compared there.
    pub left_at_providers: u64,
    /// Files that the store already has. They do not change.
    pub present: u64,
    /// Files with missing bytes, or with bytes that cannot be compared.
    pub failed: u64,
    /// The first of these files.
    pub faults: Vec<BlobFault>,
    /// Damaged records in the snapshot. Their files were not restored.
    pub damaged_records: u64,
    /// A whole snapshot's API keys and signing secrets. `None` if only files were restored.
    pub keys: Option<RestoredKeys>,
}

/// The part of a snapshot to restore into a running store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The files of one organization that were not deleted.
    Organization(OrganizationId),
    /// One file, also if it was deleted.
    File(FileId),
}

/// The prune report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// Removed snapshots.
    pub removed: Vec<SnapshotId>,
    /// Remaining snapshots.
    pub kept: Vec<SnapshotId>,
    /// Removed blobs, because no remaining snapshot contains them.
    pub blobs_removed: u64,
    /// Their total size, in bytes.
    pub bytes_removed: u64,
}
