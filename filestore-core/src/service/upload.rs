//! Uploads, single and in an atomic batch.
//!
//! The bytes are staged and durable, then one transaction inserts the records (the commit point), then
//! each blob gets its final name (ARCHITECTURE.md, "An upload").

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::FileStore;
use super::commit::{NewFile, OneOrMore, ReplyShape, StagedFiles};
use super::request::{BatchItem, GivenName, NewBatch, NewUpload, Uploaded};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{BlobId, OrganizationId};
use crate::domain::record::FileRecord;
use crate::domain::reply::StoredReply;
use crate::domain::scope::Scope;
use crate::storage::{StagedBlob, StagingWriter};

/// Uploads in steps, for callers that receive bytes themselves; from [`FileStore::uploads`].
///
/// Bytes are staged first, in any order and at any pace; the commit makes them files. Staged bytes that
/// are dropped leave nothing behind.
///
/// ```
/// use filestore_core::uploads::Uploaded;
/// use filestore_core::{FileStore, NewUpload};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let store = FileStore::open(dir.path()).await?;
/// let mut writer = store.uploads().stage().await?;
/// writer.write("hello, ".into()).await?;
/// writer.write("world".into()).await?;
/// let staged = writer.finish().await?;
///
/// let new = NewUpload::new("42".parse()?, "gallery".parse()?);
/// match store.uploads().commit_upload(new, staged).await? {
///     Uploaded::New(record) => assert_eq!(record.blob.size_bytes, 12),
///     Uploaded::Replayed(_) => unreachable!("only uploads with an idempotency key are replayed"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Uploads<'a> {
    pub(super) store: &'a FileStore,
    organization: Option<&'a OrganizationId>,
}

impl FileStore {
    /// Returns the steps of an upload: staging, commit, reservations.
    pub fn uploads(&self) -> Uploads<'_> {
        Uploads { store: self, organization: None }
    }

    /// Uploads all of `reader` as one file. When it returns, bytes and record are durable.
    ///
    /// ```
    /// use filestore_core::{FileStore, NewUpload};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> filestore_core::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let store = FileStore::open(dir.path()).await?;
    /// let new = NewUpload::new("42".parse()?, "gallery".parse()?).with_name("hello.txt");
    /// let record = store.upload(new, &b"hello"[..]).await?;
    /// assert_eq!((record.blob.size_bytes, record.mime_type.as_str()), (5, "text/plain"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload(
        &self,
        new: NewUpload,
        reader: impl AsyncRead + Unpin,
    ) -> Result<FileRecord> {
        new.given.check(self.name_limit())?;
        let staged = self.uploads().of(&new.organization_id).stage_from(reader).await?;

        match self.uploads().commit_upload(new, staged).await? {
            Uploaded::New(record) => Ok(record),
            Uploaded::Replayed(reply) => self.recall(&reply).await,
        }
    }

    /// Uploads files that are in memory as a batch: all of them or none, at every instant, to every
    /// reader. The records come in the order of the files.
    ///
    /// ```no_run
    /// use filestore_core::uploads::GivenName;
    /// use filestore_core::{FileStore, NewBatch};
    ///
    /// # async fn example(store: &FileStore) -> filestore_core::Result<()> {
    /// let batch = NewBatch::new("42".parse()?, "gallery".parse()?);
    /// let files = [("front.jpg", &b"..."[..]), ("back.jpg", b"...")]
    ///     .map(|(name, bytes)| (GivenName::named(name), bytes.into()));
    /// let records = store.batch(batch, files).await?;
    /// assert_eq!(records.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn batch(
        &self,
        batch: NewBatch,
        files: impl IntoIterator<Item = (GivenName, Bytes)>,
    ) -> Result<Vec<FileRecord>> {
        let mut items = Vec::new();
        for (index, (given, bytes)) in (0..).zip(files) {
            let staged = self.uploads().of(&batch.organization_id).stage_bytes(bytes).await?;
            items.push((BatchItem::new(index).with_given(given), staged));
        }

        match self.uploads().commit_batch(batch, items).await? {
            Uploaded::New(records) => Ok(records),
            Uploaded::Replayed(reply) => {
                let mut records = Vec::with_capacity(reply.file_ids().len());
                for id in reply.file_ids() {
                    records.push((*self.info(*id, &Scope::All).await?).clone());
                }
                Ok(records)
            }
        }
    }

    /// Returns the record as it is now of an upload that was made before.
    async fn recall(&self, reply: &StoredReply) -> Result<FileRecord> {
        let Some(id) = reply.file_ids().first() else {
            return Err(Error::internal("reading a stored reply", "it names no file"));
        };
        let record = self.info(*id, &Scope::All).await?;
        Ok((*record).clone())
    }

    pub(super) fn name_limit(&self) -> usize {
        self.inner.config().limits.original_name_chars
    }
}

impl<'a> Uploads<'a> {
    /// Counts what is staged for `organization` as its own from the first byte. Otherwise it counts for
    /// all from the first byte, and for its organization from the commit.
    #[must_use]
    pub fn of(self, organization: &'a OrganizationId) -> Self {
        Self { organization: Some(organization), ..self }
    }
}

impl Uploads<'_> {
    /// Begins to receive the bytes of a file: at most [`Limits::max_file_size`] of them. `Busy` while as
    /// much is staged without a commit as may be ([`Limits::staged_bytes`] and its neighbours).
    ///
    /// [`Limits::staged_bytes`]: crate::domain::config::Limits::staged_bytes
    /// [`Limits::max_file_size`]: crate::domain::config::Limits::max_file_size
    pub async fn stage(self) -> Result<StagingWriter> {
        self.stage_up_to(self.store.inner.config().limits.max_file_size).await
    }

    /// Begins to receive at most `max_bytes` (what is left of a batch, say), never more than the
    /// limit of a file.
    pub async fn stage_up_to(self, max_bytes: u64) -> Result<StagingWriter> {
        let inner = &self.store.inner;
        let max = max_bytes.min(inner.config().limits.max_file_size);
        let share = inner.staged.begin(self.organization)?;
        let writer = inner.stores.local().stage(BlobId::generate(inner.now()), max).await?;
        Ok(writer.counted_in(share))
    }

    /// Receives all of `reader` and makes it durable in staging.
    pub async fn stage_from(self, mut reader: impl AsyncRead + Unpin) -> Result<StagedBlob> {
        let mut writer = self.stage().await?;
        let mut buffer = BytesMut::with_capacity(64 << 10);

        loop {
            buffer.reserve(64 << 10);
            let read = reader.read_buf(&mut buffer).await.map_err(|error| {
                Error::new(ErrorKind::MalformedBody, "the source cannot be read").with_source(error)
            })?;
            if read == 0 {
                return writer.finish().await;
            }
            writer.write(buffer.split().freeze()).await?;
        }
    }

    /// Receives bytes that are in memory.
    pub async fn stage_bytes(self, bytes: Bytes) -> Result<StagedBlob> {
        let mut writer = self.stage().await?;
        writer.write(bytes).await?;
        writer.finish().await
    }

    /// Makes a file of staged bytes. `DigestMismatch` leaves nothing behind, and `SignatureUsed` if the
    /// permit of the upload was spent before.
    pub async fn commit_upload(
        self,
        new: NewUpload,
        staged: StagedBlob,
    ) -> Result<Uploaded<FileRecord>> {
        new.given.check(self.store.name_limit())?;
        if new.sha256.is_some_and(|sum| sum != staged.sha256) {
            let message = "the bytes do not have the given sha256";
            return Err(Error::new(ErrorKind::DigestMismatch, message).with_field("sha256"));
        }

        let files = StagedFiles {
            organization_id: new.organization_id,
            sub_system: new.sub_system,
            temp: new.temp,
            files: OneOrMore::one(NewFile {
                index: None,
                given: new.given,
                metadata: new.metadata,
                bytes: staged,
            }),
            reply: ReplyShape::Record,
            permit: new.permit,
        };
        Ok(match self.store.commit(files, new.idempotency).await? {
            Uploaded::New(records) => Uploaded::New(records.first),
            Uploaded::Replayed(reply) => Uploaded::Replayed(reply),
        })
    }

    /// Makes files of staged bytes: all of them or none, at every instant, to every reader.
    pub async fn commit_batch(
        self,
        batch: NewBatch,
        mut items: Vec<(BatchItem, StagedBlob)>,
    ) -> Result<Uploaded<Vec<FileRecord>>> {
        self.check_batch(&items)?;
        items.sort_by_key(|(item, _)| item.index);
        let files = items.into_iter().map(|(item, bytes)| NewFile {
            index: Some(item.index),
            given: item.given,
            metadata: item.metadata,
            bytes,
        });
        let Some(files) = OneOrMore::from_iter(files) else { return Err(empty_batch()) };

        let files = StagedFiles {
            organization_id: batch.organization_id,
            sub_system: batch.sub_system,
            temp: false,
            files,
            reply: ReplyShape::List,
            permit: None,
        };
        Ok(match self.store.commit(files, batch.idempotency).await? {
            Uploaded::New(records) => Uploaded::New(records.into_vec()),
            Uploaded::Replayed(reply) => Uploaded::Replayed(reply),
        })
    }

    fn check_batch(self, items: &[(BatchItem, StagedBlob)]) -> Result<()> {
        if items.is_empty() {
            return Err(empty_batch());
        }

        let limits = self.store.inner.config().limits;
        if items.len() > limits.max_batch_items {
            let message = format!("a batch has at most {} items", limits.max_batch_items);
            return Err(Error::new(ErrorKind::TooManyItems, message)
                .with_limit(limits.max_batch_items as u64));
        }

        let total: u64 = items.iter().map(|(_, staged)| staged.size_bytes).sum();
        if total > limits.max_batch_size {
            let message = format!("a batch is at most {} bytes", limits.max_batch_size);
            return Err(Error::new(ErrorKind::TooLarge, message).with_limit(limits.max_batch_size));
        }

        for (item, _) in items {
            item.given
                .check(self.store.name_limit())
                .map_err(|error| error.with_item(item.index))?;
        }
        Ok(())
    }
}

fn empty_batch() -> Error {
    Error::new(ErrorKind::MissingField, "a batch needs at least one item").with_field("items")
}
