//! Parts: objects at the backend with the bytes of an upload, from which every server continues it (steps M1 to M5).
//!
//! # Purpose
//! If several servers share a store, the bytes of an upload are at the backend before its offset is told. So any
//! server can continue the upload, also if the server that received the bytes is gone.
//!
//! # Ownership
//! The server in the row has all bytes up to the offset on its own disk. Another server raises the epoch, so that the
//! older server commits nothing any more. Then it reads the bytes that it lacks from the parts, compares their digest
//! with the digest in the row, and puts its name into the row. From then on, the rules of one server hold.
//!
//! # Copies
//! A server that an upload has left keeps its staged file, and reads only newer bytes if the upload comes back. Upkeep
//! removes the file when the upload has ended. Recovery removes it too.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use sha2::{Digest, Sha256 as Hasher};
use tokio::time::Instant;

use super::ResumableUploads;
use super::append::expect_offset;
use super::state::Staged;
use super::transfer::superseded;
use super::turns::Turn;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::file::resumable::UploadStage;
use crate::domain::id::{BlobId, Sha256, SubSystem, UploadId};
use crate::domain::provider::ProviderCode;
use crate::metadata::{Company, UploadChange, UploadChanged, UploadPart, UploadRow};
use crate::service::providers::cloud_write::{Objects, Refusal};
use crate::service::uploads::quota::QuotaReservation;
use crate::storage::{ByteStream, DigestState, StagedPoint, StagingWriter};
use crate::tasks::step::{Step, reached};

/// The sub-system in the keys of parts.
const SUB_SYSTEM: &str = "uploads";

/// Parts looked up at once.
const PAGE: usize = 100;

/// The longest time for which a request reads the bytes of parts. The next request continues there.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where the parts of an upload go, and how far they reach.
pub(super) struct Parts {
    provider: ProviderCode,
    end: u64,
}

impl ResumableUploads<'_> {
    /// Returns where the parts of an upload go. `None` if no other server can need them.
    pub(super) async fn parts_of(self, id: UploadId) -> Result<Option<Parts>> {
        let inner = &self.store.inner;
        let provider = inner.stores.providers().holder_of_new(&ProviderCode::local());
        if inner.metadata.company() == Company::Alone || provider.is_local() {
            return Ok(None);
        }
        let end = self.end_of_parts(id).await?;
        Ok(Some(Parts { provider, end }))
    }

    /// Tests whether the parts have all bytes up to the offset.
    pub(super) async fn is_covered(self, row: &UploadRow) -> Result<bool> {
        Ok(self.end_of_parts(row.upload_id).await? >= row.offset)
    }

    async fn end_of_parts(self, id: UploadId) -> Result<u64> {
        let last = self.store.inner.metadata.last_part(id).await?;
        Ok(last.map_or(0, |part| part.end()))
    }

    /// Commits a change. Before that, puts the bytes up to the new offset that no part has. The bytes must be durable
    /// on the disk of this server.
    pub(super) async fn change_with_part(
        self,
        mut change: UploadChange,
        parts: Option<&mut Parts>,
    ) -> Result<UploadChanged> {
        let metadata = &self.store.inner.metadata;
        let end = change.next.offset;
        let Some(parts) = parts.filter(|parts| parts.end < end) else {
            return metadata.change_upload(change).await;
        };

        let (part, objects) = self.put_part(&change.next, parts).await?;
        change.part = Some(part);
        let changed = metadata.change_upload(change).await;
        match &changed {
            Ok(UploadChanged::Done) => {
                objects.refer();
                parts.end = end;
            }
            refused => objects.withdraw(Refusal::of(refused)).await,
        }
        changed
    }

    /// Puts the bytes of the row that no part has.
    async fn put_part(self, row: &UploadRow, parts: &Parts) -> Result<(UploadPart, Objects)> {
        let inner = &self.store.inner;
        let now = inner.now();
        let (offset, size_bytes) = (parts.end, row.offset - parts.end);
        let read = || inner.stores.local().read_staged(row.blob_id, offset, size_bytes);
        let sha256 = digest(read()).await?;
        let sub_system: SubSystem = SUB_SYSTEM.parse()?;
        let key = BlobKey::new(&row.organization, &sub_system, now, BlobId::generate(now));

        let content = (size_bytes, sha256);
        let objects = inner.write_part(&parts.provider, &key, content, read()).await?;
        let provider = parts.provider.clone();
        let late_until = inner.now().plus(inner.late_write_grace(Some(&provider)));
        Ok((UploadPart { provider, key, offset, size_bytes, late_until }, objects))
    }

    /// Notes the staged file of an upload that another server may take.
    pub(super) fn note_copy(self, row: &UploadRow, point: StagedPoint) {
        let inner = &self.store.inner;
        if inner.metadata.company() == Company::Others {
            let staged = Staged { blob_id: row.blob_id, epoch: row.epoch, point };
            inner.uploads.resumable.put_copy(row.upload_id, staged);
        }
    }

    /// Tests whether this server is the one in the row.
    pub(super) fn is_own(self, row: &UploadRow) -> bool {
        row.server == self.store.inner.metadata.server_name()
    }

    /// Brings an open upload to this server, if another one has it (steps M1 and M2). The newest request wins: an
    /// older one loses it, at whatever server.
    ///
    /// `UploadElsewhere` if the parts do not have all bytes. `Busy` if there are too many bytes for one request: the
    /// next request continues.
    pub(super) async fn bring_here(self, row: UploadRow, turn: &Turn) -> Result<UploadRow> {
        if self.has_bytes(&row).await? {
            return self.keep_here(row).await;
        }
        if !self.is_covered(&row).await? {
            // A transfer finds out what is missing on the disk of this server.
            return if self.is_own(&row) { Ok(row) } else { Err(elsewhere()) };
        }

        let row = self.raise_epoch(row).await?;
        self.pull(&row, turn).await?;
        let server = self.store.inner.metadata.server_name();
        let change = UploadChange::of(&row, |next| next.server = server);
        let next = change.next.clone();
        if self.store.inner.metadata.change_upload(change).await? != UploadChanged::Done {
            return Err(taken());
        }
        let bytes = next.length.unwrap_or(next.offset);
        let reservation = QuotaReservation::hold(self.store, &next.organization, bytes);
        self.store.inner.uploads.resumable.hold(next.upload_id, reservation);
        Ok(next)
    }

    /// Tests whether the disk of this server has all bytes up to the offset.
    async fn has_bytes(self, row: &UploadRow) -> Result<bool> {
        let inner = &self.store.inner;
        if !self.is_own(row) {
            return Ok(false);
        }
        if inner.metadata.company() == Company::Alone {
            return Ok(true);
        }
        let there = inner.stores.local().staged_bytes(row.blob_id).await?;
        Ok(there.unwrap_or(0) >= row.offset)
    }

    /// Continues an upload whose bytes are here. If another server may be about to take it, that one loses it.
    async fn keep_here(self, row: UploadRow) -> Result<UploadRow> {
        let inner = &self.store.inner;
        let is_undisputed = inner.uploads.resumable.own_epoch(row.upload_id) == Some(row.epoch);
        if is_undisputed || inner.metadata.company() == Company::Alone {
            return Ok(row);
        }
        let row = self.raise_epoch(row).await?;
        self.note_copy(&row, StagedPoint::of(row.offset, &row.digest, &row.head));
        Ok(row)
    }

    /// Takes the upload away from the request that has it at another server.
    async fn raise_epoch(self, mut row: UploadRow) -> Result<UploadRow> {
        let wanted = row.offset;
        loop {
            let change = UploadChange::of(&row, |next| next.epoch += 1);
            let next = change.next.clone();
            if self.store.inner.metadata.change_upload(change).await? == UploadChanged::Done {
                return Ok(next);
            }
            row = self.row(row.upload_id, &Scope::All).await?;
            if row.stage != UploadStage::Open {
                return Err(taken());
            }
            expect_offset(row.offset, wanted)?;
        }
    }

    /// Reads the bytes from the parts that the staged file of this server lacks, and compares the digest of all.
    async fn pull(self, row: &UploadRow, turn: &Turn) -> Result<()> {
        let inner = &self.store.inner;
        let state = &inner.uploads.resumable;
        let copy = state.take_copy(row.upload_id).map(|staged| staged.point);
        let from = copy.filter(|point| point.size_bytes <= row.offset).unwrap_or_default();
        let began_at = from.size_bytes;
        // Noted even if this fails, so that upkeep finds the file.
        self.note_copy(row, StagedPoint::default());

        let mut writer = inner.stores.local().resume(row.blob_id, from, row.offset).await?;
        let pulled = self.pull_into(&mut writer, row, turn).await;
        writer.quiet().await?;
        let point = writer.checkpoint().await?;
        if point.size_bytes < row.offset {
            self.note_copy(row, point);
            return pulled.and(Err(busy("the server reads the bytes of the upload")));
        }

        let is_known = DigestState::from_bytes(&row.digest).is_some();
        let found = point.digest.as_ref().map(DigestState::to_bytes).unwrap_or_default();
        if is_known && found != row.digest {
            return Err(self.note_damage(row, began_at).await?);
        }
        self.note_copy(row, point);
        reached(Step::CopyStaged);
        Ok(())
    }

    /// Writes the bytes of the parts up to the row's offset, until the time is over or a newer request comes.
    async fn pull_into(
        self,
        writer: &mut StagingWriter,
        row: &UploadRow,
        turn: &Turn,
    ) -> Result<()> {
        let inner = &self.store.inner;
        let until = Instant::now() + PATIENCE;
        while writer.size_bytes() < row.offset {
            let at = writer.size_bytes();
            let parts = inner.metadata.upload_parts(row.upload_id, at, PAGE).await?;
            if parts.first().is_none_or(|part| part.offset > at) {
                return Err(Error::internal("reading an upload", "a part is missing"));
            }
            for part in parts {
                let mut bytes = self.bytes_of_part(&part, writer.size_bytes()).await?;
                while let Some(block) = bytes.next().await {
                    writer.write(block?).await?;
                    if turn.is_superseded() {
                        return Err(superseded());
                    }
                    if Instant::now() >= until {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a part from the offset `at` of the upload on.
    async fn bytes_of_part(self, part: &UploadPart, at: u64) -> Result<ByteStream> {
        let holder = self.store.inner.stores.holder(&part.provider)?;
        let range = at.saturating_sub(part.offset)..part.size_bytes;
        let read = holder.read(&part.key, part.size_bytes, range.clone()).await?;
        let read = read.ok_or_else(|| Error::internal("reading an upload", "a part is gone"))?;
        Ok(read.into_stream(range))
    }

    /// Notes that the bytes are not those that the clients sent. Those of a copy are read again.
    async fn note_damage(self, row: &UploadRow, began_at: u64) -> Result<Error> {
        if began_at > 0 {
            return Ok(busy("the server reads the bytes of the upload again"));
        }
        let message = "the parts of the upload are damaged";
        let damaged = Error::new(ErrorKind::RecordDamaged, message);
        tracing::error!(upload_id = %row.upload_id, "the parts of an upload are damaged");
        self.fail(row, &damaged).await?;
        Ok(damaged)
    }
}

async fn digest(mut bytes: ByteStream) -> Result<Sha256> {
    let mut hasher = Hasher::new();
    while let Some(block) = bytes.next().await {
        let block: Bytes = block?;
        hasher.update(&block);
    }
    Ok(Sha256(hasher.finalize().into()))
}

fn busy(message: &str) -> Error {
    Error::new(ErrorKind::Busy, message).with_retry_after_secs(1)
}

/// Makes the error of a request whose upload went to another server. That server may have an older request, which
/// was delayed: so the client asks for the offset, and continues.
pub(super) fn taken() -> Error {
    busy("another server has the upload: ask for its offset, and continue there")
}

fn elsewhere() -> Error {
    let message = "another server has the bytes of this upload: send the request to that server";
    Error::new(ErrorKind::UploadElsewhere, message).with_retry_after_secs(1)
}
