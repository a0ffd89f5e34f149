//! Restores a whole store.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use sha2::Digest;
use tokio::sync::mpsc;

use super::elsewhere::Records;
use super::vouching::Vouching;
use super::{BATCH, batches_at_once, expected, note_fault};
use crate::domain::config::StoreConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{FileId, Sha256, SnapshotId, StoreId};
use crate::domain::report::backup::{
    BlobProblem, RestoreOptions, RestoreReport, RestoredAs, RestoredKeys,
};
use crate::domain::time::clock::{Clock, Timestamp};
use crate::metadata::sqlite::{GoodAccess, NamedBytes, SnapshotDatabase, prepare_restored};
use crate::storage::backup::{Destination, Manifest, RestoredDirectory, Stored, blocking};
use crate::storage::{BlobStore, ProviderRegistry};
use crate::tasks;
use crate::worker::running::progress::Progress;
use crate::worker::running::run::Run;

const RESTORING: &str = "restoring a snapshot";

/// A run, shared by its batches.
struct Restoring {
    destination: Arc<dyn Destination>,
    target: Arc<RestoredDirectory>,
    options: RestoreOptions,
    providers: ProviderRegistry,
}

/// The result for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The file's bytes are in the directory.
    Restored,
    /// The file's bytes are in the directory, and were at a provider.
    Localized,
    /// The file's bytes are at their provider.
    Left,
    Failed(BlobProblem),
}

/// Restores the whole snapshot. See [`Backups::restore`](super::Backups::restore).
pub(super) fn restore<'a>(
    destination: &'a Arc<dyn Destination>,
    id: SnapshotId,
    into: PathBuf,
    options: RestoreOptions,
    config: &'a StoreConfig,
    progress: Arc<dyn Progress>,
) -> Run<'a, RestoreReport> {
    Box::pin(restore_all(destination, id, into, options, config, progress))
}

async fn restore_all(
    destination: &Arc<dyn Destination>,
    id: SnapshotId,
    into: PathBuf,
    options: RestoreOptions,
    config: &StoreConfig,
    progress: Arc<dyn Progress>,
) -> Result<RestoreReport> {
    let providers = ProviderRegistry::open(&config.providers)?;
    let fresh = StoreId::generate(Clock::system().now());
    let target = blocking(RESTORING, move || RestoredDirectory::begin(&into, id, fresh)).await?;
    let (target, records) = reserve(&**destination, id, target, options, config).await?;
    let (target, taken_at, files) = begin(&**destination, id, target).await?;
    progress.accepted();
    progress.start(Some(files));

    let destination = Arc::clone(destination);
    let run = Arc::new(Restoring { destination, target: Arc::new(target), options, providers });
    let mut report = RestoreReport::default();
    let localized = run.restore_files(id, &mut report, &*progress).await?;

    let run = Arc::into_inner(run).expect("all batches have ended");
    let preparing = blocking(RESTORING, move || {
        let target = Arc::into_inner(run.target).expect("nothing is restored any more");
        let (database, now) = (target.database(), Clock::system().now());
        let good = prepare_restored(&database, options, target.copy_id(), &localized, now)?;
        Ok((target, good))
    });
    let (target, GoodAccess { keys, secrets }) = preparing.await?;
    records.finish(target).await?;
    report.keys = Some(RestoredKeys { taken_at, keys, secrets, access: options.access });
    Ok(report)
}

/// Prepares the place of the records, before anything is restored. If it is refused, the directory is as it was.
async fn reserve(
    destination: &dyn Destination,
    id: SnapshotId,
    target: RestoredDirectory,
    options: RestoreOptions,
    config: &StoreConfig,
) -> Result<(RestoredDirectory, Records)> {
    let reserving = async {
        let store = match options.restored_as {
            RestoredAs::Copy => target.copy_id(),
            RestoredAs::Original => destination.manifest(id).await?.info().store,
        };
        Records::reserve(config, store, target.has_retired()).await
    };
    let reserved = reserving.await;
    match reserved {
        Ok(records) => Ok((target, records)),
        Err(refused) => {
            blocking(RESTORING, move || target.give_up()).await?;
            Err(refused)
        }
    }
}

/// Copies the database, and checks that it is unchanged since the snapshot. Also returns the snapshot time
/// and the number of files.
async fn begin(
    destination: &dyn Destination,
    id: SnapshotId,
    target: RestoredDirectory,
) -> Result<(RestoredDirectory, Timestamp, u64)> {
    let damaged = |what: &str| {
        let message =
            format!("the snapshot's copy of the database is {what}: restore another snapshot");
        Error::new(ErrorKind::Unusable, message)
    };
    let manifest = destination.manifest(id).await?;
    let opened = destination.open_database(id).await?.ok_or_else(|| damaged("missing"))?;

    let copied = target.take_database(opened).await?;
    if copied != expected(manifest.database_sha256(), manifest.info().database_bytes) {
        return Err(damaged("damaged"));
    }
    let taken_at = manifest.info().created_at;
    blocking(RESTORING, move || {
        let files = SnapshotDatabase::open_foreign(&target.database())?.count()?;
        Ok((target, taken_at, files))
    })
    .await
}

impl Restoring {
    /// Restores the bytes of all files. Returns the files that are now on the disk and were at providers.
    async fn restore_files(
        self: &Arc<Self>,
        id: SnapshotId,
        report: &mut RestoreReport,
        progress: &dyn Progress,
    ) -> Result<Vec<FileId>> {
        let (sender, receiver) = mpsc::channel(batches_at_once());
        let (manifest, target) = (self.destination.manifest(id).await?, Arc::clone(&self.target));
        let naming = tasks::blocking(move || name_files(manifest, &target, &sender));

        let batches = stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|batch| (batch, receiver))
        });
        let run = Arc::clone(self);
        let starting = move |batch| tasks::spawn(Arc::clone(&run).restore_batch(batch));
        let mut restored = batches.map(starting).buffer_unordered(batches_at_once()).boxed();

        let mut localized = Vec::new();
        while let Some(batch) = restored.next().await {
            let batch = batch.map_err(|lost| Error::internal(RESTORING, lost))??;
            for (file, outcome) in batch {
                progress.advance(1);
                count(report, &file, outcome, progress);
                if outcome == Outcome::Localized {
                    localized.push(file.file_id);
                }
            }
        }
        report.damaged_records =
            naming.await.map_err(|lost| Error::internal(RESTORING, lost))??;
        Ok(localized)
    }

    async fn restore_batch(
        self: Arc<Self>,
        batch: Vec<Named>,
    ) -> Result<Vec<(NamedBytes, Outcome)>> {
        let mut done = Vec::with_capacity(batch.len());
        let mut from_snapshot = Vec::with_capacity(batch.len());
        for (file, stored) in batch {
            if !file.provider.is_local() && self.options.restored_as == RestoredAs::Original {
                match self.compare_at_provider(&file).await {
                    Ok(true) => done.push((file, Outcome::Left)),
                    Ok(false) => from_snapshot.push((file, stored)),
                    // It stays its provider's: silence is no absence.
                    Err(error) => {
                        tracing::warn!(file_id = %file.file_id, error = %error.chain(), "a file at a provider could not be compared");
                        done.push((file, Outcome::Failed(BlobProblem::Unreachable)));
                    }
                }
            } else {
                from_snapshot.push((file, stored));
            }
        }
        self.take(from_snapshot, &mut done).await?;
        Ok(done)
    }

    /// Reads a file at its provider. Returns false if the bytes are missing or wrong.
    async fn compare_at_provider(&self, file: &NamedBytes) -> Result<bool> {
        let cloud = self.providers.cloud(&file.provider)?;
        let Some(read) = cloud.read_to_copy(&file.key, file.size_bytes).await? else {
            // Absent only where the marker says that this is the store's own place.
            cloud.check_marker().await?;
            return Ok(false);
        };
        let mut bytes = read.into_stream(0..file.size_bytes);
        let mut hasher = sha2::Sha256::new();
        while let Some(piece) = bytes.next().await.transpose()? {
            hasher.update(&piece);
        }
        Ok(Sha256(hasher.finalize().into()) == file.sha256)
    }

    /// Takes files from the snapshot.
    async fn take(&self, files: Vec<Named>, done: &mut Vec<(NamedBytes, Outcome)>) -> Result<()> {
        // What the manifest does not have may lie there all the same, by its digest alone.
        let wanted = files.iter().map(|(file, stored)| {
            let unnamed = Stored { expected: expected(file.sha256, file.size_bytes), by: None };
            (file.key.clone(), stored.unwrap_or(unnamed))
        });
        let taken = self.destination.restore(&self.target, wanted.collect()).await?;
        done.extend(files.into_iter().zip(taken).map(|((file, _), taken)| {
            let outcome = match (taken, file.provider.is_local()) {
                (Some(true), true) => Outcome::Restored,
                (Some(true), false) => Outcome::Localized,
                (Some(false), _) => Outcome::Failed(BlobProblem::Wrong),
                (None, _) => Outcome::Failed(BlobProblem::Missing),
            };
            (file, outcome)
        }));
        Ok(())
    }
}

fn count(report: &mut RestoreReport, file: &NamedBytes, outcome: Outcome, progress: &dyn Progress) {
    match outcome {
        Outcome::Restored | Outcome::Localized => {
            report.restored += 1;
            report.restored_bytes += file.size_bytes;
            progress.add_bytes(file.size_bytes);
        }
        Outcome::Left => report.left_at_providers += 1,
        Outcome::Failed(problem) => {
            report.failed += 1;
            let expected = expected(file.sha256, file.size_bytes);
            note_fault(&mut report.faults, expected, Some(file.file_id), problem);
        }
    }
}

/// A file of a snapshot, and its content if the manifest has it.
type Named = (NamedBytes, Option<Stored>);

/// Sends the files that the snapshot names. Returns the number of unreadable records. Blocks. Ends early if
/// the receiver is gone.
fn name_files(
    manifest: Manifest,
    target: &RestoredDirectory,
    sender: &mpsc::Sender<Vec<Named>>,
) -> Result<u64> {
    let mut held = Vouching::new(Some(manifest));
    let mut batch = Vec::with_capacity(BATCH);
    let damaged = SnapshotDatabase::open(&target.database())?.each_named(&mut |file| {
        let stored = held.find(file.sha256);
        batch.push((file, stored));
        if batch.len() == BATCH {
            let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
            sender.blocking_send(full).map_err(|_| broke_off())?;
        }
        Ok(())
    })?;

    if damaged > 0 {
        tracing::error!(damaged, "files with damaged records are not restored");
    }
    sender.blocking_send(batch).map_err(|_| broke_off())?;
    Ok(damaged)
}

/// Returns the error for a restore whose other task is gone.
pub(super) fn broke_off() -> Error {
    Error::new(ErrorKind::Conflict, "the restore broke off")
}
