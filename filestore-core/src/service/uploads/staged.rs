//! The staged bytes of a request, from their arrival to the commit that names them.
//!
//! # Cancellation
//! Until a commit is queued the request owns its bytes: if it is cancelled they are discarded. A commit
//! borrows them for as long as it runs, in a task of its own. Borrowed bytes outlive whatever happens
//! to that task, so that no record loses them; the next start discards what no record names.

use std::mem;

use parking_lot::Mutex;

use crate::domain::error::Result;
use crate::domain::id::{BlobId, OrganizationId};
use crate::service::Inner;
use crate::storage::StagedBlob;

/// Staged bytes that no record names. Dropping them discards them.
pub(in crate::service) struct Staged(Mutex<Vec<StagedBlob>>);

/// Staged bytes that a commit under way may name. Dropping them leaves them where they are.
pub(in crate::service) struct Lent(Vec<StagedBlob>);

impl Staged {
    pub(in crate::service) fn new(blobs: Vec<StagedBlob>) -> Self {
        Self(Mutex::new(blobs))
    }

    /// Counts the bytes as those of `organization`; `Busy` if it has as many staged as it may.
    pub(in crate::service) fn belong_to(&self, organization: &OrganizationId) -> Result<()> {
        self.0.lock().iter_mut().try_for_each(|blob| blob.belong_to(organization))
    }

    /// Hands the bytes to a commit that is about to be queued.
    pub(in crate::service) fn lend(&self) -> Lent {
        let mut blobs = mem::take(&mut *self.0.lock());
        blobs.iter_mut().for_each(StagedBlob::lend);
        Lent(blobs)
    }

    /// Takes back what a commit certainly did not name.
    pub(in crate::service) fn take_back(&self, released: Vec<StagedBlob>) {
        self.0.lock().extend(released);
    }
}

impl Lent {
    /// Returns the ids of the bytes.
    pub(in crate::service) fn ids(&self) -> Vec<BlobId> {
        self.0.iter().map(|blob| blob.blob_id).collect()
    }

    /// Takes the bytes back from a commit that certainly did not name them.
    pub(in crate::service) fn release(mut self) -> Vec<StagedBlob> {
        self.0.iter_mut().for_each(StagedBlob::release);
        self.0
    }
}

impl Inner {
    /// Discards what is left of a request's bytes before its reply.
    pub(in crate::service) async fn discard_rest(&self, staged: Staged) {
        let rest: Vec<_> = staged.0.into_inner().into_iter().map(StagedBlob::keep).collect();
        if !rest.is_empty() {
            self.discard(rest).await;
        }
    }
}
