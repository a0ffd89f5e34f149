//! Snapshots of a store: what is asked for, and what came of it.

use super::clock::Timestamp;
use super::id::{FileId, OrganizationId, Sha256, SnapshotId, StoreId};

/// The most faults that a report lists; the rest is counted.
pub const LISTED_FAULTS: usize = 100;

/// The way in which a snapshot gets bytes that lie on the service's own disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SnapshotBytes {
    /// A copy, which shares blocks with the original where the file system can. Later damage of either
    /// leaves the other alone.
    #[default]
    Copied,
    /// A second name of the same file, which is read first: no space, and no help against a disk that
    /// fails.
    HardLinked,
}

/// The treatment of files that providers hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SnapshotClouds {
    /// Their bytes are copied too.
    #[default]
    Copied,
    /// They are noted by provider and key; the snapshot does not have their bytes.
    Noted,
}

/// The terms of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BackupOptions {
    /// The way in which the snapshot gets bytes.
    pub bytes: SnapshotBytes,
    /// The treatment of files that providers hold.
    pub clouds: SnapshotClouds,
}

/// A finished snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// The snapshot's id.
    pub id: SnapshotId,
    /// The store that was backed up.
    pub store: StoreId,
    /// The instant of which the snapshot is.
    pub created_at: Timestamp,
    /// The way in which it got its bytes.
    pub bytes: SnapshotBytes,
    /// The treatment of files that providers held.
    pub clouds: SnapshotClouds,
    /// The records whose bytes it names.
    pub files: u64,
    /// The different contents that it holds, and their size in bytes.
    pub blobs: u64,
    /// The size of those contents.
    pub blob_bytes: u64,
    /// The contents that it notes at providers and does not hold.
    pub elsewhere: u64,
    /// The contents that the store did not have, or had with other bytes than recorded.
    pub damaged: u64,
    /// The records that could not be read, whose bytes it therefore does not name.
    pub damaged_records: u64,
    /// The size of its copy of the database, in bytes.
    pub database_bytes: u64,
}

impl SnapshotInfo {
    /// Describes a snapshot that holds nothing yet.
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

/// The report of a run that makes a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The snapshot.
    pub snapshot: SnapshotInfo,
    /// The contents that were copied or linked by this run.
    pub copied: u64,
    /// The size of those contents, in bytes.
    pub copied_bytes: u64,
    /// The contents that were there already.
    pub reused: u64,
    /// The first of the contents that are damaged in the store.
    pub faults: Vec<BlobFault>,
}

impl BackupReport {
    pub(crate) fn new(snapshot: SnapshotInfo) -> Self {
        Self { snapshot, copied: 0, copied_bytes: 0, reused: 0, faults: Vec::new() }
    }
}

/// Bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobFault {
    /// The digest that the bytes should have.
    pub sha256: Sha256,
    /// The size that they should have, in bytes.
    pub size_bytes: u64,
    /// A file that has these bytes, if it is known.
    pub file_id: Option<FileId>,
    /// The fault.
    pub problem: BlobProblem,
}

/// The fault of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobProblem {
    /// They are not there.
    Missing,
    /// They are others.
    Wrong,
    /// They are at a provider, which does not answer or is not configured.
    Unreachable,
}

impl BlobProblem {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Wrong => "wrong",
            Self::Unreachable => "unreachable",
        }
    }
}

/// The findings of reading a whole snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The snapshot.
    pub snapshot: SnapshotInfo,
    /// The contents that were read.
    pub checked: u64,
    /// The size of those contents, in bytes.
    pub checked_bytes: u64,
    /// The contents that are missing.
    pub missing: u64,
    /// The contents that are others, or cannot be read.
    pub wrong: u64,
    /// Those of them that were set aside, so that the next snapshot takes them anew.
    pub set_aside: u64,
    /// True if the copy of the database is as it was written.
    pub database_is_good: bool,
    /// The first of the contents that are missing or others.
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

    /// Tells whether every file of the store can be restored from the snapshot, or is noted at its
    /// provider: all that it names is there as it was, and the store had everything when it was taken.
    pub fn is_good(&self) -> bool {
        let had_everything = self.snapshot.damaged == 0 && self.snapshot.damaged_records == 0;
        self.missing == 0 && self.wrong == 0 && self.database_is_good && had_everything
    }
}

/// The identity of a restored store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestoredAs {
    /// A store of its own with a new id: no provider of the original lets it in. All files are LOCAL.
    #[default]
    Copy,
    /// The store that was backed up, which must not run any more. Files at providers stay there, each
    /// read and compared; what is not there is taken from the snapshot.
    Original,
}

/// The report of restoring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// The files whose bytes were restored and compared.
    pub restored: u64,
    /// The size of those bytes.
    pub restored_bytes: u64,
    /// The files that were left at their providers and compared there.
    pub left_at_providers: u64,
    /// The files that are in the store already and were left as they are.
    pub present: u64,
    /// The files whose bytes could not be had, or not be compared.
    pub failed: u64,
    /// The first of those.
    pub faults: Vec<BlobFault>,
    /// The records of the snapshot that cannot be read, and whose files were not restored.
    pub damaged_records: u64,
}

/// The part of a snapshot that is restored into a running store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The files of one organization that were not deleted.
    Organization(OrganizationId),
    /// One file, also if it was deleted.
    File(FileId),
}

/// The report of removing old snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// The snapshots that were removed.
    pub removed: Vec<SnapshotId>,
    /// The snapshots that were kept.
    pub kept: Vec<SnapshotId>,
    /// The contents that no kept snapshot names, and that were removed.
    pub blobs_removed: u64,
    /// The size of those contents, in bytes.
    pub bytes_removed: u64,
}
