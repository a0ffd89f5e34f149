//! Restoring files of a snapshot into a running store.
//!
//! A file comes back under its id, with its name, type and metadata, as a LOCAL file under a new key: a
//! key is written once. A file that the store still has is left as it is, deleted or not. Versions begin
//! where the snapshot had them.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::restore::broke_off;
use super::{Backups, blocking, expected, note_fault};
use crate::FileStore;
use crate::domain::backup::{BlobProblem, RestoreReport, Selection};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::SnapshotId;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::metadata::sqlite::SnapshotDatabase;
use crate::storage::ByteStream;
use crate::storage::backup::{BackupDirectory, Sharing};
use crate::tasks;
use crate::worker::progress::Progress;

const RESTORING: &str = "restoring files";

/// Bytes read at once.
const PIECE_BYTES: usize = 256 << 10;

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
        let claimed = backups.directory.claim(Sharing::Beside)?;
        let id = backups.pick(id).await?;
        let (sender, mut records) = mpsc::channel(AHEAD);
        let directory = claimed.clone();
        let naming = tasks::blocking(move || name_records(&directory, id, &selection, &sender));
        progress.accepted();
        progress.start(None);

        let mut report = RestoreReport::default();
        while let Some(record) = records.recv().await {
            self.restore_one(&claimed, record, &mut report).await?;
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
        directory: &BackupDirectory,
        record: FileRecord,
        report: &mut RestoreReport,
    ) -> Result<()> {
        let metadata = &self.inner().metadata;
        if metadata.file(record.file_id, &Scope::All).await?.is_some() {
            report.present += 1;
            return Ok(());
        }

        let (file_id, blob) = (record.file_id, record.blob.clone());
        let expected = expected(blob.sha256, blob.size_bytes);
        let directory = directory.clone();
        let opened = blocking(RESTORING, move || directory.open_blob(blob.sha256)).await?;
        let problem = match opened {
            None => BlobProblem::Missing,
            Some(file) => match self.put_back(record, pieces(file)).await {
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

/// Sends the records that are to be restored; returns how many they are, and how many more cannot be
/// read. Blocks.
fn name_records(
    directory: &BackupDirectory,
    id: SnapshotId,
    selection: &Selection,
    sender: &mpsc::Sender<FileRecord>,
) -> Result<(u64, u64)> {
    let (mut found, mut damaged) = (0, 0);
    let mut send = |record: FileRecord| {
        found += 1;
        sender.blocking_send(record).map_err(|_| broke_off())
    };

    let copy = SnapshotDatabase::open(&directory.database(id))?;
    match selection {
        Selection::File(file) => copy.file(*file)?.into_iter().try_for_each(send)?,
        Selection::Organization(organization) => {
            damaged = copy.each_of(organization, &mut send)?;
        }
    }
    Ok((found, damaged))
}

/// Streams a file of the snapshot.
fn pieces(file: File) -> ByteStream {
    Box::pin(futures_util::stream::try_unfold(file, |mut file| async move {
        blocking(RESTORING, move || {
            let mut piece = vec![0; PIECE_BYTES];
            let read = file.read(&mut piece).map_err(|error| Error::io(RESTORING, error))?;
            piece.truncate(read);
            Ok((read > 0).then(|| (Bytes::from(piece), file)))
        })
        .await
    }))
}
