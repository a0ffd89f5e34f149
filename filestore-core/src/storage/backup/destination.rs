//! The interface to backup destinations: directories and providers with snapshots.
//!
//! A directory and a provider find, take and store bytes differently, and separate concurrent runs
//! differently. The definition of a snapshot, and all work with snapshots, are common code above this
//! interface.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::content::{Found, OnDisk, Stored, Wanted};
use super::copy::Copying;
use super::draft::{DatabaseFile, Draft};
use super::manifest::Manifest;
use super::opened::Opened;
use super::restored::RestoredDirectory;
use crate::domain::config::BackupPlace;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::id::{DestinationId, SnapshotId, StoreId};
use crate::domain::report::backup::{BlobProblem, SnapshotBytes};
use crate::domain::time::clock::Timestamp;
use crate::storage::{ByteStream, LocalStore};

/// A callback with the size of each removed content.
pub type Removed = Arc<dyn Fn(u64) + Send + Sync>;

/// A backup destination: a place with snapshots.
///
/// # Contract
/// - A snapshot exists once its manifest exists. The manifest is written last, when [`finish`](Self::finish)
///   has made all of the snapshot's contents durable.
/// - A content is identified by its digest, and by its run if [`Stored::by`] names a run. Contents returned
///   by [`find`](Self::find), [`take_files`](Self::take_files) and [`receive`](Self::receive) stay during the
///   claim of the run. After that, they stay if a finished snapshot names them.
/// - Contents stay if a finished snapshot names them, or if a running run can name them.
///
/// # Claims
/// To read or change contents, call methods on the result of [`claim`](Self::claim). A claim lasts until its
/// last clone is dropped, or until [`release`](Self::release).
///
/// # Errors
/// `Locked` while another run excludes this run. `Unusable` if the place is not a destination.
/// `ProviderUnavailable` if the provider does not answer. `StorageFull` if the disk is full.
#[async_trait]
pub trait Destination: Send + Sync + fmt::Debug {
    /// Returns the place of this destination.
    fn place(&self) -> BackupPlace;

    /// Returns the destination's id. If there is no id yet, creates an id durably.
    async fn identify(&self, now: Timestamp) -> Result<DestinationId>;

    /// Claims the destination for a run.
    async fn claim(&self, run: RunClaim) -> Result<Arc<dyn Destination>>;

    /// Checks that the claim is still valid.
    async fn confirm(&self) -> Result<()>;

    /// Ends the claim early. A failure is only logged, because the claim expires anyway.
    async fn release(&self);

    /// Lists the finished snapshots, oldest first.
    async fn snapshots(&self) -> Result<Vec<SnapshotId>>;

    /// Opens the manifest of a finished snapshot. Read it only where blocking is allowed. `NotFound` if there
    /// is no such snapshot.
    async fn manifest(&self, id: SnapshotId) -> Result<Manifest>;

    /// Begins a snapshot. Files that must be complete before they are stored are written below `scratch`.
    async fn begin(&self, id: SnapshotId, scratch: &Path) -> Result<Draft>;

    /// Finishes a snapshot: stores its copy of the database, and then its complete manifest.
    async fn finish(&self, draft: &Draft, manifest: File) -> Result<()>;

    /// Removes a snapshot, its manifest first. The contents stay until [`sweep`](Self::sweep).
    async fn remove(&self, id: SnapshotId) -> Result<()>;

    /// Removes the leftovers of interrupted runs, except contents.
    async fn clear(&self) -> Result<()>;

    /// Opens a snapshot's copy of the database. `None` if it is missing.
    async fn open_database(&self, id: SnapshotId) -> Result<Option<Opened>>;

    /// Returns a local path to a snapshot's copy of the database. If the copy has no local path, it is copied
    /// below `scratch`.
    async fn database_file(&self, id: SnapshotId, scratch: &Path) -> Result<DatabaseFile>;

    /// Looks for existing valid contents. Results have the request's order. A content that no finished
    /// snapshot names is read and compared first.
    async fn find(&self, wanted: Vec<Wanted>, bytes: SnapshotBytes) -> Result<Vec<Option<Found>>>;

    /// Takes contents from the local disk, each from the first of its keys that exists. A missing content is
    /// reported as a problem, and does not stop the others.
    async fn take_files(
        &self,
        local: &LocalStore,
        wanted: Vec<OnDisk>,
        bytes: SnapshotBytes,
    ) -> Result<Vec<Result<Stored, BlobProblem>>>;

    /// Stores a content from a stream. If the bytes do not match, stores no bytes and returns `None`.
    async fn receive(&self, expected: Copying, bytes: ByteStream) -> Result<Option<Stored>>;

    /// Opens the bytes of a content without checking them. `None` if they are missing.
    async fn open(&self, content: Stored) -> Result<Option<Opened>>;

    /// Reads the stored bytes of contents, and computes their digests. `None` for missing contents.
    async fn digest(&self, contents: Vec<Stored>) -> Vec<Result<Option<Copying>>>;

    /// Marks a content as damaged, and keeps its bytes. Returns false if there is no such content.
    async fn set_aside(&self, content: Stored) -> Result<bool>;

    /// Restores blobs. Results have the request's order: true for a complete blob, false for wrong
    /// bytes, and `None` for a missing blob.
    async fn restore(
        &self,
        to: &Arc<RestoredDirectory>,
        blobs: Vec<(BlobKey, Stored)>,
    ) -> Result<Vec<Option<bool>>>;

    /// Removes the contents that no finished snapshot names. Removes no content if a manifest cannot be read
    /// to its end.
    async fn sweep(&self, removed: Removed) -> Result<()>;
}

/// A run that claims a destination.
#[derive(Debug, Clone, Copy)]
pub struct RunClaim {
    /// The run's id. The id is also the snapshot's id, if the run creates a snapshot.
    pub id: SnapshotId,
    /// The kind of run.
    pub kind: RunKind,
    /// The store of the backup. This process alone has the data directory, so earlier runs of other processes
    /// for this store have ended.
    pub store: Option<StoreId>,
}

/// A kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// Creates a snapshot.
    Create,
    /// Reads a snapshot, and sets damaged contents aside.
    Verify,
    /// Reads a snapshot.
    Restore,
    /// Removes snapshots.
    Prune,
}
