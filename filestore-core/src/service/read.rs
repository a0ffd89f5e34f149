//! Reading: the record, and the bytes it points to.
//!
//! A record may change between its look-up and the opening of its blob (replaced, moved, purged).
//! [`Opened::Changed`] says so; the caller looks the record up again and decides anew. A blob that
//! is open is read to its end whatever happens to the record.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::FileStore;
use crate::domain::error::{Error, Result};
use crate::domain::id::FileId;
use crate::domain::record::FileRecord;
use crate::metadata::Scope;
use crate::storage::{LocalBlob, SmallOrOpen};

/// How often a read starts over because the record changed under it.
const READ_TRIES: usize = 4;

/// The bytes of a record, ready to be read.
#[derive(Debug)]
pub enum Opened {
    /// A range of at most 256 KiB, read already.
    Small(Bytes),
    /// On the local disk.
    Local(LocalBlob),
    /// The record points elsewhere by now: look it up again.
    Changed,
}

impl FileStore {
    /// The live file, from memory, if it happens to be there; see
    /// [`Metadata::cached_file`](crate::metadata::Metadata::cached_file). Also `None` for deleted files.
    pub fn cached_record(&self, id: FileId, scope: &Scope) -> Option<Arc<FileRecord>> {
        self.inner.metadata.cached_file(id, scope).filter(|record| !record.state.is_deleted())
    }

    /// The live file. `NotFound` for unknown, foreign and deleted ones alike.
    pub async fn record(&self, id: FileId, scope: &Scope) -> Result<Arc<FileRecord>> {
        if let Some(record) = self.cached_record(id, scope) {
            return Ok(record);
        }
        self.record_fresh(id, scope).await
    }

    pub(super) async fn record_fresh(&self, id: FileId, scope: &Scope) -> Result<Arc<FileRecord>> {
        match self.inner.metadata.file(id, scope).await? {
            Some(record) if !record.state.is_deleted() => Ok(record),
            _ => Err(Error::not_found("file")),
        }
    }

    /// The file, deleted or not, until the purge removed its record.
    pub async fn info(&self, id: FileId, scope: &Scope) -> Result<Arc<FileRecord>> {
        self.inner.metadata.file(id, scope).await?.ok_or_else(|| Error::not_found("file"))
    }

    /// Opens the bytes of `record`. `Internal` if they are missing although the record stands: that
    /// is a fault, never an answer. Never answers [`Opened::Small`].
    pub async fn open_content(&self, record: &FileRecord) -> Result<Opened> {
        match self.inner.local.open_blob(&record.blob.key, record.blob.size_bytes).await? {
            Some(blob) => Ok(Opened::Local(blob)),
            None => self.absent(record).await,
        }
    }

    /// As [`FileStore::open_content`], but a small `range` is read in the same visit to the disk.
    pub async fn read_content(&self, record: &FileRecord, range: Range<u64>) -> Result<Opened> {
        let blob = &record.blob;
        match self.inner.local.read_small(&blob.key, blob.size_bytes, range).await? {
            Some(SmallOrOpen::Small(bytes)) => Ok(Opened::Small(bytes)),
            Some(SmallOrOpen::Open(blob)) => Ok(Opened::Local(blob)),
            None => self.absent(record).await,
        }
    }

    async fn absent(&self, record: &FileRecord) -> Result<Opened> {
        let now = self.inner.metadata.file(record.file_id, &Scope::All).await?;
        match now {
            Some(now) if now.blob.key == record.blob.key && !now.state.is_deleted() => {
                Err(Error::internal("opening a file", format!("no bytes for file {}", record.file_id)))
            }
            _ => Ok(Opened::Changed),
        }
    }

    /// Looks a file up and opens it, starting over while it changes.
    pub async fn open_file(&self, id: FileId, scope: &Scope) -> Result<(Arc<FileRecord>, LocalBlob)> {
        for _ in 0..READ_TRIES {
            let record = self.record(id, scope).await?;
            match self.open_content(&record).await? {
                Opened::Local(blob) => return Ok((record, blob)),
                Opened::Small(_) | Opened::Changed => {}
            }
        }
        Err(Error::new(crate::ErrorKind::Conflict, "the file keeps changing"))
    }

    /// All bytes of a file, in memory.
    pub async fn read(&self, id: FileId, scope: &Scope) -> Result<Bytes> {
        let (_, blob) = self.open_file(id, scope).await?;
        blob.read().await
    }
}
