//! Snapshots: made of a running store, verified, restored, pruned.
//!
//! # Consistency
//! The copy of the database is of one instant, keys are written once, and a hold keeps what the copy
//! names from being removed until the snapshot is whole. So whenever a blob is copied, it is the one
//! that the record meant.
//!
//! | module | content |
//! |---|---|
//! | `create` | makes a snapshot |
//! | `destination` | opens what the configuration names, and knows it again |
//! | `gather` | brings one content after the other into the directory |
//! | `verify` | reads all of a snapshot |
//! | `restore` | restores a whole store into an empty directory |
//! | `select` | restores files of one organization, or one file, into a running store |
//!
//! # The way of a snapshot
//! `create` takes a hold, copies the database through SQLite's online backup, and narrows the
//! hold to the rows of the copy: until it is released no purge claims them, and no dropped blob
//! comes due. The copy names contents in the order of their digests; batches of them are copied
//! into `blobs/<digest>` beside each other, each compared on the way, or counted on if the newest
//! finished snapshot has them. Then the destination's file system is flushed, and the manifest
//! gets its name. A run that changes a destination has it alone (`storage/backup/runs.rs`); one
//! that verifies moves wrong contents to `damaged/`, so that the next snapshot takes them anew.

mod create;
mod destination;
mod gather;
mod verify;
mod restore;
mod select;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use crate::domain::backup::{
    BlobFault, BlobProblem, LISTED_FAULTS, PruneReport, RestoreReport, RestoredAs, SnapshotInfo,
    VerifyReport,
};
use crate::domain::error::{Error, Result};
use crate::domain::id::{FileId, Sha256, SnapshotId};
use crate::domain::provider::ProviderConfig;
use crate::storage::backup::{BackupDirectory, Copying, Sharing};
use crate::tasks;

use super::progress::Progress;

/// Contents that are dealt with in one visit to the blocking pool.
const BATCH: usize = 256;

/// The snapshots in a directory. Reading, restoring and removing them needs no store; making one does:
/// [`Admin::backup`](super::Admin::backup).
///
/// Clones are of one directory. A run that changes something there (making, verifying, removing) goes on
/// alone: any other fails with `Locked` meanwhile. Restores go on beside each other.
///
/// ```no_run
/// use filestore_core::admin::{Backups, NoProgress};
///
/// # async fn example() -> filestore_core::Result<()> {
/// let backups = Backups::open("/mnt/backup/files").await?;
/// for snapshot in backups.list().await? {
///     println!("{} of {}: {} files", snapshot.id, snapshot.created_at, snapshot.files);
/// }
/// let report = backups.verify(None, std::sync::Arc::new(NoProgress)).await?;
/// assert!(report.is_good());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Backups {
    directory: BackupDirectory,
}

impl Backups {
    /// Opens the snapshots in `path`, an existing directory of snapshots, and locks it until the last
    /// clone is gone. `Locked` while another process works on it, `Unusable` if it is no such directory.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let directory = blocking("opening snapshots", move || BackupDirectory::open(&path)).await?;
        Ok(Self { directory })
    }

    /// Opens the snapshots in `path` as [`open`](Self::open) does; an absent or empty directory becomes
    /// a directory of snapshots.
    pub async fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let directory =
            blocking("opening snapshots", move || BackupDirectory::create(&path)).await?;
        Ok(Self { directory })
    }

    /// Opens the snapshots in `path`, a directory that is there, as [`create`](Self::create) does.
    pub(crate) async fn prepare(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let directory =
            blocking("opening snapshots", move || BackupDirectory::prepare(&path)).await?;
        Ok(Self { directory })
    }

    /// Opens the snapshots in `path`, a directory that had snapshots of the store before. `Unusable` where
    /// nothing shows it.
    pub(crate) async fn reopen(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let directory =
            blocking("opening snapshots", move || BackupDirectory::reopen(&path)).await?;
        Ok(Self { directory })
    }

    /// Lists the snapshots, the oldest first.
    pub async fn list(&self) -> Result<Vec<SnapshotInfo>> {
        let directory = self.directory.clone();
        blocking("listing snapshots", move || {
            let ids = directory.snapshots()?;
            ids.into_iter().map(|id| Ok(directory.manifest(id)?.info().clone())).collect()
        })
        .await
    }

    /// Reads all of a snapshot, the newest if none is named, and compares every digest. A content that is
    /// wrong at a second look too is set aside within the directory: the next snapshot takes it anew,
    /// from which all older ones have it as well. Progress counts contents, and bytes beside them.
    /// `NotFound` if there is no such snapshot.
    pub async fn verify(
        &self,
        id: Option<SnapshotId>,
        progress: Arc<dyn Progress>,
    ) -> Result<VerifyReport> {
        let directory = self.directory.claim(Sharing::Alone)?;
        let id = self.pick(id).await?;
        verify::verify(&directory, id, progress).await
    }

    /// Restores a snapshot, the newest if none is named, into `into`: an absent or empty directory, or
    /// one into which this snapshot's restore broke off. Every file is compared with its digest on the
    /// way. `providers` are asked for the files that they hold, if the store is restored as the
    /// original. Progress counts files, and bytes beside them.
    pub async fn restore(
        &self,
        id: Option<SnapshotId>,
        into: impl AsRef<Path>,
        restored_as: RestoredAs,
        providers: &[ProviderConfig],
        progress: Arc<dyn Progress>,
    ) -> Result<RestoreReport> {
        let directory = self.directory.claim(Sharing::Beside)?;
        let id = self.pick(id).await?;
        let into = into.as_ref().to_owned();
        restore::restore(&directory, id, into, restored_as, providers, progress).await
    }

    /// Removes all but the newest `keep` snapshots, and the bytes that none of these holds; also what
    /// runs that broke off have left. A crash leaves bytes that the next call removes. Progress counts
    /// contents that are removed.
    pub async fn prune(
        &self,
        keep: NonZeroUsize,
        progress: Arc<dyn Progress>,
    ) -> Result<PruneReport> {
        let directory = self.directory.claim(Sharing::Alone)?;
        blocking("removing snapshots", move || {
            let mut kept = directory.snapshots()?;
            let removed = kept.drain(..kept.len().saturating_sub(keep.get())).collect::<Vec<_>>();
            progress.accepted();
            progress.start(None);

            for &id in removed.iter().chain(&directory.unfinished()?) {
                directory.remove(id)?;
            }
            let mut report = PruneReport { removed, kept, ..PruneReport::default() };
            directory.sweep(|bytes| {
                report.blobs_removed += 1;
                report.bytes_removed += bytes;
                progress.advance(1);
            })?;
            Ok(report)
        })
        .await
    }

    /// Returns the id of the snapshot that is asked for: the newest, if none is named.
    async fn pick(&self, id: Option<SnapshotId>) -> Result<SnapshotId> {
        let directory = self.directory.clone();
        blocking("listing snapshots", move || {
            let ids = directory.snapshots()?;
            let found = match id {
                Some(id) => ids.contains(&id).then_some(id),
                None => ids.last().copied(),
            };
            found.ok_or_else(|| Error::not_found("the snapshot"))
        })
        .await
    }
}

/// Runs `work` on the blocking pool.
async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tasks::blocking(work).await.unwrap_or_else(|lost| Err(Error::internal(doing, lost)))
}

/// Returns how many batches are dealt with at once.
fn batches_at_once() -> usize {
    std::thread::available_parallelism().map_or(4, |cpus| cpus.get().clamp(2, 8))
}

/// Notes a fault, as long as there are few.
fn note_fault(
    faults: &mut Vec<BlobFault>,
    expected: Copying,
    file_id: Option<FileId>,
    problem: BlobProblem,
) {
    if faults.len() < LISTED_FAULTS {
        let Copying { sha256, size_bytes } = expected;
        faults.push(BlobFault { sha256, size_bytes, file_id, problem });
    }
}

/// Describes bytes by the digest and size that they should have.
fn expected(sha256: Sha256, size_bytes: u64) -> Copying {
    Copying { size_bytes, sha256 }
}

#[cfg(test)]
mod tests;
