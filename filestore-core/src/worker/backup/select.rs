//! Restoring files of a snapshot into a running store.
//!
//! A file comes back under its id, with its name, type and metadata, as a LOCAL file under a new key: a
//! key is written once. A file that the store still has is left as it is, deleted or not. Versions begin
//! where the snapshot had them.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::restore::broke_off;
use super::{Backups, expected, note_fault};
use crate::FileStore;
use crate::domain::backup::{BlobProblem, RestoreReport, Selection};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::SnapshotId;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::metadata::sqlite::SnapshotDatabase;
use crate::storage::backup::{DatabaseFile, Destination, Manifest, RunKind, Stored};
use crate::tasks;
use crate::worker::progress::Progress;

const RESTORING: &str = "restoring files";

/// Pieces and records that wait to be taken.
const AHEAD: usize = 2;

impl FileStore {
    /// Restores a part of a snapshot; see [`Admin::restore`](crate::worker::Admin::restore).
    pub(in crate::worker) async fn restore_selected(
        &self,
        backups: &Backups,
        id: Option<SnapshotId>,
        selection: Selection,
        progress: Arc<dyn Progress>,
    ) -> Result<RestoreReport> {
        let claimed = backups.claim_for(RunKind::Restore).await?;
        let restored = match backups.pick(id).await {
            Ok(id) => self.restore_from(&claimed, id, selection, progress).await,
            Err(error) => Err(error),
        };
        claimed.release().await;
        restored
    }

    async fn restore_from(
        &self,
        claimed: &Arc<dyn Destination>,
        id: SnapshotId,
        selection: Selection,
        progress: Arc<dyn Progress>,
    ) -> Result<RestoreReport> {
        let scratch = self.data_dir().scratch();
        let database = claimed.database_file(id, &scratch).await?;
        let manifest = claimed.manifest(id).await?;
        let (sender, mut records) = mpsc::channel(AHEAD);
        let naming =
            tasks::blocking(move || name_records(&database, manifest, &selection, &sender));
        progress.accepted();
        progress.start(None);

        let mut report = RestoreReport::default();
        while let Some((record, stored)) = records.recv().await {
            self.restore_one(&**claimed, record, stored, &mut report).await?;
            progress.advance(1);
        }
        let (found, damaged) = naming.await.map_err(|lost| Error::internal(RESTORING, lost))??;
        report.damaged_records = damaged;
        if found + damaged == 0 {
            return Err(Error::not_found("the file in the snapshot"));
        }
        Ok(report)
    }

    async fn restore_one(
        &self,
        destination: &dyn Destination,
        record: FileRecord,
        stored: Option<Stored>,
        report: &mut RestoreReport,
    ) -> Result<()> {
        let metadata = &self.inner().metadata;
        if metadata.file(record.file_id, &Scope::All).await?.is_some() {
            report.present += 1;
            return Ok(());
        }

        let (file_id, blob) = (record.file_id, record.blob.clone());
        let expected = expected(blob.sha256, blob.size_bytes);
        let stored = stored.unwrap_or(Stored { expected, by: None });
        let problem = match destination.open(stored).await? {
            None => BlobProblem::Missing,
            Some(opened) => match self.put_back(record, opened.into_stream()).await {
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
}

/// Sends the records that are to be restored, each with its content if the manifest has it; returns how many
/// they are, and how many more cannot be read. Blocks.
fn name_records(
    database: &DatabaseFile,
    mut manifest: Manifest,
    selection: &Selection,
    sender: &mpsc::Sender<(FileRecord, Option<Stored>)>,
) -> Result<(u64, u64)> {
    let (mut found, mut damaged) = (0, 0);
    let mut send = |record: FileRecord| {
        found += 1;
        let stored = manifest.find(record.blob.sha256)?;
        sender.blocking_send((record, stored)).map_err(|_| broke_off())
    };

    let copy = SnapshotDatabase::open(&database.path)?;
    match selection {
        Selection::File(file) => copy.file(*file)?.into_iter().try_for_each(send)?,
        Selection::Organization(organization) => {
            damaged = copy.each_of(organization, &mut send)?;
        }
    }
    Ok((found, damaged))
}
