//! The staged bytes of a request, from their arrival to the commit.
//!
//! # Cancellation
//! Until the request queues its commit, it owns its bytes. If the request is cancelled, the bytes are
//! discarded. A commit borrows the bytes while it runs in a task of its own. Borrowed bytes survive the end
//! of this task, so no record loses them. The next start discards bytes without a record.

use std::mem;

use parking_lot::Mutex;

use crate::domain::error::Result;
use crate::domain::id::{BlobId, OrganizationId};
use crate::service::Inner;
use crate::storage::StagedBlob;

/// Staged bytes without a record. A drop discards them.
pub(in crate::service) struct Staged(Mutex<Vec<StagedBlob>>);

/// Staged bytes that a running commit might name. A drop leaves them in staging.
pub(in crate::service) struct Lent(Vec<StagedBlob>);

impl Staged {
    pub(in crate::service) fn new(blobs: Vec<StagedBlob>) -> Self {
        Self(Mutex::new(blobs))
    }

    /// Counts the bytes for `organization`. `Busy` if the organization has reached its limit of staged bytes.
    pub(in crate::service) fn belong_to(&self, organization: &OrganizationId) -> Result<()> {
        self.0.lock().iter_mut().try_for_each(|blob| blob.belong_to(organization))
    }

    /// Gives the bytes to a commit before it is queued.
    pub(in crate::service) fn lend(&self) -> Lent {
        let mut blobs = mem::take(&mut *self.0.lock());
        blobs.iter_mut().for_each(StagedBlob::lend);
        Lent(blobs)
    }

    /// Takes back bytes that a commit certainly did not name.
    pub(in crate::service) fn take_back(&self, released: Vec<StagedBlob>) {
        self.0.lock().extend(released);
    }
}

impl Lent {
    /// Returns the ids of the bytes.
    pub(in crate::service) fn ids(&self) -> Vec<BlobId> {
        self.0.iter().map(|blob| blob.blob_id).collect()
    }

    /// Returns the ids of the bytes that no row of a resumable upload owns.
    pub(in crate::service) fn own_ids(&self) -> Vec<BlobId> {
        let own = self.0.iter().filter(|blob| !blob.is_owned_elsewhere());
        own.map(|blob| blob.blob_id).collect()
    }

    /// Takes the bytes back from a commit that certainly did not name them.
    pub(in crate::service) fn release(mut self) -> Vec<StagedBlob> {
        self.0.iter_mut().for_each(StagedBlob::release);
        self.0
    }
}

impl Inner {
    /// Discards the remaining bytes of a request before its reply.
    pub(in crate::service) async fn discard_rest(&self, staged: Staged) {
        let rest = staged.0.into_inner().into_iter().filter(|blob| !blob.is_owned_elsewhere());
        let rest: Vec<_> = rest.map(StagedBlob::keep).collect();
        if !rest.is_empty() {
            self.discard(rest).await;
        }
    }
}
