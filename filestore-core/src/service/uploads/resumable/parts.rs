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
//! # Number and size
//! A checkpoint puts one part. Small pieces make small parts, so the next part takes in the small ones before it, as
//! long as they are less than twice as large. So each small part is at least twice as large as the next one, and there
//! are at most 25 parts under 16 MiB. A byte is written again only with a part that is half as large again.
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

/// The size from which on a part stays as it is. Smaller parts at the end are merged with the bytes after them.
pub(super) const PART_BYTES: u64 = 16 << 20;

/// The most parts at the end that can be smaller.
const SMALL_PARTS: usize = 25;

/// The message about a copy that cannot be extended.
const AGAIN: &str = "the server reads the bytes of the upload again";

/// Parts looked up at once.
const PAGE: usize = 100;

/// The longest time for which a request reads the bytes of parts. The next request continues there.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where the parts of an upload go, and how far they reach.
pub(super) struct Parts {
    provider: ProviderCode,
    /// The last parts, in the order of their offsets.
    last: Vec<UploadPart>,
}

impl Parts {
    /// Returns the offset behind the last part.
    pub(super) fn end(&self) -> u64 {
        self.last.last().map_or(0, UploadPart::end)
    }

    /// Returns the offset of the next part, which ends at `end`: the end of the last part, or the offset of a small
    /// part that the next one takes in.
    fn start_of_next(&self, end: u64) -> u64 {
        let mut start = self.end();
        for part in self.last.iter().rev() {
            if part.size_bytes >= PART_BYTES || part.size_bytes >= 2 * (end - start) {
                break;
            }
            start = part.offset;
        }
        start
    }

    /// Adds a stored part, in the place of those from its offset on.
    fn put(&mut self, part: UploadPart) {
        self.last.retain(|earlier| earlier.offset < part.offset);
        self.last.push(part);
    }
}

impl ResumableUploads<'_> {
    /// Returns where the parts of an upload go. `None` if no other server can need them.
    pub(super) async fn parts_of(self, id: UploadId) -> Result<Option<Parts>> {
        let inner = &self.store.inner;
        let provider = inner.stores.providers().holder_of_new(&ProviderCode::local());
        if inner.metadata.company() == Company::Alone || provider.is_local() {
            return Ok(None);
        }
        let mut last = inner.metadata.last_parts(id, SMALL_PARTS + 1).await?;
        last.reverse();
        Ok(Some(Parts { provider, last }))
    }

    /// Tests whether the parts have all bytes up to the offset.
    pub(super) async fn is_covered(self, row: &UploadRow) -> Result<bool> {
        let last = self.store.inner.metadata.last_parts(row.upload_id, 1).await?;
        Ok(last.first().map_or(0, UploadPart::end) >= row.offset)
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
        let Some(parts) = parts.filter(|parts| parts.end() < end) else {
            return metadata.change_upload(change).await;
        };

        let (part, objects) = self.put_part(&change.next, parts).await?;
        change.part = Some(part.clone());
        let changed = metadata.change_upload(change).await;
        match &changed {
            Ok(UploadChanged::Done) => {
                objects.refer();
                parts.put(part);
            }
            refused => objects.withdraw(Refusal::of(refused)).await,
        }
        changed
    }

    /// Puts the bytes of the row that no part has, with those of small parts before them.
    async fn put_part(self, row: &UploadRow, parts: &Parts) -> Result<(UploadPart, Objects)> {
        let inner = &self.store.inner;
        let now = inner.now();
        let offset = parts.start_of_next(row.offset);
        let size_bytes = row.offset - offset;
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
    /// `UploadElsewhere` if the parts do not have all bytes. `StorageFull` if the disk of this server has no room.
    /// `Busy` if there are too many bytes for one request: the next request continues.
    pub(super) async fn bring_here(self, row: UploadRow, turn: &Turn) -> Result<UploadRow> {
        if self.has_bytes(&row).await? {
            return self.keep_here(row).await;
        }
        if !self.is_covered(&row).await? {
            // A transfer finds out what is missing on the disk of this server.
            return if self.is_own(&row) { Ok(row) } else { Err(elsewhere()) };
        }

        let copied = self.store.inner.uploads.resumable.copied_bytes(row.upload_id);
        self.expect_space(row.length.unwrap_or(row.offset).saturating_sub(copied)).await?;
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
        let state = &self.store.inner.uploads.resumable;
        let copy = state.take_copy(row.upload_id).map(|staged| staged.point);
        let from = copy.filter(|point| point.size_bytes <= row.offset).unwrap_or_default();
        let began_at = from.size_bytes;
        // Noted even if this fails, so that upkeep finds the file.
        self.note_copy(row, StagedPoint::default());

        let (point, pulled) = match self.pull_from(from, row, turn).await {
            Ok(done) => done,
            Err(error) => {
                self.discard_copy(row).await;
                let is_short = error.kind() == ErrorKind::RecordDamaged;
                return Err(if is_short { busy(AGAIN) } else { error });
            }
        };
        if point.size_bytes < row.offset {
            self.note_copy(row, point);
            return Err(match pulled {
                Ok(()) => busy("the server reads the bytes of the upload"),
                Err(error) => self.why_not_pulled(row, error).await,
            });
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

    /// Extends the staged file from a point on. Returns how far its bytes are durable, and whether the parts could be
    /// read. An error means that the disk of this server failed, is full, or has too few bytes.
    async fn pull_from(
        self,
        from: StagedPoint,
        row: &UploadRow,
        turn: &Turn,
    ) -> Result<(StagedPoint, Result<()>)> {
        let local = self.store.inner.stores.local();
        let mut writer = local.resume(row.blob_id, from, row.offset).await?;
        let pulled = self.pull_into(&mut writer, row, turn).await;
        writer.quiet().await?;
        match pulled {
            Err(full) if full.is_lack_of_room() => Err(full),
            pulled => Ok((writer.checkpoint().await?, pulled)),
        }
    }

    /// Removes the staged file that was to become a copy: it would fill the disk for nothing.
    async fn discard_copy(self, row: &UploadRow) {
        let inner = &self.store.inner;
        drop(inner.uploads.resumable.take_copy(row.upload_id));
        inner.discard(vec![row.blob_id]).await;
    }

    /// Says why the bytes of parts could not be read: perhaps another server has the upload by now, and merges them.
    async fn why_not_pulled(self, row: &UploadRow, error: Error) -> Error {
        match self.store.inner.metadata.upload(row.upload_id).await {
            Ok(Some(now)) if now.epoch != row.epoch => taken(),
            _ => error,
        }
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

    /// Notes that the bytes are not those that the clients sent. Those of a copy are read again. As long as the server
    /// lives that has the upload, its disk has the right ones.
    async fn note_damage(self, row: &UploadRow, began_at: u64) -> Result<Error> {
        if began_at > 0 {
            return Ok(busy(AGAIN));
        }
        tracing::error!(upload_id = %row.upload_id, "the parts of an upload are damaged");
        if !self.is_own(row) && !self.is_of_gone_server(row).await? {
            return Ok(elsewhere());
        }
        let message = "the parts of the upload are damaged";
        let damaged = Error::new(ErrorKind::RecordDamaged, message);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::clock::Timestamp;

    fn at_first() -> Parts {
        Parts { provider: ProviderCode::local(), last: Vec::new() }
    }

    /// Puts the part that ends at `end`; returns its size.
    fn extend(parts: &mut Parts, end: u64) -> u64 {
        let (offset, then) = (parts.start_of_next(end), Timestamp::from_millis(0));
        let organization = "42".parse().unwrap();
        let sub_system = SUB_SYSTEM.parse().unwrap();
        let key = BlobKey::new(&organization, &sub_system, then, BlobId::generate(then));
        let (provider, size_bytes) = (parts.provider.clone(), end - offset);
        parts.put(UploadPart { provider, key, offset, size_bytes, late_until: then });
        size_bytes
    }

    #[test]
    fn small_pieces_make_few_parts_and_write_no_byte_often() {
        const LENGTH: u64 = 64 << 20;
        for piece in [1 << 10, 60_000, 1 << 20, 5_000_000] {
            let (mut parts, mut written, mut end) = (at_first(), 0, 0);
            while end < LENGTH {
                end += piece;
                written += extend(&mut parts, end);
                let whole = usize::try_from(end / PART_BYTES).unwrap();
                assert!(parts.last.len() <= whole + SMALL_PARTS, "{} parts", parts.last.len());
            }
            let offsets: Vec<_> = parts.last.iter().map(|part| part.offset).collect();
            let ends: Vec<_> = parts.last.iter().map(UploadPart::end).collect();
            assert_eq!((offsets[0], &offsets[1..]), (0, &ends[..ends.len() - 1]), "no gap");
            let times = written / end;
            assert!(times <= SMALL_PARTS as u64, "pieces of {piece} are written {times} times");
        }
    }

    #[test]
    fn pieces_that_shrink_make_few_parts() {
        let (mut parts, mut end) = (at_first(), 0);
        for piece in (1..5000).rev() {
            end += piece;
            extend(&mut parts, end);
            assert!(parts.last.len() <= SMALL_PARTS);
        }
    }

    #[test]
    fn a_part_of_full_size_stays_as_it_is() {
        let mut parts = at_first();
        extend(&mut parts, PART_BYTES);
        assert_eq!(extend(&mut parts, 5 * PART_BYTES), 4 * PART_BYTES);
        assert_eq!(parts.last.len(), 2);
    }
}
