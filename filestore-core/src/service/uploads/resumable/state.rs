//! What the requests of resumable uploads share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OnceCell, watch};

use super::turns::{Arrival, Turn, Turns, Wish};
use crate::domain::error::Result;
use crate::domain::id::{BlobId, UploadId};
use crate::service::uploads::quota::QuotaReservation;
use crate::storage::StagedPoint;

/// The resumable uploads of this process.
#[derive(Default)]
pub(in crate::service) struct ResumableState {
    turns: Arc<Turns>,
    /// The room that live uploads hold in the quotas of their organizations.
    quota: Mutex<HashMap<UploadId, QuotaReservation>>,
    /// The staged files of this server whose uploads other servers can take.
    copies: Mutex<HashMap<UploadId, Staged>>,
    /// Commits that run; each closes its channel at the end.
    finishing: Mutex<HashMap<UploadId, watch::Receiver<()>>>,
    /// The secret from which tokens are made.
    pub(super) secret: OnceCell<String>,
    ended: [AtomicU64; 4],
    stopping: watch::Sender<bool>,
}

impl ResumableState {
    /// Notes that a request arrives now.
    pub(super) fn arrive(&self) -> Arrival {
        self.turns.arrive()
    }

    /// Takes an upload for a request that arrives now, and ends the request that has it.
    pub(super) async fn enter(&self, id: UploadId, wish: Wish) -> Result<Turn> {
        self.turns.enter(id, self.arrive(), wish).await
    }

    /// Takes an upload for a request that arrived earlier, unless a newer request has it.
    pub(super) async fn enter_as(
        &self,
        id: UploadId,
        arrived: Arrival,
        wish: Wish,
    ) -> Result<Turn> {
        self.turns.enter(id, arrived, wish).await
    }

    /// Ends all transfers, and refuses new ones.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Resolves when all transfers have to end.
    pub(super) async fn stopped(&self) {
        // Fails only if the sender is gone, which is in `self`.
        self.stopping.subscribe().wait_for(|stopping| *stopping).await.ok();
    }

    /// Tests whether a request or a commit has the upload.
    pub(super) fn is_in_use(&self, id: UploadId) -> bool {
        self.turns.has(id) || self.is_finishing(id)
    }

    /// Returns the number of uploads that requests have now.
    pub(in crate::service) fn transfers(&self) -> usize {
        self.turns.count()
    }

    /// Holds room for an upload until it ends.
    pub(super) fn hold(&self, id: UploadId, reservation: Option<QuotaReservation>) {
        if let Some(reservation) = reservation {
            self.quota.lock().insert(id, reservation);
        }
    }

    /// Takes the held room out, to change it.
    pub(super) fn held(&self, id: UploadId) -> Option<QuotaReservation> {
        self.quota.lock().remove(&id)
    }

    /// Notes the staged file of an upload.
    pub(super) fn put_copy(&self, id: UploadId, staged: Staged) {
        self.copies.lock().insert(id, staged);
    }

    /// Takes the staged file of an upload out, to continue it.
    pub(super) fn take_copy(&self, id: UploadId) -> Option<Staged> {
        self.copies.lock().remove(&id)
    }

    /// Returns the epoch in which this server last had the upload.
    pub(super) fn own_epoch(&self, id: UploadId) -> Option<u64> {
        self.copies.lock().get(&id).map(|staged| staged.epoch)
    }

    /// Returns the number of bytes in the staged file that are those of the upload.
    pub(super) fn copied_bytes(&self, id: UploadId) -> u64 {
        self.copies.lock().get(&id).map_or(0, |staged| staged.point.size_bytes)
    }

    /// Lists the noted staged files, with the epochs in which this server last had them.
    pub(super) fn copies(&self) -> Vec<(UploadId, BlobId, u64)> {
        let copies = self.copies.lock();
        copies.iter().map(|(id, staged)| (*id, staged.blob_id, staged.epoch)).collect()
    }

    /// Gives the room of an ended upload back, and counts the end.
    pub(super) fn note_end(&self, id: UploadId, end: End) {
        self.quota.lock().remove(&id);
        self.ended[end as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many uploads have ended in this way since the start.
    pub(in crate::service) fn ended(&self, end: End) -> u64 {
        self.ended[end as usize].load(Ordering::Relaxed)
    }

    /// Notes that the commit of an upload runs, until the returned value is dropped.
    pub(super) fn begin_finish(self: &Arc<Self>, id: UploadId) -> Finishing {
        let (sender, receiver) = watch::channel(());
        self.finishing.lock().insert(id, receiver.clone());
        Finishing { state: Arc::clone(self), id, receiver, _sender: sender }
    }

    /// Tests whether the commit of an upload runs.
    pub(super) fn is_finishing(&self, id: UploadId) -> bool {
        self.finishing.lock().contains_key(&id)
    }

    /// Waits for the end of the commit that runs, if one does.
    pub(super) async fn finished(&self, id: UploadId) {
        let running = self.finishing.lock().get(&id).cloned();
        if let Some(mut running) = running {
            // An error is the end: the sender is gone.
            while running.changed().await.is_ok() {}
        }
    }
}

/// A staged file of this server whose upload other servers can take.
pub(super) struct Staged {
    pub(super) blob_id: BlobId,
    /// The epoch in which this server had the upload.
    pub(super) epoch: u64,
    /// Up to here, the bytes are those of the upload.
    pub(super) point: StagedPoint,
}

/// The way in which an upload has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum End {
    /// Its file exists.
    Finished,
    /// It can never succeed.
    Failed,
    /// Its lifetime is over.
    Expired,
    /// The caller cancelled it.
    Cancelled,
}

/// A commit that runs.
pub(super) struct Finishing {
    state: Arc<ResumableState>,
    id: UploadId,
    receiver: watch::Receiver<()>,
    _sender: watch::Sender<()>,
}

/// Removes the entry, if it is not that of a later commit.
impl Drop for Finishing {
    fn drop(&mut self) {
        let mut finishing = self.state.finishing.lock();
        if finishing.get(&self.id).is_some_and(|entry| entry.same_channel(&self.receiver)) {
            finishing.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::clock::Timestamp;

    #[test]
    fn the_end_of_a_commit_leaves_the_entry_of_a_later_one() {
        let state = Arc::new(ResumableState::default());
        let id = UploadId::generate(Timestamp::from_millis(1));
        let earlier = state.begin_finish(id);
        let later = state.begin_finish(id);
        drop(earlier);
        assert!(state.is_finishing(id));
        drop(later);
        assert!(!state.is_finishing(id));
    }
}
