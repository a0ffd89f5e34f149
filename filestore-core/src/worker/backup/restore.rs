//! Restoring a whole store.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use sha2::Digest;
use tokio::sync::mpsc;

use super::vouching::Vouching;
use super::{BATCH, batches_at_once, expected, note_fault};
use crate::domain::backup::{BlobProblem, RestoreReport, RestoredAs};
use crate::domain::clock::Clock;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{FileId, Sha256, SnapshotId, StoreId};
use crate::domain::provider::ProviderConfig;
use crate::metadata::sqlite::{NamedBytes, SnapshotDatabase, prepare_restored};
use crate::storage::backup::{Destination, Manifest, RestoredDirectory, Stored, blocking};
use crate::storage::{BlobStore, ProviderRegistry};
use crate::tasks;
use crate::worker::progress::Progress;
use crate::worker::run::Run;

const RESTORING: &str = "restoring a snapshot";

/// One run, shared by its batches.
struct Restoring {
    destination: Arc<dyn Destination>,
    target: Arc<RestoredDirectory>,
    restored_as: RestoredAs,
    providers: ProviderRegistry,
}

/// The outcome for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Its bytes are in the directory.
    Restored,
    /// They are, and were at a provider.
    Localized,
    /// They are at their provider.
    Left,
    Failed(BlobProblem),
}

/// Restores all of the snapshot; see [`Backups::restore`](super::Backups::restore).
pub(super) fn restore<'a>(
    destination: &'a Arc<dyn Destination>,
    id: SnapshotId,
    into: PathBuf,
    restored_as: RestoredAs,
    providers: &'a [ProviderConfig],
    progress: Arc<dyn Progress>,
) -> Run<'a, RestoreReport> {
    Box::pin(restore_all(destination, id, into, restored_as, providers, progress))
}

async fn restore_all(
    destination: &Arc<dyn Destination>,
    id: SnapshotId,
    into: PathBuf,
    restored_as: RestoredAs,
    providers: &[ProviderConfig],
    progress: Arc<dyn Progress>,
) -> Result<RestoreReport> {
    let providers = ProviderRegistry::open(providers)?;
    let (target, files) = begin(&**destination, id, into).await?;
    progress.accepted();
    progress.start(Some(files));

    let destination = Arc::clone(destination);
    let run = Arc::new(Restoring { destination, target: Arc::new(target), restored_as, providers });
    let mut report = RestoreReport::default();
    let localized = run.restore_files(id, &mut report, &*progress).await?;

    let run = Arc::into_inner(run).expect("all batches have ended");
    blocking(RESTORING, move || {
        let target = Arc::into_inner(run.target).expect("nothing is restored any more");
        let copy_id = StoreId::generate(Clock::system().now());
        prepare_restored(&target.database(), restored_as, copy_id, &localized)?;
        target.finish()
    })
    .await?;
    Ok(report)
}

/// Copies the database, which must be as it was written; returns also how many files there are.
async fn begin(
    destination: &dyn Destination,
    id: SnapshotId,
    into: PathBuf,
) -> Result<(RestoredDirectory, u64)> {
    let damaged = |what: &str| {
        let message =
            format!("the snapshot's copy of the database is {what}: restore another snapshot");
        Error::new(ErrorKind::Unusable, message)
    };
    let manifest = destination.manifest(id).await?;
    let opened = destination.open_database(id).await?.ok_or_else(|| damaged("missing"))?;

    let target = blocking(RESTORING, move || RestoredDirectory::begin(&into, id)).await?;
    let copied = target.take_database(opened).await?;
    if copied != expected(manifest.database_sha256(), manifest.info().database_bytes) {
        return Err(damaged("damaged"));
    }
    blocking(RESTORING, move || {
        let files = SnapshotDatabase::open(&target.database())?.count()?;
        Ok((target, files))
    })
    .await
}

impl Restoring {
    /// Restores the bytes of all files; returns those that are on the disk now and were at providers.
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
            if !file.provider.is_local() && self.restored_as == RestoredAs::Original {
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

    /// Reads a file at its provider; false if the bytes are not there, or others.
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

/// Sends the files that the snapshot names; returns how many records cannot be read. Blocks; ends early
/// if nobody receives them any more.
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
        tracing::error!(damaged, "files whose records are damaged are not restored");
    }
    sender.blocking_send(batch).map_err(|_| broke_off())?;
    Ok(damaged)
}

/// Makes the error of a restore whose other half is gone.
pub(super) fn broke_off() -> Error {
    Error::new(ErrorKind::Conflict, "the restore broke off")
}
