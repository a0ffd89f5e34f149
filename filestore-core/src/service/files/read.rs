//! Reads records, and the bytes that they refer to.
//!
//! A record can change between its look-up and the opening of its blob, for example by a replace, a move or a
//! purge. In this case, the result is [`Opened::Changed`]. The caller then looks up the record again and
//! decides again. Once a blob is open, it can be read to its end, even if the record changes.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, StreamExt};

use super::Files;
use super::content_reader::ContentReader;
use crate::domain::access::scope::Scope;
use crate::domain::access::signed_url::{SignFile, SignedUrl};
use crate::domain::error::{Error, Result};
use crate::domain::file::record::FileRecord;
use crate::domain::id::FileId;
use crate::service::Inner;
use crate::service::retry::retry_if_changed;
use crate::storage::{BlobRead, ByteStream, LocalBlob};

/// The maximum number of attempts before `Conflict`. A read starts over if its record changed.
const READS: usize = 4;

/// A record's bytes, ready to be read; from [`ServedFiles::open`](crate::ServedFiles::open).
pub enum Opened {
    /// A range of at most 256 KiB, already in memory.
    Small(Bytes),
    /// An open file on the local disk.
    Local(LocalBlob),
    /// The requested bytes as a stream from the provider. A stream that is too short ends with an error.
    Remote(ByteStream),
    /// The record now refers to other bytes. Look up the record again.
    Changed,
}

impl Files<'_> {
    /// Returns the record of a live file. Use [`info`](Self::info) if the file may be deleted.
    ///
    /// `NotFound` for an unknown id, a file outside the scope and a deleted file.
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let record = store.scoped(&Scope::All).record(id).await?;
    /// println!("{}: {} bytes", record.original_name, record.blob.size_bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn record(self, id: FileId) -> Result<Arc<FileRecord>> {
        match self.store.inner.metadata.cached_file(id, self.scope) {
            Some(record) if !record.state.is_deleted() => Ok(record),
            _ => self.record_fresh(id).await,
        }
    }

    pub(super) async fn record_fresh(self, id: FileId) -> Result<Arc<FileRecord>> {
        match self.store.inner.metadata.file(id, self.scope).await? {
            Some(record) if !record.state.is_deleted() => Ok(record),
            _ => Err(Error::not_found("file")),
        }
    }

    /// Returns a file's record, deleted or not, until the purge removes the record. Use
    /// [`record`](Self::record) if you need the content, which a deleted file does not show.
    ///
    /// `NotFound` for an unknown id and a file outside the scope.
    pub async fn info(self, id: FileId) -> Result<Arc<FileRecord>> {
        let record = self.store.inner.metadata.file(id, self.scope).await?;
        record.ok_or_else(|| Error::not_found("file"))
    }

    /// Reads the whole content into memory. For a file that can be large, use [`open`](Self::open).
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let bytes = store.scoped(&Scope::All).read(id).await?;
    /// println!("{} bytes", bytes.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read(self, id: FileId) -> Result<Bytes> {
        let (record, mut bytes) = self.open(id, None).await?;
        let mut all = BytesMut::with_capacity(usize::try_from(record.blob.size_bytes).unwrap_or(0));
        while let Some(some) = bytes.next().await {
            all.extend_from_slice(&some?);
        }
        Ok(all.freeze())
    }

    /// Looks up a file and opens its content as a stream: the bytes in `range`, or all bytes without a range.
    /// A range beyond the end is cut. The call starts over if the file changes before the stream is open. For
    /// a small file, use [`read`](Self::read).
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let (record, stream) = store.scoped(&Scope::All).open(id, Some(0..1024)).await?;
    /// println!("the first bytes of {}", record.original_name);
    /// # drop(stream);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open(
        self,
        id: FileId,
        range: Option<Range<u64>>,
    ) -> Result<(Arc<FileRecord>, ByteStream)> {
        let wanted = &range;
        self.with_record(id, |record| async move {
            let size = record.blob.size_bytes;
            let range =
                wanted.clone().map_or(0..size, |range| range.start.min(size)..range.end.min(size));

            let bytes = match self.store.inner.open_range(&record, range.clone()).await? {
                Opened::Small(bytes) => stream::once(async { Ok(bytes) }).boxed(),
                Opened::Local(blob) => blob.into_stream(range).boxed(),
                Opened::Remote(bytes) => bytes,
                Opened::Changed => return Ok(None),
            };

            Ok(Some((record, bytes)))
        })
        .await
    }

    /// Opens the content of a file as an [`AsyncRead`](tokio::io::AsyncRead), otherwise like [`open`](Self::open). The
    /// reader is also an [`AsyncBufRead`](tokio::io::AsyncBufRead), which lends the bytes without a copy.
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// use tokio::io::AsyncReadExt;
    ///
    /// # async fn example(store: &FileStore, id: FileId) -> Result<(), Box<dyn std::error::Error>> {
    /// let (_, mut reader) = store.scoped(&Scope::All).reader(id, None).await?;
    /// let mut text = String::new();
    /// reader.read_to_string(&mut text).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reader(
        self,
        id: FileId,
        range: Option<Range<u64>>,
    ) -> Result<(Arc<FileRecord>, ContentReader)> {
        let (record, bytes) = self.open(id, range).await?;
        Ok((record, ContentReader::new(bytes)))
    }

    /// Signs a URL to read a file. The call does not check that the file has the requested variant.
    ///
    /// Returns `NotFound` for an unknown id, a file outside the scope and a deleted file. Returns
    /// `InvalidField` for an animated variant if animated variants are switched off.
    ///
    /// ```no_run
    /// use filestore_core::signing::SignFile;
    /// use filestore_core::{FileId, FileStore, Scope};
    ///
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let url = store.scoped(&Scope::All).sign(id, &SignFile::content()).await?;
    /// println!("{}", url.path_and_query);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign(self, id: FileId, request: &SignFile) -> Result<SignedUrl> {
        // A malformed request is refused before the file is looked up.
        request.life()?;
        request.target(id)?;
        self.store.inner.expect_motion(request.motion)?;
        self.record(id).await?;
        self.store.signing().read_url(id, request).await
    }

    /// Looks up a file and calls `attempt` with its record. If the record changed, `attempt` returns `None`,
    /// and the call starts over. `Conflict` if the record keeps changing.
    pub(super) async fn with_record<T, E, F>(
        self,
        id: FileId,
        attempt: impl Fn(Arc<FileRecord>) -> F,
    ) -> Result<T, E>
    where
        E: From<Error>,
        F: Future<Output = Result<Option<T>, E>>,
    {
        retry_if_changed("the file", READS, || async { attempt(self.record(id).await?).await })
            .await
    }
}

impl Inner {
    /// Opens all bytes of `record` as an open file if they are on the local disk. Decoders need a file, even
    /// for few bytes. Never returns [`Opened::Small`].
    pub(super) async fn open_whole(&self, record: &FileRecord) -> Result<Opened> {
        let blob = &record.blob;
        match self.stores.disk(&blob.provider) {
            Some(disk) => {
                let opened = disk.open_blob(&blob.key, blob.size_bytes).await?;
                self.opened(record, opened.map(BlobRead::File)).await
            }
            None => self.open_range(record, 0..blob.size_bytes).await,
        }
    }

    /// Opens the bytes of `record` in `range`. A small range is read in the same disk operation.
    pub(super) async fn open_range(
        &self,
        record: &FileRecord,
        range: Range<u64>,
    ) -> Result<Opened> {
        let blob = &record.blob;
        let holder = self.stores.holder(&blob.provider)?;
        self.opened(record, holder.read(&blob.key, blob.size_bytes, range).await?).await
    }

    async fn opened(&self, record: &FileRecord, read: Option<BlobRead>) -> Result<Opened> {
        match read {
            Some(BlobRead::Small(bytes)) => Ok(Opened::Small(bytes)),
            Some(BlobRead::File(blob)) => Ok(Opened::Local(blob)),
            Some(BlobRead::Stream(bytes)) => Ok(Opened::Remote(bytes)),
            None => self.absent(record).await,
        }
    }

    async fn absent(&self, record: &FileRecord) -> Result<Opened> {
        let now = self.metadata.file(record.file_id, &Scope::All).await?;
        match now {
            Some(now) if now.blob.key == record.blob.key && !now.state.is_deleted() => Err(
                Error::internal("opening a file", format!("no bytes for file {}", record.file_id)),
            ),
            _ => Ok(Opened::Changed),
        }
    }
}
