//! Restores files of a snapshot into a running store.
//!
//! A restored file gets its old id, name, type and metadata. The restored file is a LOCAL file under a new
//! key, because each key is written once. A file that still exists stays unchanged, even if it is deleted.
//! Versions continue from the version in the snapshot. If the organization was erased after the snapshot, its
//! files are not restored.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::restore::broke_off;
use super::{Backups, expected, note_fault};
use crate::FileStore;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::record::FileRecord;
use crate::domain::id::SnapshotId;
use crate::domain::report::backup::{BlobProblem, RestoreReport, Selection};
use crate::domain::report::erasure::{Era, erased};
use crate::metadata::sqlite::SnapshotDatabase;
use crate::service::files::put_back::put_back;
use crate::storage::backup::{DatabaseFile, Destination, Manifest, RunKind, Stored};
use crate::tasks;
use crate::worker::running::progress::Progress;

const RESTORING: &str = "restoring files";

/// The number of pieces and records that wait to be processed.
const AHEAD: usize = 2;

/// Restores a part of a snapshot. See [`Admin::restore`](crate::worker::Admin::restore).
pub(in crate::worker) async fn restore_selected(
    store: &FileStore,
    backups: &Backups,
    id: Option<SnapshotId>,
    selection: Selection,
    progress: Arc<dyn Progress>,
) -> Result<RestoreReport> {
    let claimed = backups.claim_for(RunKind::Restore).await?;
    let restored = match backups.pick(id).await {
        Ok(id) => restore_from(store, &claimed, id, selection, progress).await,
        Err(error) => Err(error),
    };
    claimed.release().await;
    restored
}

async fn restore_from(
    store: &FileStore,
    claimed: &Arc<dyn Destination>,
    id: SnapshotId,
    selection: Selection,
    progress: Arc<dyn Progress>,
) -> Result<RestoreReport> {
    let scratch = store.data_dir().scratch();
    let database = claimed.database_file(id, &scratch).await?;
    let manifest = claimed.manifest(id).await?;
    let (sender, mut records) = mpsc::channel(AHEAD);
    let absent = match &selection {
        Selection::File(_) => "the file is not in this snapshot",
        Selection::Organization(_) => "the organization has no files in this snapshot",
    };
    let naming = tasks::blocking(move || name_records(&database, manifest, &selection, &sender));

    let mut next = records.recv().await;
    if let Some(first) = &next {
        expect_not_erased(store, first).await?;
        progress.accepted();
    }
    progress.start(None);

    let mut report = RestoreReport::default();
    while let Some(named) = next {
        restore_one(store, &**claimed, named, &mut report).await?;
        progress.advance(1);
        next = records.recv().await;
    }
    let (found, damaged) = naming.await.map_err(|lost| Error::internal(RESTORING, lost))??;
    report.damaged_records = damaged;
    if found + damaged == 0 {
        return Err(Error::new(ErrorKind::NotFound, absent));
    }
    Ok(report)
}

/// Returns `Conflict` if the organization was erased after the snapshot, so that the run is refused before it is
/// accepted. [`put_back`] checks again for each file.
async fn expect_not_erased(store: &FileStore, named: &NamedRecord) -> Result<()> {
    let organization = &named.record.organization_id;
    if store.inner().metadata.is_erased_since(organization, named.era).await? {
        return Err(erased());
    }
    Ok(())
}

async fn restore_one(
    store: &FileStore,
    destination: &dyn Destination,
    named: NamedRecord,
    report: &mut RestoreReport,
) -> Result<()> {
    let NamedRecord { record, stored, era } = named;
    let metadata = &store.inner().metadata;
    if metadata.file(record.file_id, &Scope::All).await?.is_some() {
        report.present += 1;
        return Ok(());
    }

    let (file_id, blob) = (record.file_id, record.blob.clone());
    let expected = expected(blob.sha256, blob.size_bytes);
    let stored = stored.unwrap_or(Stored { expected, by: None });
    let problem = match destination.open(stored).await? {
        None => BlobProblem::Missing,
        Some(opened) => match put_back(store, record, opened.into_stream(), era).await {
            Ok(()) => {
                report.restored += 1;
                report.restored_bytes += blob.size_bytes;
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::DigestMismatch => BlobProblem::Wrong,
            Err(error) => return Err(error),
        },
    };
    report.failed += 1;
    note_fault(&mut report.faults, expected, Some(file_id), problem);
    Ok(())
}

/// A record to restore.
struct NamedRecord {
    record: FileRecord,
    /// The content, if the manifest has it.
    stored: Option<Stored>,
    /// The era in which the snapshot was taken.
    era: Era,
}

/// Sends the records to restore, each with its content if the manifest has it. Returns their number, and the
/// number of unreadable records. Blocks.
fn name_records(
    database: &DatabaseFile,
    mut manifest: Manifest,
    selection: &Selection,
    sender: &mpsc::Sender<NamedRecord>,
) -> Result<(u64, u64)> {
    let copy = SnapshotDatabase::open_foreign(&database.path)?;
    let era = copy.era()?;
    let (mut found, mut damaged) = (0, 0);
    let mut send = |record: FileRecord| {
        found += 1;
        let stored = manifest.find(record.blob.sha256)?;
        sender.blocking_send(NamedRecord { record, stored, era }).map_err(|_| broke_off())
    };

    match selection {
        Selection::File(file) => copy.file(*file)?.into_iter().try_for_each(send)?,
        Selection::Organization(organization) => {
            damaged = copy.each_of(organization, &mut send)?;
        }
    }
    Ok((found, damaged))
}
