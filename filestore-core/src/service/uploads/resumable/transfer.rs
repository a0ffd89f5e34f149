//! The transfer of one request's bytes (steps R3 to R6).
//!
//! A checkpoint makes the bytes durable, then commits the offset with the state of the digest. It comes after 64
//! MiB, after 5 seconds, and at the end of the request, however that ends. If the upload has parts already, it comes
//! after 16 MiB.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, sleep_until};

use super::append::{exceeded, most_bytes};
use super::create::{expiry, held_bytes, limits};
use super::finish::Completing;
use super::parts::{PART_BYTES, Parts, taken};
use super::permit::{self, ResumablePermit};
use super::request::{Append, BodyCheck, Ends, Recheck};
use super::terms;
use super::turns::{Turn, Wish};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::resumable::UploadStage;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{UploadChange, UploadChanged, UploadRow};
use crate::service::FileStore;
use crate::storage::{DigestState, StagedPoint, StagingWriter};
use crate::tasks::step::{Step, reached};

/// Bytes after which a transfer makes a checkpoint.
const CHECKPOINT_BYTES: u64 = 64 << 20;

/// Time after which a transfer makes a checkpoint.
const CHECKPOINT_TIME: Duration = Duration::from_secs(5);

/// A request that has an upload, on its way through its body.
pub(super) struct Transfer {
    store: FileStore,
    turn: Turn,
    /// The row as it is stored, but for a length that this request names.
    row: UploadRow,
    /// The length in the database.
    stored_length: Option<u64>,
    writer: StagingWriter,
    /// The end of the file, once the next byte would be the last one.
    before_last: Option<StagedPoint>,
    check: Option<Box<dyn BodyCheck>>,
    max_bytes: u64,
    /// The time at which the upload expires at the latest.
    latest: Timestamp,
    /// Where the bytes go before they are told, if other servers can continue the upload.
    parts: Option<Parts>,
}

/// The end of a body.
enum End {
    /// All of it is here.
    Whole,
    /// The body failed, or ended early.
    Cut(Error),
    /// A newer request came.
    Superseded(Wish),
    /// The program is about to end.
    Stopped,
}

impl Transfer {
    /// Opens the staged file at the row's offset.
    pub(super) async fn begin(
        store: &FileStore,
        turn: Turn,
        row: UploadRow,
        append: &Append,
        permit: Option<&ResumablePermit>,
    ) -> Result<Self> {
        let inner = &store.inner;
        let stored = inner.metadata.upload(row.upload_id).await?.ok_or_else(super::unknown)?;
        let limits = [
            permit.and_then(|permit| permit.max_bytes),
            terms::shown(&row.terms).policy().most_bytes(),
        ];
        let max_size = inner.config().uploads.max_size;
        let max = row.length.unwrap_or(limits.into_iter().flatten().fold(max_size, u64::min));
        let max_bytes = most_bytes(append, max, row.offset);
        let point = StagedPoint::of(row.offset, &row.digest, &row.head);
        let writer = inner.stores.local().resume(row.blob_id, point, max_bytes).await;
        let writer = match writer {
            Err(damaged) if damaged.kind() == ErrorKind::RecordDamaged => {
                tracing::error!(upload_id = %row.upload_id, error = %damaged.chain(), "an upload lost bytes");
                store.resumable().fail(&stored, &damaged).await?;
                return Err(damaged);
            }
            outcome => outcome?,
        };
        let parts = store.resumable().parts_of(row.upload_id).await?;
        Ok(Self {
            store: store.clone(),
            turn,
            stored_length: stored.length,
            row,
            writer,
            before_last: None,
            check: None,
            max_bytes,
            latest: permit::latest(permit),
            parts,
        })
    }

    /// Receives all of `body`. Returns the upload if that is whole now.
    pub(super) async fn receive<E: Into<Error>>(
        mut self,
        mut append: Append,
        mut body: impl Stream<Item = Result<Bytes, E>> + Send + Unpin,
    ) -> Result<Option<Completing>> {
        self.check = append.check.take();
        let began_at = self.row.offset;
        let end = self.receive_bytes(&mut body, &append).await;
        // The next request may continue the file as soon as this one gives its turn back.
        let written = self.writer.quiet().await;
        let end = end?;
        written?;
        let received = self.writer.size_bytes() - began_at;
        let end = match (end, append.content_length) {
            (End::Whole, Some(announced)) if received < announced => End::Cut(cut()),
            (end, _) => end,
        };

        match end {
            End::Whole => self.end_whole(&append.ends, append.recheck.take()).await,
            End::Cut(error) => {
                self.turn.break_off();
                // The bytes of a request with a checksum count at its end only.
                if self.check.is_none() {
                    self.keep().await?;
                }
                Err(error)
            }
            End::Superseded(wish) => {
                // The newer request sends the bytes again that no reply told of.
                if self.check.is_none() && wish != Wish::From(self.row.offset) {
                    self.keep().await?;
                }
                let Self { turn, writer, .. } = self;
                drop(writer);
                Err(turn.defeat().await)
            }
            End::Stopped if self.check.is_some() => Err(stopped()),
            End::Stopped => self.keep().await.and(Err(stopped())),
        }
    }

    async fn receive_bytes<E: Into<Error>>(
        &mut self,
        body: &mut (impl Stream<Item = Result<Bytes, E>> + Send + Unpin),
        append: &Append,
    ) -> Result<End> {
        let state = Arc::clone(&self.store.inner.uploads.resumable);
        let mut due_at = Instant::now() + CHECKPOINT_TIME;
        loop {
            let is_dirty = self.check.is_none() && self.told_after() > self.row.offset;
            let chunk = tokio::select! {
                biased;
                wish = self.turn.superseded() => return Ok(End::Superseded(wish)),
                () = state.stopped() => return Ok(End::Stopped),
                () = sleep_until(due_at), if is_dirty => {
                    self.checkpoint().await?;
                    due_at = Instant::now() + CHECKPOINT_TIME;
                    continue;
                }
                chunk = body.next() => chunk,
            };
            match chunk {
                None => return Ok(End::Whole),
                Some(Err(error)) => return Ok(End::Cut(error.into())),
                Some(Ok(chunk)) => self.take(chunk, append).await?,
            }
            if is_dirty && self.told_after() - self.row.offset >= self.checkpoint_bytes() {
                self.checkpoint().await?;
                due_at = Instant::now() + CHECKPOINT_TIME;
            }
        }
    }

    /// The number of bytes after which a checkpoint is made. A short body makes no part. With the first part, a body
    /// is known to be long.
    fn checkpoint_bytes(&self) -> u64 {
        let has_parts = self.parts.as_ref().is_some_and(|parts| parts.end() > 0);
        if has_parts { PART_BYTES } else { CHECKPOINT_BYTES }
    }

    /// The number of bytes that a checkpoint may tell.
    fn told_after(&self) -> u64 {
        self.before_last.as_ref().map_or(self.writer.size_bytes(), |point| point.size_bytes)
    }

    /// Writes a chunk. The last byte of a known length is kept apart: only the commit tells it.
    async fn take(&mut self, mut chunk: Bytes, append: &Append) -> Result<()> {
        let end = self.writer.size_bytes().saturating_add(chunk.len() as u64);
        if end > self.max_bytes {
            return self.refuse_more().await;
        }
        if let Some(check) = &mut self.check {
            check.update(&chunk);
        }

        let holds_back = append.ends != Ends::Later && self.before_last.is_none();
        if holds_back && self.row.length == Some(end) && !chunk.is_empty() {
            let last = chunk.split_off(chunk.len() - 1);
            self.writer.write(chunk).await?;
            self.before_last = Some(self.writer.point().await?);
            chunk = last;
        }
        self.writer.write(chunk).await
    }

    /// Refuses more bytes than the length. Such an upload can never succeed.
    async fn refuse_more(&self) -> Result<()> {
        let error = match self.row.length {
            Some(length) if length == self.max_bytes => exceeded(length),
            _ => Error::new(
                ErrorKind::TooLarge,
                format!("the upload has more bytes than {}", self.max_bytes),
            )
            .with_limit(self.max_bytes),
        };
        if self.check.is_none() {
            let mut stored = self.row.clone();
            stored.length = self.stored_length;
            self.store.resumable().fail(&stored, &error).await?;
        }
        Err(error)
    }

    /// Ends a request whose body is whole.
    async fn end_whole(
        mut self,
        ends: &Ends,
        recheck: Option<Recheck>,
    ) -> Result<Option<Completing>> {
        if self.check.take().is_some_and(|check| !check.holds()) {
            let message = "the bytes of the request do not have its checksum";
            return Err(
                Error::new(ErrorKind::ChecksumMismatch, message).with_field("Upload-Checksum")
            );
        }

        let size = self.writer.size_bytes();
        let is_last = match ends {
            Ends::ByLength => self.row.length == Some(size),
            Ends::WithThisRequest => true,
            Ends::Later => false,
        };
        if is_last && self.row.length.is_some_and(|length| length != size) {
            self.checkpoint().await?;
            let message = "the last request does not end at the length of the upload";
            return Err(Error::new(ErrorKind::UploadLengthInconsistent, message));
        }
        if !is_last {
            self.keep().await?;
            self.turn.succeed();
            return Ok(None);
        }
        self.complete(recheck).await.map(Some)
    }

    /// Makes a last checkpoint, if there is anything to keep.
    async fn keep(&mut self) -> Result<()> {
        let has_news = self.told_after() > self.row.offset || self.row.length != self.stored_length;
        if has_news { self.checkpoint().await } else { Ok(()) }
    }

    /// Makes what has arrived durable, and commits how much of it may be told.
    async fn checkpoint(&mut self) -> Result<()> {
        let durable = self.writer.checkpoint().await?;
        let told = self.before_last.clone().unwrap_or(durable);
        self.commit(&told, UploadStage::Open).await?;
        self.store.resumable().note_copy(&self.row, told);
        reached(Step::OffsetKept);
        Ok(())
    }

    /// Makes the whole file durable, and says so.
    async fn complete(mut self, recheck: Option<Recheck>) -> Result<Completing> {
        let whole = self.writer.checkpoint().await?;
        let told = self.before_last.clone().unwrap_or_else(|| whole.clone());
        // A length that was declared without a byte is recorded with the file: an offset that equals the length
        // is success for some clients.
        if told.size_bytes == whole.size_bytes {
            self.row.length = self.stored_length;
        }
        let finishing = self.store.inner.uploads.resumable.begin_finish(self.row.upload_id);
        self.commit(&told, UploadStage::Completing).await?;
        reached(Step::ResumableCompleting);
        // The commit can still fail. An older request that is told to continue finds the file, or the last byte to send.
        let Self { store, row, parts, .. } = self;
        Ok(Completing { store, row, whole, told, parts, finishing, recheck })
    }

    /// Commits the stage, and how much may be told. If other servers can continue the upload, a completing one tells
    /// what the parts have: the end becomes a part only if the file cannot be made now.
    async fn commit(&mut self, told: &StagedPoint, stage: UploadStage) -> Result<()> {
        let inner = &self.store.inner;
        let (now, config) = (inner.now(), inner.config());
        let mut stored = self.row.clone();
        stored.length = self.stored_length;

        let (length, latest) = (self.row.length, self.latest);
        let change = UploadChange::of(&stored, |next| {
            next.stage = stage;
            if stage == UploadStage::Open || self.parts.is_none() {
                tell(next, told);
            }
            next.length = length;
            next.held_bytes = held_bytes(length, told.size_bytes).max(next.held_bytes);
            next.updated_at = now;
            next.expires_at = expiry(&config.uploads, next, latest, now);
        });
        let grows = change.next.held_bytes > stored.held_bytes;
        self.hold_more(length.unwrap_or(told.size_bytes)).await?;
        let change = UploadChange { limits: grows.then(|| limits(&config.uploads)), ..change };
        let next = change.next.clone();
        let uploads = self.store.resumable();
        match uploads.change_with_part(change, self.parts.as_mut()).await? {
            UploadChanged::Done => {
                (self.stored_length, self.row) = (next.length, next);
                Ok(())
            }
            UploadChanged::Lost => Err(self.lost().await),
            UploadChanged::Full => {
                let message = "there is no room for more bytes of unfinished uploads";
                Err(Error::new(ErrorKind::TooManyUploads, message).with_retry_after_secs(60))
            }
            UploadChanged::PartWithdrawn => Err(withdrawn()),
        }
    }

    /// Holds room in the quota for an upload that grew.
    async fn hold_more(&self, bytes: u64) -> Result<()> {
        let state = &self.store.inner.uploads.resumable;
        let Some(mut held) = state.held(self.row.upload_id) else { return Ok(()) };
        let grown = held.grow_to(&self.store, bytes).await;
        state.hold(self.row.upload_id, Some(held));
        grown
    }

    /// Says why the row is another one by now.
    async fn lost(&self) -> Error {
        match self.store.inner.metadata.upload(self.row.upload_id).await {
            Ok(Some(row)) if row.stage == UploadStage::Failed => super::gone("it has failed"),
            Ok(Some(row)) if row.stage == UploadStage::Expired => super::gone("it has expired"),
            Ok(None) => super::unknown(),
            Ok(Some(_)) if self.parts.is_some() && !self.turn.is_superseded() => taken(),
            Ok(Some(_)) => superseded(),
            Err(error) => error,
        }
    }
}

/// Lets a row tell the bytes up to a point.
pub(super) fn tell(next: &mut UploadRow, told: &StagedPoint) {
    next.offset = told.size_bytes;
    next.digest = told.digest.as_ref().map(DigestState::to_bytes).unwrap_or_default();
    next.head = told.head.to_vec();
}

/// Makes the error of a server that others took for gone while it wrote a part.
fn withdrawn() -> Error {
    let message = "the server was away for too long: continue the upload in a moment";
    Error::new(ErrorKind::Busy, message).with_retry_after_secs(1)
}

fn cut() -> Error {
    Error::new(ErrorKind::MalformedBody, "the body did not arrive whole")
}

fn stopped() -> Error {
    let message = "the server stops: continue the upload in a moment";
    Error::new(ErrorKind::Busy, message).with_retry_after_secs(1)
}

pub(super) fn superseded() -> Error {
    let message = "a newer request for the same upload came";
    Error::new(ErrorKind::UploadSuperseded, message)
}
