//! The seam beneath backups: a place that has snapshots.
//!
//! A directory and a provider differ in how they find, take and keep bytes, and in what keeps two runs
//! apart. What a snapshot is, and what is done with one, is written above them, once.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::copy::{self, Copying};
use super::directory::{BACKING_UP, SYNCS_EACH, full, new_file};
use super::manifest::Manifest;
use super::opened::Opened;
use super::restored::RestoredDirectory;
use super::scratch::Scratch;
use crate::domain::backup::{BlobProblem, SnapshotBytes};
use crate::domain::clock::Timestamp;
use crate::domain::config::BackupPlace;
use crate::domain::error::{Error, Result};
use crate::domain::id::{DestinationId, SnapshotId, StoreId};
use crate::domain::path::BlobKey;
use crate::storage::{ByteStream, LocalStore};

/// Calls with the size of each content that is removed.
pub type Removed = Arc<dyn Fn(u64) + Send + Sync>;

/// A place that has snapshots.
///
/// # Contract
/// - A snapshot is there once its manifest is, which comes last: [`finish`](Self::finish) has made durable
///   all that it names.
/// - A content is found by its digest, and by the run that stored it where [`Stored::by`] says one. What
///   [`find`](Self::find), [`take_files`](Self::take_files) and [`receive`](Self::receive) return stays for
///   as long as the claim of the run lasts, and from then on if a finished snapshot names it.
/// - Nothing is removed that a finished snapshot names, or that a run under way may name.
///
/// # Claims
/// Whatever changes or reads contents is called on what [`claim`](Self::claim) returned. A claim lasts until
/// its last clone is gone, or until [`release`](Self::release).
///
/// # Errors
/// `Locked` while another run excludes this one, `Unusable` for a place that is no destination,
/// `ProviderUnavailable` for a provider that does not answer, `StorageFull` for a disk without room.
#[async_trait]
pub trait Destination: Send + Sync + fmt::Debug {
    /// Returns the place.
    fn place(&self) -> BackupPlace;

    /// Returns the id of the place, which one that has none yet gets now, durably.
    async fn identify(&self, now: Timestamp) -> Result<DestinationId>;

    /// Claims the place for a run.
    async fn claim(&self, run: RunClaim) -> Result<Arc<dyn Destination>>;

    /// Makes sure that the claim has lasted until now.
    async fn confirm(&self) -> Result<()>;

    /// Ends the claim before its last clone is gone. A failure is logged: the claim ends by itself.
    async fn release(&self);

    /// Lists the finished snapshots, the oldest first.
    async fn snapshots(&self) -> Result<Vec<SnapshotId>>;

    /// Opens the manifest of a finished snapshot, which is read where blocking is allowed. `NotFound` if there
    /// is none.
    async fn manifest(&self, id: SnapshotId) -> Result<Manifest>;

    /// Begins a snapshot. What cannot be written where it belongs piece by piece is written below `scratch`.
    async fn begin(&self, id: SnapshotId, scratch: &Path) -> Result<Draft>;

    /// Finishes a snapshot: its copy of the database, then its manifest, written to the end.
    async fn finish(&self, draft: &Draft, manifest: File) -> Result<()>;

    /// Removes a snapshot, its manifest first. Its contents stay until they are swept.
    async fn remove(&self, id: SnapshotId) -> Result<()>;

    /// Removes what runs that broke off have left of snapshots, but for contents.
    async fn clear(&self) -> Result<()>;

    /// Opens a snapshot's copy of the database; `None` if it is missing.
    async fn open_database(&self, id: SnapshotId) -> Result<Option<Opened>>;

    /// Gives a snapshot's copy of the database a path of this machine, below `scratch` if it has none.
    async fn database_file(&self, id: SnapshotId, scratch: &Path) -> Result<DatabaseFile>;

    /// Looks for contents that are there already and count, in the order of the question. One that no
    /// finished snapshot vouches for is read first.
    async fn find(&self, wanted: Vec<Wanted>, bytes: SnapshotBytes) -> Result<Vec<Option<Found>>>;

    /// Takes contents from the service's own disk, each from the first of its keys that has it; what the disk
    /// has not is a problem, and fails nothing else.
    async fn take_files(
        &self,
        local: &LocalStore,
        wanted: Vec<OnDisk>,
        bytes: SnapshotBytes,
    ) -> Result<Vec<Result<Stored, BlobProblem>>>;

    /// Takes a content that comes piece by piece. `None`, and nothing stays, if its bytes are others.
    async fn receive(&self, expected: Copying, bytes: ByteStream) -> Result<Option<Stored>>;

    /// Opens the bytes of a content, whatever they are; `None` if there are none.
    async fn open(&self, content: Stored) -> Result<Option<Opened>>;

    /// Reads what is there of contents, from where it lies; `None` for what is not there.
    async fn digest(&self, contents: Vec<Stored>) -> Vec<Result<Option<Copying>>>;

    /// Takes a content out of those that count, and keeps its bytes. False if there is none.
    async fn set_aside(&self, content: Stored) -> Result<bool>;

    /// Restores blobs, in the order of the question: true for one that is whole, false for one of other
    /// bytes, `None` for one that is not there.
    async fn restore(
        &self,
        to: &Arc<RestoredDirectory>,
        blobs: Vec<(BlobKey, Stored)>,
    ) -> Result<Vec<Option<bool>>>;

    /// Removes the contents that no finished snapshot holds. Nothing is removed if a manifest cannot be read
    /// to its end.
    async fn sweep(&self, removed: Removed) -> Result<()>;
}

/// A content of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// The digest and size that it should have.
    pub expected: Copying,
    /// The run that stored it, where names have that.
    pub by: Option<SnapshotId>,
}

/// A content that is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The digest and the size of the content.
    pub expected: Copying,
    /// The content as the newest finished snapshot has it.
    pub vouched: Option<Stored>,
}

/// A content that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The content.
    pub stored: Stored,
    /// The way in which it came to be there.
    pub how: FoundHow,
}

/// The way in which a content came to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundHow {
    /// It was there.
    Reused,
    /// It was a second name of a file, and is a copy now.
    Unshared,
}

/// A content on the service's own disk.
#[derive(Debug, Clone)]
pub struct OnDisk {
    /// Its digest and size.
    pub expected: Copying,
    /// The keys that have it.
    pub keys: Vec<BlobKey>,
}

/// A run that claims a destination.
#[derive(Debug, Clone, Copy)]
pub struct RunClaim {
    /// The id of the run; that of the snapshot, if one is made.
    pub id: SnapshotId,
    /// The kind of run.
    pub kind: RunKind,
    /// The store that is backed up. Its data directory is this process's alone, so that what another process
    /// made of it is over.
    pub store: Option<StoreId>,
}

/// A kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// A snapshot is made.
    Create,
    /// A snapshot is read, and what is wrong is set aside.
    Verify,
    /// A snapshot is read.
    Restore,
    /// Snapshots are removed.
    Prune,
}

/// A snapshot that is being made.
#[derive(Debug)]
pub struct Draft {
    /// Its id.
    pub id: SnapshotId,
    /// The path of its copy of the database, a new file.
    pub database: PathBuf,
    /// The path of its manifest, a new file.
    pub manifest: PathBuf,
    /// The directory of these files, where they are not in their place.
    pub(super) _scratch: Option<Scratch>,
}

impl Draft {
    /// Digests the copy of the database, to which no connection is open. Blocks.
    pub fn digest_database(&self) -> Result<Copying> {
        let file = File::open(&self.database).map_err(|error| Error::io(BACKING_UP, error))?;
        if SYNCS_EACH {
            file.sync_all().map_err(|error| Error::io(BACKING_UP, error))?;
        }
        copy::digest_of_disk(&file, &mut Vec::new()).map_err(|error| Error::io(BACKING_UP, error))
    }

    /// Makes the file of the manifest. Blocks.
    pub fn make_manifest(&self) -> Result<File> {
        new_file(&self.manifest).map_err(|error| full(Error::io(BACKING_UP, error)))
    }
}

/// A copy of a database at a path of this machine.
#[derive(Debug)]
pub struct DatabaseFile {
    /// The path.
    pub path: PathBuf,
    /// The directory of the file, where that is not its place.
    pub(super) _scratch: Option<Scratch>,
}
