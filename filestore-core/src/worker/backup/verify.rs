//! Reading a snapshot.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use super::{BATCH, batches_at_once, blocking, expected, note_fault};
use crate::domain::backup::{BlobProblem, VerifyReport};
use crate::domain::error::{Error, Result};
use crate::domain::id::SnapshotId;
use crate::storage::backup::{BackupDirectory, Copying, Entry, EntryKind, Manifest};
use crate::tasks;
use crate::worker::progress::Progress;

const VERIFYING: &str = "verifying a snapshot";

/// Reads all that the snapshot holds; see [`Backups::verify`](super::Backups::verify).
pub(super) async fn verify(
    directory: &BackupDirectory,
    id: SnapshotId,
    progress: Arc<dyn Progress>,
) -> Result<VerifyReport> {
    let (opened, found) = {
        let directory = directory.clone();
        blocking(VERIFYING, move || {
            let manifest = directory.manifest(id)?;
            let found = directory.read_database(id).ok();
            Ok((manifest, found))
        })
        .await?
    };

    let mut report = VerifyReport::new(opened.info().clone());
    let database = expected(opened.database_sha256(), opened.info().database_bytes);
    report.database_is_good = found == Some(database);
    progress.accepted();
    progress.start(Some(opened.info().blobs));

    let batches = stream::unfold(Some(opened), |manifest| async move {
        let outcome = blocking(VERIFYING, move || next_batch(manifest)).await;
        match outcome {
            Ok((batch, _)) if batch.is_empty() => None,
            Ok((batch, manifest)) => Some((Ok(batch), manifest)),
            Err(error) => Some((Err(error), None)),
        }
    });
    let directory = directory.clone();
    let starting = move |batch: Result<Vec<Entry>>| {
        let directory = directory.clone();
        tasks::blocking(move || Ok::<_, Error>(read_batch(&directory, batch?)))
    };

    let mut read = batches.map(starting).buffered(batches_at_once()).boxed();
    while let Some(batch) = read.next().await {
        let batch = batch.map_err(|lost| Error::internal(VERIFYING, lost))??;
        for (expected, problem) in batch {
            report.checked += 1;
            report.checked_bytes += expected.size_bytes;
            progress.advance(1);
            progress.add_bytes(expected.size_bytes);
            count(&mut report, expected, problem);
        }
    }
    Ok(report)
}

fn count(report: &mut VerifyReport, expected: Copying, problem: Option<BlobProblem>) {
    let Some(problem) = problem else { return };
    match problem {
        BlobProblem::Missing => report.missing += 1,
        BlobProblem::Wrong | BlobProblem::Unreachable => report.wrong += 1,
    }
    note_fault(&mut report.faults, expected, None, problem);
}

/// Reads the next lines of a manifest, as far as the snapshot holds what they name; an empty batch is
/// the end. Blocks.
fn next_batch(manifest: Option<Manifest>) -> Result<(Vec<Entry>, Option<Manifest>)> {
    let Some(mut manifest) = manifest else { return Ok((Vec::new(), None)) };
    let mut batch = Vec::with_capacity(BATCH);
    while batch.len() < BATCH {
        match manifest.next_entry()? {
            Some(entry) if entry.kind == EntryKind::Held => batch.push(entry),
            Some(_) => {}
            None => return Ok((batch, None)),
        }
    }
    Ok((batch, Some(manifest)))
}

fn read_batch(
    directory: &BackupDirectory,
    batch: Vec<Entry>,
) -> Vec<(Copying, Option<BlobProblem>)> {
    let mut buffer = Vec::new();
    let mut read = Vec::with_capacity(batch.len());
    for Entry { sha256, size_bytes, .. } in batch {
        let expected = expected(sha256, size_bytes);
        let problem = match directory.read_blob(sha256, &mut buffer) {
            Ok(Some(found)) if found == expected => None,
            Ok(Some(_)) => Some(BlobProblem::Wrong),
            Ok(None) => Some(BlobProblem::Missing),
            Err(error) => {
                tracing::error!(%sha256, error = %error.chain(), "a content cannot be read");
                Some(BlobProblem::Wrong)
            }
        };
        read.push((expected, problem));
    }
    read
}
