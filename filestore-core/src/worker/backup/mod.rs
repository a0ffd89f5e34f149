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
//! | `gather` | brings one content after the other to the destination |
//! | `vouching` | what an earlier snapshot has |
//! | `verify` | reads all of a snapshot |
//! | `restore` | restores a whole store into an empty directory |
//! | `select` | restores files of one organization, or one file, into a running store |
//!
//! # The way of a snapshot
//! `create` takes a hold, copies the database through SQLite's online backup, and narrows the
//! hold to the rows of the copy: until it is released no purge claims them, and no dropped blob
//! comes due. The copy names contents in the order of their digests; batches of them are copied
//! to the destination beside each other, each compared on the way, or counted on if the newest
//! finished snapshot has them. Then all is made durable, and the manifest gets its name. What keeps
//! runs at one destination apart is the destination's (`storage/backup/runs.rs`, `bucket/lease.rs`). A
//! run that verifies sets wrong contents aside, so that the next snapshot takes them anew.

mod create;
mod destination;
mod gather;
mod vouching;
mod verify;
mod restore;
mod select;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::domain::backup::{
    BlobFault, BlobProblem, LISTED_FAULTS, PruneReport, RestoreReport, RestoredAs, SnapshotInfo,
    VerifyReport,
};
use crate::domain::clock::Clock;
use crate::domain::error::{Error, Result};
use crate::domain::id::{FileId, Sha256, SnapshotId, StoreId};
use crate::domain::provider::ProviderConfig;
use crate::storage::ProviderRegistry;
use crate::storage::backup::{
    BackupBucket, BackupDirectory, Copying, Destination, RunClaim, RunKind, blocking,
};

use super::progress::Progress;

/// Contents that are dealt with in one visit to the blocking pool.
const BATCH: usize = 256;

/// The snapshots in a directory, or at a provider. Reading, restoring and removing them needs no store;
/// making one does: [`Admin::backup`](super::Admin::backup).
///
/// Clones are of one place. In a directory a run that changes something (making, verifying, removing) goes on
/// alone: any other fails with `Locked` meanwhile. Restores go on beside each other. At a provider only
/// [`prune`](Self::prune) goes on alone, and a process that ended in the middle of a run keeps it out for ten
/// minutes.
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
    destination: Arc<dyn Destination>,
    /// The store that they were opened through, which is open in this process.
    store: Option<StoreId>,
}

impl Backups {
    /// Opens the snapshots in `path`, an existing directory of snapshots, and locks it until the last
    /// clone is gone. `Locked` while another process works on it, `Unusable` if it is no such directory.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::opened(path.as_ref(), BackupDirectory::open).await
    }

    /// Opens the snapshots in `path` as [`open`](Self::open) does; an absent or empty directory becomes
    /// a directory of snapshots.
    pub async fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::opened(path.as_ref(), BackupDirectory::create).await
    }

    /// Opens the snapshots at a provider. `Unusable` if it has none, and had none;
    /// `ProviderUnavailable` if it does not answer.
    pub async fn at_provider(provider: &ProviderConfig) -> Result<Self> {
        let providers = ProviderRegistry::open(std::slice::from_ref(provider))?;
        let bucket = BackupBucket::open(providers.cloud(&provider.code)?).await?;
        Ok(Self { destination: Arc::new(bucket), store: None })
    }

    async fn opened(path: &Path, open: fn(&Path) -> Result<BackupDirectory>) -> Result<Self> {
        let path = path.to_owned();
        let directory = blocking("opening snapshots", move || open(&path)).await?;
        Ok(Self { destination: Arc::new(directory), store: None })
    }

    /// Claims the place for a run.
    async fn claim(&self, id: SnapshotId, kind: RunKind) -> Result<Arc<dyn Destination>> {
        self.destination.claim(RunClaim { id, kind, store: self.store }).await
    }

    /// Claims the place for a run that makes no snapshot.
    async fn claim_for(&self, kind: RunKind) -> Result<Arc<dyn Destination>> {
        self.claim(SnapshotId::generate(Clock::system().now()), kind).await
    }

    /// Lists the snapshots, the oldest first.
    pub async fn list(&self) -> Result<Vec<SnapshotInfo>> {
        let mut all = Vec::new();
        for id in self.destination.snapshots().await? {
            all.push(self.destination.manifest(id).await?.info().clone());
        }
        Ok(all)
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
        let claimed = self.claim_for(RunKind::Verify).await?;
        let verified = match self.pick(id).await {
            Ok(id) => verify::verify(&claimed, id, progress).await,
            Err(error) => Err(error),
        };
        claimed.release().await;
        verified
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
        let claimed = self.claim_for(RunKind::Restore).await?;
        let into = into.as_ref().to_owned();
        let restored = match self.pick(id).await {
            Ok(id) => restore::restore(&claimed, id, into, restored_as, providers, progress).await,
            Err(error) => Err(error),
        };
        claimed.release().await;
        restored
    }

    /// Removes all but the newest `keep` snapshots, and the bytes that none of these holds; also what
    /// runs that broke off have left. A crash leaves bytes that the next call removes. Progress counts
    /// contents that are removed.
    pub async fn prune(
        &self,
        keep: NonZeroUsize,
        progress: Arc<dyn Progress>,
    ) -> Result<PruneReport> {
        let claimed = self.claim_for(RunKind::Prune).await?;
        let pruned = remove_old(&claimed, keep, progress).await;
        claimed.release().await;
        pruned
    }

    /// Returns the id of the snapshot that is asked for: the newest, if none is named.
    async fn pick(&self, id: Option<SnapshotId>) -> Result<SnapshotId> {
        let ids = self.destination.snapshots().await?;
        let found = match id {
            Some(id) => ids.contains(&id).then_some(id),
            None => ids.last().copied(),
        };
        found.ok_or_else(|| Error::not_found("the snapshot"))
    }
}

/// Removes all but the newest `keep` snapshots, and the contents that none of these holds.
async fn remove_old(
    claimed: &Arc<dyn Destination>,
    keep: NonZeroUsize,
    progress: Arc<dyn Progress>,
) -> Result<PruneReport> {
    let mut kept = claimed.snapshots().await?;
    let removed = kept.drain(..kept.len().saturating_sub(keep.get())).collect::<Vec<_>>();
    progress.accepted();
    progress.start(None);

    for &id in &removed {
        claimed.remove(id).await?;
    }
    claimed.clear().await?;
    let swept = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let count = Arc::clone(&swept);
    claimed
        .sweep(Arc::new(move |bytes| {
            count.0.fetch_add(1, Ordering::Relaxed);
            count.1.fetch_add(bytes, Ordering::Relaxed);
            progress.advance(1);
        }))
        .await?;

    let (blobs, bytes) = (swept.0.load(Ordering::Relaxed), swept.1.load(Ordering::Relaxed));
    Ok(PruneReport { removed, kept, blobs_removed: blobs, bytes_removed: bytes })
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
