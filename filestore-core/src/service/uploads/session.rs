//! The session of an upload: its claims, its bytes and its commit.
//!
//! # Purpose
//! Server, command line and applications all upload this way. So the order of claims, bytes and commit is
//! decided once, here and in [`claims`](super::claims).
//!
//! A session owns what it needs and borrows nothing: it can outlive the request, the connection or the task
//! that began it. Its claims are values ([`UploadClaims`], [`ReplacementClaims`]) that can be taken again
//! after the process has ended. One writer at a time has it, and the commit consumes it.
//!
//! # Cancellation
//! A session that is dropped before its commit leaves nothing: its claims are given back, its bytes discarded.
//! If a `write` is cancelled or fails, its file cannot be committed. For a cancelled commit, see
//! [`commit`](super::commit).

mod commits;

use std::fmt;
use std::mem;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::claims::{ClaimGuards, ReplacementClaims, UploadClaims};
use super::whole_files::WholeFiles;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::BlobId;
use crate::domain::report::erasure::Era;
use crate::metadata::FinishUpload;
use crate::service::FileStore;
use crate::storage::{Holder, StagedBlob, StagingWriter};

/// The bytes that may arrive before their room is reserved, and the step in which the room grows.
/// Announced bytes are reserved before.
const FIRST_BYTES: u64 = 64 << 10;
const STEP_BYTES: u64 = 1 << 20;

/// The number of the file of an upload that is no batch.
const ONLY: u32 = 0;

/// An upload under way: claims, then bytes, then one commit. From [`Uploads::begin`](super::upload::Uploads::begin).
///
/// A session uploads one file ([`commit`](Self::commit)), a batch ([`commit_batch`](Self::commit_batch)), or new
/// bytes for a file ([`commit_replacement`](Self::commit_replacement)). For example, an upload that is safe to
/// send twice:
///
/// ```
/// use filestore_core::uploads::{IdempotencyKey, UploadClaims, Uploaded};
/// use filestore_core::{FileStore, NewUpload};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let store = FileStore::open(dir.path()).await?;
/// let claims = UploadClaims::new("42".parse()?)
///     .with_idempotency(IdempotencyKey::new("", "order-17")?);
///
/// let mut session = store.uploads().begin(claims).await?;
/// session.write("hello, ".into()).await?;
/// session.write("world".into()).await?;
///
/// let new = NewUpload::new("42".parse()?, "gallery".parse()?).with_name("hello.txt");
/// match session.commit(new).await? {
///     Uploaded::New(record) => assert_eq!(record.blob.size_bytes, 12),
///     Uploaded::Replayed(reply) => println!("already stored: {:?}", reply.file_ids()),
/// }
/// # Ok(())
/// # }
/// ```
///
/// A batch names each file by the number of its item:
///
/// ```
/// # use filestore_core::uploads::{UploadClaims, Uploaded};
/// # use filestore_core::{BatchItem, FileStore, NewBatch};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let store = FileStore::open(dir.path()).await?;
/// let mut session = store.uploads().begin(UploadClaims::new("42".parse()?)).await?;
/// for (item, text) in [(0, "front"), (1, "back")] {
///     session.begin_item(item).await?;
///     session.write(text.into()).await?;
/// }
/// let batch = NewBatch::new("42".parse()?, "gallery".parse()?);
/// let items = vec![BatchItem::new(0), BatchItem::new(1)];
/// let Uploaded::New(records) = session.commit_batch(batch, items).await? else { unreachable!() };
/// assert_eq!(records.len(), 2);
/// # Ok(())
/// # }
/// ```
///
/// # What it holds
/// From [`claim`](Self::claim) on, other uploads with the same idempotency key or the same permit are refused, and
/// the announced bytes count for the quota. If you drop a session, all of this ends, and the bytes are discarded.
/// The commit asks for everything again, in one transaction with the records.
#[must_use = "a drop ends the upload and discards its bytes"]
pub struct UploadSession {
    store: FileStore,
    /// The holder of the bytes that arrive from now on.
    holder: Holder,
    /// The era in which the upload began.
    era: Era,
    claims: Option<Claims>,
    guards: ClaimGuards,
    incoming: Option<Incoming>,
    whole: WholeFiles,
    /// The shape of the session, from its first file on.
    shape: Option<Shape>,
    /// The resumable upload that the commit finishes.
    upload: Option<FinishUpload>,
}

/// The files that a session can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    OneFile,
    Batch,
}

/// The claims of a session.
#[derive(Debug)]
enum Claims {
    Upload(UploadClaims),
    Replacement(ReplacementClaims),
}

/// A file that is being received.
struct Incoming {
    /// The item's number in its batch.
    item: Option<u32>,
    writer: StagingWriter,
    /// The most bytes of its batch, if these leave fewer than a file may have.
    batch_limit: Option<u64>,
    /// The number of received bytes at which the room grows.
    ask_at: u64,
    /// False while a write runs, and after one that failed or was dropped: then bytes can be missing.
    is_sound: bool,
}

impl fmt::Debug for UploadSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UploadSession")
            .field("claims", &self.claims)
            .field("received_bytes", &self.received_bytes())
            .finish_non_exhaustive()
    }
}

impl UploadSession {
    /// Begins without claims.
    pub(super) fn new(store: FileStore, holder: Holder, era: Era) -> Self {
        Self {
            store,
            holder,
            era,
            claims: None,
            guards: ClaimGuards::default(),
            incoming: None,
            whole: WholeFiles::default(),
            shape: None,
            upload: None,
        }
    }

    /// Takes the claims of a new upload, once: of a session that began without, as soon as the organization is
    /// known. Bytes that have arrived already count.
    ///
    /// `IdempotencyInProgress` while an upload with the same key runs; `SignatureUsed` if an upload with the
    /// permit was made or runs; `SignatureInvalid` if the organization was erased after the URL was signed;
    /// `QuotaExceeded` if there is no room. They are checked in this order. A repeat of an upload under the same
    /// key needs neither permit nor room. `TooLarge` if more bytes have arrived than the claims allow.
    pub async fn claim(&mut self, claims: UploadClaims) -> Result<()> {
        self.expect_unclaimed()?;
        if let Some(max) = claims.max_bytes.filter(|max| self.received_bytes() > *max) {
            let message = format!("the file has more bytes than {max}");
            return Err(Error::new(ErrorKind::TooLarge, message)
                .with_field("file")
                .with_limit(max));
        }
        self.guards = claims.take(&self.store, Some(self.received_bytes())).await?;
        self.holder = Holder::Organization(claims.organization_id.clone());
        self.claims = Some(Claims::Upload(claims));
        Ok(())
    }

    /// Takes the claims of a replacement, once, for a file of `scope`.
    ///
    /// `NotFound` for unknown, foreign and deleted files; `PreconditionFailed` if a condition does not hold;
    /// `QuotaExceeded` if there is no room for the bytes that the file gets in addition.
    pub async fn claim_replacement(
        &mut self,
        claims: ReplacementClaims,
        scope: &Scope,
    ) -> Result<()> {
        self.expect_unclaimed()?;
        let received = Some(self.received_bytes());
        let (organization, guards) = claims.take(&self.store, scope, received).await?;
        (self.guards, self.holder) = (guards, Holder::Organization(organization));
        self.claims = Some(Claims::Replacement(claims));
        Ok(())
    }

    /// Takes the claims of an upload whose room is reserved elsewhere. Errors as [`claim`](Self::claim).
    pub(super) async fn claim_without_room(&mut self, claims: UploadClaims) -> Result<()> {
        self.expect_unclaimed()?;
        self.guards = claims.take(&self.store, None).await?;
        self.claims = Some(Claims::Upload(claims));
        Ok(())
    }

    /// Takes the claims of a replacement whose room is reserved elsewhere. Errors as
    /// [`claim_replacement`](Self::claim_replacement).
    pub(super) async fn claim_replacement_without_room(
        &mut self,
        claims: ReplacementClaims,
        scope: &Scope,
    ) -> Result<()> {
        self.expect_unclaimed()?;
        (_, self.guards) = claims.take(&self.store, scope, None).await?;
        self.claims = Some(Claims::Replacement(claims));
        Ok(())
    }

    /// Takes the bytes of a resumable upload, which the commit finishes with `end`.
    pub(super) fn with_whole_upload(mut self, blob: StagedBlob, end: FinishUpload) -> Self {
        self.whole.adopt(ONLY, blob);
        self.shape = Some(Shape::OneFile);
        self.upload = Some(end);
        self
    }

    fn expect_unclaimed(&self) -> Result<()> {
        if self.claims.is_none() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Conflict, "a session takes its claims once"))
    }
}

impl UploadSession {
    /// Begins the file of an upload or a replacement. The first [`write`](Self::write) does this by itself, so
    /// only an empty file needs this call.
    ///
    /// `Busy` while as many bytes are staged without a commit as may be ([`Limits::staged_bytes`] and its
    /// neighbours).
    ///
    /// [`Limits::staged_bytes`]: crate::Limits::staged_bytes
    pub async fn begin_file(&mut self) -> Result<()> {
        self.open(None, u64::MAX).await
    }

    /// Begins the file of the item `index` of a batch, and ends the one before. The files can come in any order
    /// of their numbers. `Busy` as [`begin_file`](Self::begin_file).
    pub async fn begin_item(&mut self, index: u32) -> Result<()> {
        self.end_file().await?;
        let max = self.store.inner.config().limits.max_batch_size;
        self.open(Some(index), max.saturating_sub(self.received_bytes())).await
    }

    async fn open(&mut self, item: Option<u32>, max_bytes: u64) -> Result<()> {
        let number = item.unwrap_or(ONLY);
        if self.incoming.is_some() {
            let message = "an upload that is no batch has one file";
            return Err(Error::invalid("file", message));
        }
        self.whole.expect_new(number)?;
        self.expect_shape(if item.is_some() { Shape::Batch } else { Shape::OneFile })?;

        let inner = &self.store.inner;
        let limits = inner.config().limits;
        let claimed = match &self.claims {
            Some(Claims::Upload(claims)) => claims.max_bytes.unwrap_or(u64::MAX),
            Some(Claims::Replacement(_)) | None => u64::MAX,
        };
        let max = max_bytes.min(claimed).min(limits.max_file_size);
        let is_batch_s = item.is_some() && max < limits.max_file_size;
        let batch_limit = is_batch_s.then_some(limits.max_batch_size);
        let share = inner.uploads.staged.begin(self.holder.clone())?;
        let writer = inner.stores.local().stage(BlobId::generate(inner.now()), max).await?;
        let writer = writer.counted_in(share).begun_in(self.era);
        let ask_at = FIRST_BYTES.saturating_sub(self.whole.bytes());
        self.incoming = Some(Incoming { item, writer, batch_limit, ask_at, is_sound: true });
        Ok(())
    }

    /// Refuses a file or a commit of another shape than the first file's.
    fn expect_shape(&mut self, shape: Shape) -> Result<()> {
        if *self.shape.get_or_insert(shape) == shape {
            return Ok(());
        }
        Err(Error::invalid("file", "a session has either one file or the items of a batch"))
    }

    /// Takes the next bytes of the file, in order.
    ///
    /// `TooLarge` once there are more than allowed; `QuotaExceeded` if there is no room for more than was
    /// announced; `Busy`, as [`begin_file`](Self::begin_file); `StorageFull`. After an error, or after a call whose
    /// future was dropped unfinished, the session cannot go on: drop it.
    pub async fn write(&mut self, chunk: Bytes) -> Result<()> {
        if self.incoming.is_none() {
            self.begin_file().await?;
        }
        let before = self.whole.bytes();
        let incoming = self.incoming.as_mut().expect("a file was begun");
        if !mem::replace(&mut incoming.is_sound, false) {
            return Err(not_whole());
        }
        let batch_limit = incoming.batch_limit;
        incoming.writer.write(chunk).await.map_err(|error| match batch_limit {
            Some(limit) if error.kind() == ErrorKind::TooLarge => batch_too_large(limit),
            _ => error,
        })?;

        let received = incoming.writer.size_bytes();
        if received > incoming.ask_at {
            if let Some(quota) = &mut self.guards.quota {
                quota.grow_to(&self.store, before.saturating_add(received)).await?;
            }
            incoming.ask_at = received + STEP_BYTES;
        }
        incoming.is_sound = true;
        Ok(())
    }

    /// Receives all of `reader`, and ends the file. Errors as [`write`](Self::write), and `MalformedBody` if
    /// the reader fails. Then the file cannot be committed.
    pub async fn write_all(&mut self, mut reader: impl AsyncRead + Unpin) -> Result<()> {
        if self.incoming.is_none() {
            self.begin_file().await?;
        }
        let mut buffer = BytesMut::with_capacity(64 << 10);
        loop {
            buffer.reserve(64 << 10);
            match reader.read_buf(&mut buffer).await {
                Ok(0) => return self.end_file().await,
                Ok(_) => self.write(buffer.split().freeze()).await?,
                Err(error) => {
                    self.lose_file();
                    let message = "the source cannot be read";
                    return Err(Error::new(ErrorKind::MalformedBody, message).with_source(error));
                }
            }
        }
    }

    /// Ends the file that is being received, if there is one. The one file of an upload is durable when this
    /// returns; an item of a batch becomes durable while the next one arrives.
    ///
    /// `MissingField` after a [`write`](Self::write) that failed or was dropped unfinished: the file is not whole.
    pub async fn end_file(&mut self) -> Result<()> {
        if self.incoming.as_ref().is_some_and(|incoming| !incoming.is_sound) {
            self.lose_file();
            return Err(not_whole());
        }
        let is_item = self.incoming.as_ref().is_some_and(|incoming| incoming.item.is_some());
        if is_item {
            self.whole.wait_for_a_turn().await?;
        }
        match self.incoming.take() {
            Some(Incoming { item: Some(index), writer, .. }) => {
                self.whole.finish_soon(index, writer);
                Ok(())
            }
            Some(Incoming { item: None, writer, .. }) => self.whole.finish(ONLY, writer).await,
            None => Ok(()),
        }
    }

    /// Discards the part of a file that has arrived, so that no commit takes it for all of the file.
    fn lose_file(&mut self) {
        if let Some(Incoming { item, .. }) = self.incoming.take() {
            self.whole.lose(item.unwrap_or(ONLY));
        }
    }

    /// Ends the file that is being received, and waits until all files are durable.
    pub async fn settle(&mut self) -> Result<()> {
        self.end_file().await?;
        self.whole.settle().await
    }

    /// Returns how many bytes have arrived, of all files.
    pub fn received_bytes(&self) -> u64 {
        let incoming = self.incoming.as_ref().map_or(0, |file| file.writer.size_bytes());
        self.whole.bytes().saturating_add(incoming)
    }
}

fn not_whole() -> Error {
    let message = "the file has not arrived whole, because an earlier write did not succeed";
    Error::new(ErrorKind::MissingField, message).with_field("file")
}

fn batch_too_large(limit: u64) -> Error {
    let message = format!("a batch is at most {limit} bytes");
    Error::new(ErrorKind::TooLarge, message).with_limit(limit)
}

#[cfg(test)]
mod tests;
