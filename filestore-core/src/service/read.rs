//! Reading: the record, and the bytes it points to.
//!
//! A record may change between its look-up and the opening of its blob (replaced, moved, purged).
//! [`Opened::Changed`] says so; the caller looks the record up again and decides anew. A blob that
//! is open is read to its end whatever happens to the record.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, StreamExt};

use super::FileStore;
use super::settled::until_settled;
use crate::domain::disposition::Disposition;
use crate::domain::error::{Error, Result};
use crate::domain::id::FileId;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::domain::serving;
use crate::domain::status::Location;
use crate::storage::cloud::{PresignMethod, PresignRequest};
use crate::storage::{BlobRead, ByteStream, LocalBlob, SendFile};

/// Times a read is attempted before it ends in `Conflict`; one whose record changed under it starts
/// over.
const READS: usize = 4;

/// The bytes of a record, ready to be read.
pub enum Opened {
    /// A range of at most 256 KiB, read already.
    Small(Bytes),
    /// An open file on the local disk.
    Local(LocalBlob),
    /// The requested bytes, from the provider that holds them. The stream ends with an error rather
    /// than short.
    Remote(ByteStream),
    /// The record points elsewhere by now: look it up again.
    Changed,
}

impl FileStore {
    /// Returns the live file from memory, if it happens to be there; see
    /// [`Files::cached_file`](crate::metadata::Files::cached_file). Also `None` for deleted files.
    pub fn cached_record(&self, id: FileId, scope: &Scope) -> Option<Arc<FileRecord>> {
        self.inner.metadata.cached_file(id, scope).filter(|record| !record.state.is_deleted())
    }

    /// Looks up the live file. `NotFound` for unknown, foreign and deleted ones alike.
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

    /// Looks up the file, deleted or not, until the purge removed its record.
    pub async fn info(&self, id: FileId, scope: &Scope) -> Result<Arc<FileRecord>> {
        self.inner.metadata.file(id, scope).await?.ok_or_else(|| Error::not_found("file"))
    }

    /// Opens all bytes of `record`. `Internal` if they are missing although the record stands: that
    /// is a fault, never an answer. `ProviderUnavailable` if their provider does not give them. Never
    /// answers [`Opened::Small`].
    pub async fn open_content(&self, record: &FileRecord) -> Result<Opened> {
        let blob = &record.blob;
        match self.inner.stores.disk(&blob.provider) {
            // As an open file, however small: decoders need one.
            Some(disk) => {
                let opened = disk.open_blob(&blob.key, blob.size_bytes).await?;
                self.opened(record, opened.map(BlobRead::File)).await
            }
            None => self.read_content(record, 0..blob.size_bytes).await,
        }
    }

    /// Opens a range as [`FileStore::open_content`] opens all bytes; a small range is read in the
    /// same visit to the disk.
    pub async fn read_content(&self, record: &FileRecord, range: Range<u64>) -> Result<Opened> {
        let blob = &record.blob;
        let holder = self.inner.stores.holder(&blob.provider)?;
        self.opened(record, holder.read(&blob.key, blob.size_bytes, range).await?).await
    }

    /// Returns `range` of the bytes of `record` for the kernel to send to a socket, if they are on the service's own
    /// disk and their file is open or can be opened at once. `None`: see [`FileStore::read_content`].
    pub fn send_file(&self, record: &FileRecord, range: Range<u64>) -> Option<SendFile> {
        let blob = &record.blob;
        self.inner.stores.disk(&blob.provider)?.send_file(&blob.key, blob.size_bytes, range)
    }

    async fn opened(&self, record: &FileRecord, read: Option<BlobRead>) -> Result<Opened> {
        match read {
            Some(BlobRead::Small(bytes)) => Ok(Opened::Small(bytes)),
            Some(BlobRead::File(blob)) => Ok(Opened::Local(blob)),
            Some(BlobRead::Stream(bytes)) => Ok(Opened::Remote(bytes)),
            None => self.absent(record).await,
        }
    }

    /// Makes a presigned URL for a request with `method` to the bytes of `record`, if its provider
    /// can make one that grants no more than that. `None`: serve the bytes. `ProviderUnavailable`
    /// for a provider that is gone from the configuration.
    pub async fn redirect(
        &self,
        record: &FileRecord,
        method: PresignMethod,
        requested: Option<Disposition>,
    ) -> Result<Option<String>> {
        if record.state.location() == Location::Local {
            return Ok(None);
        }

        let blob = &record.blob;
        let cloud = self.providers().cloud(&blob.provider)?.clone();

        let how = serving::decide(&record.mime_type, blob.sniffed_type.as_deref(), requested);
        let stored = serving::decide(&record.mime_type, blob.sniffed_type.as_deref(), None);

        let can = cloud.capabilities();
        // An object keeps the name and type that its file had when the object was made.
        let key_made_at = blob.key.blob_id().made_at();
        let is_current = record.edited_at.is_none_or(|at| at < key_made_at);
        let is_stored = can.stores_disposition && how == stored && is_current;
        let disposition = how.disposition.to_value(&record.original_name);
        let request = PresignRequest {
            method,
            expires_in: self.inner.config().presign_ttl,
            content_type: &how.content_type,
            // What the object was stored with needs no saying where it cannot be said.
            disposition: (can.overrides_disposition || !is_stored).then_some(&*disposition),
        };

        Ok(cloud.presign(&blob.key, &request).await?.map(|presigned| presigned.url))
    }

    async fn absent(&self, record: &FileRecord) -> Result<Opened> {
        let now = self.inner.metadata.file(record.file_id, &Scope::All).await?;
        match now {
            Some(now) if now.blob.key == record.blob.key && !now.state.is_deleted() => Err(
                Error::internal("opening a file", format!("no bytes for file {}", record.file_id)),
            ),
            _ => Ok(Opened::Changed),
        }
    }

    /// Looks a file up and opens `range` of it (all, if `None`), starting over while it changes. A range
    /// beyond the file's end is cut.
    pub async fn open_file(
        &self,
        id: FileId,
        scope: &Scope,
        range: Option<Range<u64>>,
    ) -> Result<(Arc<FileRecord>, ByteStream)> {
        let wanted = &range;
        self.with_record(id, scope, |record| async move {
            let size = record.blob.size_bytes;
            let range =
                wanted.clone().map_or(0..size, |range| range.start.min(size)..range.end.min(size));

            let bytes = match self.read_content(&record, range.clone()).await? {
                Opened::Small(bytes) => stream::once(async { Ok(bytes) }).boxed(),
                Opened::Local(blob) => blob.into_stream(range).boxed(),
                Opened::Remote(bytes) => bytes,
                Opened::Changed => return Ok(None),
            };

            Ok(Some((record, bytes)))
        })
        .await
    }

    /// Looks a file up and lets `attempt` work on its record, starting over while the record changes:
    /// then an attempt returns `None`. `Conflict` if it keeps changing.
    pub async fn with_record<T, E, F>(
        &self,
        id: FileId,
        scope: &Scope,
        attempt: impl Fn(Arc<FileRecord>) -> F,
    ) -> Result<T, E>
    where
        E: From<Error>,
        F: Future<Output = Result<Option<T>, E>>,
    {
        until_settled("the file", READS, || async { attempt(self.record(id, scope).await?).await })
            .await
    }

    /// Reads all bytes of a file into memory.
    pub async fn read(&self, id: FileId, scope: &Scope) -> Result<Bytes> {
        let (record, mut bytes) = self.open_file(id, scope, None).await?;
        let mut all = BytesMut::with_capacity(usize::try_from(record.blob.size_bytes).unwrap_or(0));
        while let Some(some) = bytes.next().await {
            all.extend_from_slice(&some?);
        }
        Ok(all.freeze())
    }
}
