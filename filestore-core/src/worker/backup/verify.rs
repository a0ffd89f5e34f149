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
        for content in batch {
            progress.advance(1);
            progress.add_bytes(content.expected.size_bytes);
            count(&mut report, &content);
        }
    }
    Ok(report)
}

/// A content that was read.
struct Looked {
    expected: Copying,
    problem: Option<BlobProblem>,
    is_set_aside: bool,
}

fn count(report: &mut VerifyReport, content: &Looked) {
    report.checked += 1;
    report.checked_bytes += content.expected.size_bytes;
    report.set_aside += u64::from(content.is_set_aside);

    let Some(problem) = content.problem else { return };
    match problem {
        BlobProblem::Missing => report.missing += 1,
        BlobProblem::Wrong | BlobProblem::Unreachable => report.wrong += 1,
    }
    note_fault(&mut report.faults, content.expected, None, problem);
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

fn read_batch(directory: &BackupDirectory, batch: Vec<Entry>) -> Vec<Looked> {
    let mut buffer = Vec::new();
    let mut look = |Entry { sha256, size_bytes, .. }| {
        let expected = expected(sha256, size_bytes);
        let mut problem = problem_of(directory, expected, &mut buffer);
        if problem == Some(BlobProblem::Wrong) {
            // A disk, or memory, may fail once.
            problem = problem_of(directory, expected, &mut buffer);
        }
        let is_set_aside = problem == Some(BlobProblem::Wrong) && set_aside(directory, expected);
        Looked { expected, problem, is_set_aside }
    };
    batch.into_iter().map(&mut look).collect()
}

fn problem_of(
    directory: &BackupDirectory,
    expected: Copying,
    buffer: &mut Vec<u8>,
) -> Option<BlobProblem> {
    match directory.read_blob(expected.sha256, buffer) {
        Ok(Some(found)) if found == expected => None,
        Ok(Some(_)) => Some(BlobProblem::Wrong),
        Ok(None) => Some(BlobProblem::Missing),
        Err(error) => {
            let sha256 = expected.sha256;
            tracing::error!(%sha256, error = %error.chain(), "a content cannot be read");
            Some(BlobProblem::Wrong)
        }
    }
}

/// Sets a wrong content aside; false, and the content stays, where nothing can be written.
fn set_aside(directory: &BackupDirectory, content: Copying) -> bool {
    let sha256 = content.sha256;
    match directory.set_aside(sha256) {
        Ok(is_set_aside) => {
            tracing::error!(%sha256, "a content with wrong bytes is set aside");
            is_set_aside
        }
        Err(error) => {
            tracing::error!(%sha256, error = %error.chain(), "a content with wrong bytes stays");
            false
        }
    }
}
