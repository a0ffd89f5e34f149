//! Verifies a snapshot.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use super::{BATCH, batches_at_once, expected, note_fault};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::SnapshotId;
use crate::domain::report::backup::{BlobProblem, VerifyReport};
use crate::storage::backup::{Copying, Destination, Manifest, Stored, blocking};
use crate::tasks;
use crate::worker::running::progress::Progress;

const VERIFYING: &str = "verifying a snapshot";

/// Reads all contents of the snapshot. See [`Backups::verify`](super::Backups::verify).
pub(super) async fn verify(
    destination: &Arc<dyn Destination>,
    id: SnapshotId,
    progress: Arc<dyn Progress>,
) -> Result<VerifyReport> {
    let opened = destination.manifest(id).await?;
    let found = digest_database(&**destination, id).await?;

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
    let starting = |batch: Result<Vec<Stored>>| {
        let destination = Arc::clone(destination);
        tasks::spawn(async move { read_batch(&*destination, batch?).await })
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

/// Reads the copy of the database. `None` if it is missing or unreadable.
async fn digest_database(destination: &dyn Destination, id: SnapshotId) -> Result<Option<Copying>> {
    let digest = async {
        match destination.open_database(id).await? {
            Some(opened) => opened.digest().await.map(Some),
            None => Ok(None),
        }
    };
    match digest.await {
        Err(error) if is_silence(&error) => Err(error),
        found => Ok(found.ok().flatten()),
    }
}

/// The result of reading a content.
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

/// Reads the next lines of a manifest whose contents are in the snapshot. An empty batch means the end.
/// Blocks.
fn next_batch(manifest: Option<Manifest>) -> Result<(Vec<Stored>, Option<Manifest>)> {
    let Some(mut manifest) = manifest else { return Ok((Vec::new(), None)) };
    let mut batch = Vec::with_capacity(BATCH);
    while batch.len() < BATCH {
        match manifest.next_entry()? {
            Some(entry) => batch.extend(entry.stored()),
            None => return Ok((batch, None)),
        }
    }
    Ok((batch, Some(manifest)))
}

async fn read_batch(destination: &dyn Destination, batch: Vec<Stored>) -> Result<Vec<Looked>> {
    let found = destination.digest(batch.clone()).await;
    let mut looked = Vec::with_capacity(batch.len());
    for (content, found) in batch.into_iter().zip(found) {
        looked.push(look(destination, content, found).await?);
    }
    Ok(looked)
}

/// Checks a content. If the first read finds a fault, reads again, because a disk or memory can fail once.
async fn look(
    destination: &dyn Destination,
    content: Stored,
    found: Result<Option<Copying>>,
) -> Result<Looked> {
    let expected = content.expected;
    let mut problem = problem_of(expected, &found);
    if matches!(problem, Some(BlobProblem::Wrong | BlobProblem::Unreachable)) {
        let again = destination.digest(vec![content]).await.pop().unwrap_or(Ok(None));
        problem = problem_of(expected, &again);
    }
    if problem == Some(BlobProblem::Unreachable) {
        // One content cannot be read, unless nothing can.
        destination.confirm().await?;
    }
    let is_set_aside = problem == Some(BlobProblem::Wrong) && set_aside(destination, content).await;
    Ok(Looked { expected, problem, is_set_aside })
}

fn problem_of(expected: Copying, found: &Result<Option<Copying>>) -> Option<BlobProblem> {
    match found {
        Ok(Some(found)) if *found == expected => None,
        Ok(Some(_)) => Some(BlobProblem::Wrong),
        Ok(None) => Some(BlobProblem::Missing),
        Err(error) => {
            let sha256 = expected.sha256;
            tracing::error!(%sha256, error = %error.chain(), "a content cannot be read");
            Some(if is_silence(error) { BlobProblem::Unreachable } else { BlobProblem::Wrong })
        }
    }
}

/// Returns true if an answer is missing or cut, and false if it describes the contents.
fn is_silence(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::ProviderUnavailable | ErrorKind::Busy)
}

/// Sets a wrong content aside. If the destination is not writable, returns false and leaves the content.
async fn set_aside(destination: &dyn Destination, content: Stored) -> bool {
    let sha256 = content.expected.sha256;
    match destination.set_aside(content).await {
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
