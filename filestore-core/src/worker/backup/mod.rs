//! Snapshots: taken from a running store, verified, restored, pruned.
//!
//! # Consistency
//! The copy of the database is of one instant, keys are written once, and a hold protects all bytes in the
//! copy until the snapshot is complete. A copied blob is therefore always the blob that the record meant.
//!
//! | module | task |
//! |---|---|
//! | `create` | takes a snapshot |
//! | `destination` | opens configured destinations, and recognizes them later |
//! | `gather` | brings the contents to the destination |
//! | `vouching` | reads the contents of an earlier snapshot |
//! | `verify` | reads a whole snapshot |
//! | `restore` | restores a whole store into an empty directory |
//! | `elsewhere` | brings the records of a restored store to PostgreSQL |
//! | `select` | restores files of one organization, or one file, into a running store |
//!
//! # How a snapshot is taken
//! 1. `create` takes a hold, and copies the database through SQLite's online backup.
//! 2. It narrows the hold to the rows of the copy. Until the hold is released, no purge claims them, and none
//!    of their replaced blobs becomes due.
//! 3. The copy lists the contents in the order of their digests. Batches of contents are copied to the
//!    destination in parallel, and each content is compared. Contents of the newest finished snapshot are not
//!    copied again.
//! 4. All files are made durable, and the manifest gets its name.
//!
//! Each kind of destination separates concurrent runs itself (`storage/backup/runs.rs`, `bucket/lease.rs`). A
//! verifying run sets wrong contents aside, so that the next snapshot stores them again.

mod create;
pub(in crate::worker) mod destination;
mod gather;
mod vouching;
mod verify;
mod restore;
mod elsewhere;
mod select;

pub(in crate::worker) use self::create::create;
pub(in crate::worker) use self::select::restore_selected;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::domain::config::StoreConfig;
use crate::domain::error::{Error, Result};
use crate::domain::id::{FileId, Sha256, SnapshotId, StoreId};
use crate::domain::provider::ProviderConfig;
use crate::domain::report::backup::{
    BlobFault, BlobProblem, LISTED_FAULTS, PruneReport, RestoreOptions, RestoreReport,
    SnapshotInfo, VerifyReport,
};
use crate::domain::time::clock::Clock;
use crate::storage::ProviderRegistry;
use crate::storage::backup::{
    BackupBucket, BackupDirectory, Copying, Destination, RunClaim, RunKind, blocking,
};

use super::running::progress::Progress;

/// The number of contents in one task on the blocking pool.
const BATCH: usize = 256;

/// The snapshots in a directory or at a provider. Reading, restoring and removing them needs no store. To
/// take a snapshot, call [`Admin::backup`](super::Admin::backup).
///
/// Clones refer to the same place. In a directory, a run that takes, verifies or removes snapshots runs
/// alone, and other runs return `Locked`. Restores can run at the same time. At a provider, only
/// [`prune`](Self::prune) runs alone. If a process ends during a run, the lease of the run blocks `prune` for
/// ten minutes.
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
    /// The store through which this was opened. The store is open in this process.
    store: Option<StoreId>,
}

impl Backups {
    /// Opens the snapshots in `path`, an existing directory of snapshots, and locks it until the last clone
    /// is dropped. `Locked` while another process uses it, and `Unusable` if the path is not a directory of
    /// snapshots.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::opened(path.as_ref(), BackupDirectory::open).await
    }

    /// Opens the snapshots in `path` like [`open`](Self::open). An absent or empty directory becomes a
    /// directory of snapshots.
    pub async fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::opened(path.as_ref(), BackupDirectory::create).await
    }

    /// Opens the snapshots at a provider. `Unusable` if no backup was ever made to this provider.
    /// `ProviderUnavailable` if the provider does not answer.
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

    /// Claims the place for a run that takes no snapshot.
    async fn claim_for(&self, kind: RunKind) -> Result<Arc<dyn Destination>> {
        self.claim(SnapshotId::generate(Clock::system().now()), kind).await
    }

    /// Lists the snapshots, oldest first.
    pub async fn list(&self) -> Result<Vec<SnapshotInfo>> {
        let mut all = Vec::new();
        for id in self.destination.snapshots().await? {
            all.push(self.destination.manifest(id).await?.info().clone());
        }
        Ok(all)
    }

    /// Reads a whole snapshot and compares every digest. Without an id, verifies the newest snapshot. If a
    /// content is wrong and a second read confirms it, the content is set aside. The next snapshot then
    /// stores it again, also for older snapshots. Progress counts contents and bytes. `NotFound` if there is
    /// no such snapshot.
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

    /// Restores a snapshot into the directory `into`. Without an id, restores the newest snapshot. The
    /// directory must be absent or empty, or contain an interrupted restore of the same snapshot. Every file
    /// is compared with its digest. If the store is restored as the original, `providers` are asked for their
    /// files. Progress counts files and bytes.
    ///
    /// A snapshot contains the keys and signing secrets of its time, including keys that were revoked later.
    /// The report lists the valid keys. `options` decides whether they are revoked. You can pass a
    /// [`RestoredAs`](crate::admin::RestoredAs) as the options: a copy revokes them.
    pub async fn restore(
        &self,
        id: Option<SnapshotId>,
        into: impl AsRef<Path>,
        options: impl Into<RestoreOptions>,
        providers: &[ProviderConfig],
        progress: Arc<dyn Progress>,
    ) -> Result<RestoreReport> {
        let config = StoreConfig { providers: providers.to_vec(), ..StoreConfig::default() };
        self.restore_for(id, into, options, &config, progress).await
    }

    /// Restores a snapshot as [`restore`](Self::restore) does, for a server with `config`: its providers are
    /// asked, and if its records are in PostgreSQL they go there, into a schema that is new or has no records. The
    /// files come into the directory `into` in either case;
    /// [`copy_files`](crate::admin::copy_files) moves them to a backend of LOCAL.
    ///
    /// From the beginning until the end no server opens that schema. A restore that broke off is started again,
    /// with the same directory. `Unusable`, before anything is restored, for a schema that has records, and for a
    /// backend that takes no files.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    ///
    /// use filestore_core::StoreConfig;
    /// use filestore_core::admin::{Backups, NoProgress, RestoredAs};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = StoreConfig::load("/etc/filestore/filestore.toml")?;
    /// let backups = Backups::open("/mnt/backup/files").await?;
    /// let (into, original) = ("/var/lib/filestore", RestoredAs::Original);
    /// let report = backups.restore_for(None, into, original, &config, Arc::new(NoProgress)).await?;
    /// assert_eq!(report.failed, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restore_for(
        &self,
        id: Option<SnapshotId>,
        into: impl AsRef<Path>,
        options: impl Into<RestoreOptions>,
        config: &StoreConfig,
        progress: Arc<dyn Progress>,
    ) -> Result<RestoreReport> {
        let (into, options) = (into.as_ref().to_owned(), options.into());
        let claimed = self.claim_for(RunKind::Restore).await?;
        let restored = match self.pick(id).await {
            Ok(id) => restore::restore(&claimed, id, into, options, config, progress).await,
            Err(error) => Err(error),
        };
        claimed.release().await;
        restored
    }

    /// Keeps the newest `keep` snapshots, and removes all others, with the bytes that no kept snapshot
    /// contains and the leftovers of interrupted runs. After a crash, the next call removes the rest.
    /// Progress counts removed contents.
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

    /// Returns the given snapshot id, or the id of the newest snapshot.
    async fn pick(&self, id: Option<SnapshotId>) -> Result<SnapshotId> {
        let ids = self.destination.snapshots().await?;
        let found = match id {
            Some(id) => ids.contains(&id).then_some(id),
            None => ids.last().copied(),
        };
        found.ok_or_else(|| Error::not_found("the snapshot"))
    }
}

/// Keeps the newest `keep` snapshots, and removes all others with their unused contents.
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

/// Returns the number of batches in parallel.
fn batches_at_once() -> usize {
    std::thread::available_parallelism().map_or(4, |cpus| cpus.get().clamp(2, 8))
}

/// Adds a fault to the report, up to a limit.
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

/// Describes bytes by their expected digest and size.
fn expected(sha256: Sha256, size_bytes: u64) -> Copying {
    Copying { size_bytes, sha256 }
}

#[cfg(test)]
mod tests;
