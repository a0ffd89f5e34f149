//! The other ends of a resumable upload (steps R9 and R10): cancelled, expired, failed.

use super::ResumableUploads;
use super::state::End;
use super::turns::Wish;
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::resumable::{ResumableUpload, UploadAddress, UploadFailure, UploadStage};
use crate::domain::id::{BlobId, UploadId};
use crate::metadata::{UploadChange, UploadChanged, UploadRow};
use crate::service::FileStore;
use crate::tasks::step::{Step, reached};

/// Uploads looked at in one round.
const PAGE: usize = 200;

impl ResumableUploads<'_> {
    /// Cancels an upload: ends its running transfer and removes its bytes. If the upload is finished, the file stays.
    /// Afterwards, the upload is unknown. If another server has the bytes, the upload is `UploadGone` instead.
    ///
    /// Returns `NotFound` as [`status`](Self::status) does, and `Busy` if a commit of the upload takes too long.
    pub async fn cancel(self, address: &UploadAddress, scope: &Scope) -> Result<()> {
        let id = self.checked(address, scope).await?.upload_id;
        self.cancel_by_id(id, scope).await.map(drop)
    }

    /// Cancels an upload as [`cancel`](Self::cancel) does, for a caller that needs no token. Returns its last state.
    pub(crate) async fn cancel_by_id(self, id: UploadId, scope: &Scope) -> Result<ResumableUpload> {
        let state = &self.store.inner.uploads.resumable;
        loop {
            let turn = state.enter(id, Wish::Keep).await?;
            let row = self.row(id, scope).await?;
            if row.stage == UploadStage::Completing {
                drop(turn);
                self.until_finished(id).await?;
                continue;
            }
            if row.stage.is_live() && !self.is_own(&row) {
                // The other server finds the ended row, and removes the bytes.
                let failure = UploadFailure {
                    code: "cancelled".to_owned(),
                    message: "the upload was cancelled".to_owned(),
                };
                if self.end(&row, UploadStage::Failed, Some(failure)).await? {
                    return Ok(ResumableUpload::listed(row));
                }
                continue;
            }
            if self.store.inner.metadata.forget_upload(id, row.epoch).await? {
                self.note_cancelled(&row).await;
                return Ok(ResumableUpload::listed(row));
            }
        }
    }

    async fn note_cancelled(self, row: &UploadRow) {
        if row.stage == UploadStage::Finished {
            return;
        }
        reached(Step::ResumableEnded);
        if row.stage == UploadStage::Open {
            self.store.inner.uploads.resumable.note_end(row.upload_id, End::Cancelled);
        }
        self.store.inner.discard(vec![row.blob_id]).await;
    }

    /// Ends an upload, and removes its bytes; false if the row is another one by now.
    pub(super) async fn end(
        self,
        row: &UploadRow,
        stage: UploadStage,
        failure: Option<UploadFailure>,
    ) -> Result<bool> {
        let inner = &self.store.inner;
        let kept_until = inner.now().plus(inner.config().uploads.lifetime);
        let change = UploadChange::of(row, |next| {
            next.stage = stage;
            next.failure = failure;
            next.idempotency = None;
            next.expires_at = kept_until;
        });
        if inner.metadata.change_upload(change).await? != UploadChanged::Done {
            return Ok(false);
        }
        reached(Step::ResumableEnded);
        let end = if stage == UploadStage::Failed { End::Failed } else { End::Expired };
        inner.uploads.resumable.note_end(row.upload_id, end);
        clear(self.store).await?;
        Ok(true)
    }

    /// Returns an upload whose transfer does not let go. From now on that transfer commits nothing.
    pub(super) async fn seize(self, id: UploadId, scope: &Scope) -> Result<UploadRow> {
        let row = self.row(id, scope).await?;
        if row.stage != UploadStage::Open {
            return Ok(row);
        }
        let change = UploadChange::of(&row, |next| next.epoch += 1);
        let next = change.next.clone();
        if self.store.inner.metadata.change_upload(change).await? == UploadChanged::Done {
            return Ok(next);
        }
        let message = "another request of this upload does not end";
        Err(Error::new(ErrorKind::Busy, message).with_retry_after_secs(5))
    }
}

/// Ends uploads whose lifetime is over, removes the bytes of ended ones, and forgets those that ended long ago.
pub(crate) async fn upkeep(store: &FileStore) -> Result<()> {
    let expired = expire(store).await;
    let cleared = clear_all(store).await;
    let inner = store.inner();
    while inner.metadata.forget_ended(inner.now(), PAGE).await? == PAGE as u64 {}
    expired.and(cleared)
}

/// Expires uploads. Those that requests have are left alone up to the greatest age: their bytes move their expiry. An
/// upload that fails does not stop the others.
async fn expire(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let (now, max_age) = (inner.now(), inner.config().uploads.max_age);
    let mut outcome = Ok(());
    for row in inner.metadata.due_uploads(now, PAGE).await? {
        let is_too_old = row.created_at.plus(max_age) <= now;
        if is_too_old || !inner.uploads.resumable.is_in_use(row.upload_id) {
            let ended = store.resumable().end(&row, UploadStage::Expired, None).await;
            outcome = outcome.and(ended.map(drop));
        }
    }
    outcome
}

/// Removes the staged files of this server whose uploads ended at another server, and gives the room back of those that
/// another server continues.
async fn forget_copies(store: &FileStore) -> Result<()> {
    for (id, blob_id, epoch) in store.inner().uploads.resumable.copies() {
        forget_copy(store, id, blob_id, epoch).await?;
    }
    Ok(())
}

async fn forget_copy(store: &FileStore, id: UploadId, blob_id: BlobId, epoch: u64) -> Result<()> {
    let inner = store.inner();
    let state = &inner.uploads.resumable;
    let row = inner.metadata.upload(id).await?;
    let is_live = row.as_ref().is_some_and(|row| row.stage.is_live());
    // A record may have the file by now.
    let is_needed = is_live || !inner.metadata.live_local_keys(&[blob_id]).await?.is_empty();

    // A request can have brought the upload back since the list or the row was read.
    if state.is_in_use(id) || state.own_epoch(id) != Some(epoch) {
        return Ok(());
    }
    if row.is_none_or(|row| !store.resumable().is_own(&row)) {
        drop(state.held(id));
    }
    if is_live {
        return Ok(());
    }
    // No ended upload is live again, so no request needs the file from here on.
    drop(state.take_copy(id));
    if is_needed { Ok(()) } else { inner.stores.local().discard_staged(vec![blob_id]).await }
}

/// Removes the bytes of ended uploads from this server's disk, also those that it had before another server.
pub(crate) async fn clear_all(store: &FileStore) -> Result<()> {
    let cleared = clear(store).await;
    cleared.and(forget_copies(store).await)
}

/// Removes the bytes of ended uploads that this server had last.
async fn clear(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let server = inner.metadata.server_name();
    loop {
        let ended = inner.metadata.ended_uploads(&server, PAGE).await?;
        let (ids, blobs): (Vec<UploadId>, Vec<_>) = ended.into_iter().unzip();
        if ids.is_empty() {
            return Ok(());
        }
        inner.stores.local().discard_staged(blobs).await?;
        inner.metadata.note_cleared(&ids).await?;
        // An erasure has ended uploads behind their backs.
        for id in &ids {
            drop(inner.uploads.resumable.held(*id));
        }
        if ids.len() < PAGE {
            return Ok(());
        }
    }
}
