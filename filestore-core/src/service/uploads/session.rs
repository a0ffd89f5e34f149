//! The session of an upload: its claims, its bytes and its commit.
//!
//! # Purpose
//! Server, command line and applications all upload this way. So this module and [`claims`](super::claims)
//! decide the order of claims, bytes and commit once for all.
//!
//! A session owns its data and borrows nothing, so it can outlive the request, the connection or the task
//! that began it. Its claims are values ([`UploadClaims`], [`ReplacementClaims`]), which you can take again
//! after the process has ended. One writer at a time has the session, and the commit consumes it.
//!
//! # Cancellation
//! If you drop a session before its commit, its claims are released and its bytes are discarded. If a `write`
//! is cancelled or fails, its file cannot be committed. For a cancelled commit, see
//! [`commit`](super::commit).

mod finish;

use std::fmt;
use std::mem;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt};
use tracing::Span;

use super::claims::{ClaimGuards, ReplacementClaims, UploadClaims};
use super::whole_files::WholeFiles;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::BlobId;
use crate::domain::report::erasure::Era;
use crate::metadata::FinishUpload;
use crate::service::{FileStore, spans};
use crate::storage::{StagedBlob, StagingWriter, Uploader};

/// The bytes that can arrive before their room is reserved, and the step by which the reservation grows.
/// Announced bytes are reserved before they arrive.
const FIRST_BYTES: u64 = 64 << 10;
const STEP_BYTES: u64 = 1 << 20;

/// The file's number if the upload is not a batch.
const ONLY: u32 = 0;

/// An upload in progress: claims, then bytes, then one commit. Begin with
/// [`Uploads::begin`](super::upload::Uploads::begin).
///
/// A session uploads one file ([`commit`](Self::commit)), a batch ([`commit_batch`](Self::commit_batch)), or
/// new bytes for a file ([`commit_replacement`](Self::commit_replacement)). For example, an upload that you
/// can safely send twice:
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
/// A batch names each file by its item's number:
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
/// # Claims in use
/// After [`claim`](Self::claim), other uploads with the same idempotency key or permit are refused, and the
/// announced bytes count for the quota. If you drop a session, this ends, and the bytes are discarded. The
/// commit checks everything again, in one transaction with the records.
#[must_use = "a drop ends the upload and discards its bytes"]
pub struct UploadSession {
    store: FileStore,
    /// The uploader of the bytes that arrive now.
    uploader: Uploader,
    /// The era in which the upload began.
    era: Era,
    claims: Option<Claims>,
    guards: ClaimGuards,
    incoming: Option<Incoming>,
    whole: WholeFiles,
    /// The shape of the session, known since its first file.
    shape: Option<Shape>,
    /// The resumable upload that the commit finishes.
    upload: Option<FinishUpload>,
    /// The span of the upload, from its beginning to its end.
    span: Span,
}

/// The files that a session can contain.
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

/// A file that is arriving.
struct Incoming {
    /// The number of the item in its batch.
    item: Option<u32>,
    writer: StagingWriter,
    /// The maximum size of the batch, if it leaves less than the maximum size of a file.
    batch_limit: Option<u64>,
    /// The number of received bytes at which the session reserves more of the quota.
    next_reservation_at: u64,
    /// False during a write, and after a write that failed or was dropped. Bytes can then be missing.
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
    pub(super) fn new(store: FileStore, uploader: Uploader, era: Era) -> Self {
        Self {
            store,
            uploader,
            era,
            claims: None,
            guards: ClaimGuards::default(),
            incoming: None,
            whole: WholeFiles::default(),
            shape: None,
            upload: None,
            span: spans::upload(),
        }
    }

    /// Takes an upload's claims. Call it once, as soon as you know the organization. If bytes have
    /// already arrived, they count.
    ///
    /// Errors, in this order:
    ///
    /// - `TooLarge`: more bytes have arrived than the claims allow.
    /// - `IdempotencyInProgress`: an upload with the same key is running.
    /// - `SignatureInvalid`: the organization was erased after the URL was signed.
    /// - `SignatureUsed`: another upload used the permit, or is running with it.
    /// - `QuotaExceeded`: there is no room.
    ///
    /// If a reply is stored under the key, the upload needs neither permit nor room.
    pub async fn claim(&mut self, claims: UploadClaims) -> Result<()> {
        self.expect_unclaimed()?;
        if let Some(max) = claims.max_bytes.filter(|max| self.received_bytes() > *max) {
            let message = format!("the file has more bytes than {max}");
            return Err(Error::new(ErrorKind::TooLarge, message)
                .with_field("file")
                .with_limit(max));
        }
        self.span.record("filestore.organization.id", claims.organization_id.as_str());
        self.guards = claims.take(&self.store, Some(self.received_bytes())).await?;
        self.uploader = Uploader::Organization(claims.organization_id.clone());
        self.claims = Some(Claims::Upload(claims));
        Ok(())
    }

    /// Takes the claims of a replacement for a file of `scope`. Call it once.
    ///
    /// `NotFound` for unknown, foreign and deleted files. `PreconditionFailed` if a condition does not hold.
    /// `QuotaExceeded` if there is no room for the additional bytes of the file.
    pub async fn claim_replacement(
        &mut self,
        claims: ReplacementClaims,
        scope: &Scope,
    ) -> Result<()> {
        self.expect_unclaimed()?;
        let received = Some(self.received_bytes());
        let (organization, guards) = claims.take(&self.store, scope, received).await?;
        (self.guards, self.uploader) = (guards, Uploader::Organization(organization));
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
    /// Begins the file of an upload or a replacement. The first [`write`](Self::write) does this too, so only
    /// an empty file needs this call.
    ///
    /// `Busy` if the staged bytes or files reach a limit ([`Limits::staged_bytes`], [`Limits::staged_files`]
    /// and the limits for each organization).
    ///
    /// [`Limits::staged_bytes`]: crate::Limits::staged_bytes
    /// [`Limits::staged_files`]: crate::Limits::staged_files
    pub async fn begin_file(&mut self) -> Result<()> {
        self.open(None, u64::MAX).await
    }

    /// Begins the file of the item `index` of a batch, and ends the previous file. The files can arrive in
    /// any order. `Busy` as for [`begin_file`](Self::begin_file).
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
        let batch_limit_applies = item.is_some() && max_bytes < claimed.min(limits.max_file_size);
        let batch_limit = batch_limit_applies.then_some(limits.max_batch_size);
        let share = inner.uploads.staged.begin(self.uploader.clone())?;
        let writer = inner.stores.local().stage(BlobId::generate(inner.now()), max).await?;
        let writer = writer.counted_in(share).begun_in(self.era);
        let next_reservation_at = FIRST_BYTES.saturating_sub(self.whole.bytes());
        self.incoming =
            Some(Incoming { item, writer, batch_limit, next_reservation_at, is_sound: true });
        Ok(())
    }

    /// Refuses a file or a commit with another shape than the first file.
    fn expect_shape(&mut self, shape: Shape) -> Result<()> {
        if *self.shape.get_or_insert(shape) == shape {
            return Ok(());
        }
        Err(Error::invalid("file", "a session has either one file or the items of a batch"))
    }

    /// Takes the next bytes of the file, in order.
    ///
    /// `TooLarge` if there are more bytes than allowed. `QuotaExceeded` if there is no room for more bytes
    /// than announced. `Busy` as for [`begin_file`](Self::begin_file). `StorageFull` if the disk is full.
    /// Drop the session after an error, or if you drop the future of a call.
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
        if received > incoming.next_reservation_at {
            if let Some(quota) = &mut self.guards.quota {
                quota.grow_to(&self.store, before.saturating_add(received)).await?;
            }
            incoming.next_reservation_at = received + STEP_BYTES;
        }
        incoming.is_sound = true;
        Ok(())
    }

    /// Receives all of `reader`, and ends the file. Returns the errors of [`write`](Self::write).
    /// `MalformedBody` if the reader fails. You cannot commit the file then.
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
                    return Err(unreadable(error));
                }
            }
        }
    }

    /// Receives all chunks of `stream`, without copying them, and ends the file. Returns the errors of
    /// [`write`](Self::write). `MalformedBody` if the stream fails. You cannot commit the file then.
    pub async fn write_stream<E>(
        &mut self,
        stream: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<()>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if self.incoming.is_none() {
            self.begin_file().await?;
        }
        let mut stream = pin!(stream);
        while let Some(chunk) = stream.next().await {
            match chunk {
                Ok(chunk) => self.write(chunk).await?,
                Err(error) => {
                    self.lose_file();
                    return Err(unreadable(error));
                }
            }
        }
        self.end_file().await
    }

    /// Ends the file that is arriving, if there is one. The one file of an upload is durable when this call
    /// returns. An item of a batch becomes durable while the next item arrives.
    ///
    /// `MissingField` if an earlier [`write`](Self::write) failed or was dropped, because bytes are missing
    /// then.
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

    /// Discards the part of a file that has arrived, so that no commit mistakes the part for the whole file.
    fn lose_file(&mut self) {
        if let Some(Incoming { item, .. }) = self.incoming.take() {
            self.whole.lose(item.unwrap_or(ONLY));
        }
    }

    /// Ends the file that is arriving, and waits until all files are durable.
    pub async fn finish_files(&mut self) -> Result<()> {
        self.end_file().await?;
        self.whole.finish_all().await
    }

    /// Counts the bytes that have arrived in all files.
    pub fn received_bytes(&self) -> u64 {
        let incoming = self.incoming.as_ref().map_or(0, |file| file.writer.size_bytes());
        self.whole.bytes().saturating_add(incoming)
    }
}

fn unreadable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::MalformedBody, "the source cannot be read").with_source(error)
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
