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
pub(in crate::service) struct Held(Vec<StagedBlob>);

impl Staged {
    pub(in crate::service) fn new(blobs: Vec<StagedBlob>) -> Self {
        Self(Mutex::new(blobs))
    }

    /// Counts the bytes as those of `organization`; `Busy` if it has as many staged as it may.
    pub(in crate::service) fn belong_to(&self, organization: &OrganizationId) -> Result<()> {
        self.0.lock().iter_mut().try_for_each(|blob| blob.belong_to(organization))
    }

    /// Hands the bytes to a commit that is about to be queued.
    pub(in crate::service) fn hold(&self) -> Held {
        let mut blobs = mem::take(&mut *self.0.lock());
        blobs.iter_mut().for_each(StagedBlob::hold);
        Held(blobs)
    }

    /// Takes back what a commit certainly did not name.
    pub(in crate::service) fn take_back(&self, released: Vec<StagedBlob>) {
        self.0.lock().extend(released);
    }
}

impl Held {
    /// Returns the ids of the bytes.
    pub(in crate::service) fn ids(&self) -> Vec<BlobId> {
        self.0.iter().map(|blob| blob.blob_id).collect()
    }

    /// Returns the ids of the bytes that no row of a resumable upload owns.
    pub(in crate::service) fn own_ids(&self) -> Vec<BlobId> {
        let own = self.0.iter().filter(|blob| !blob.is_owned_elsewhere());
        own.map(|blob| blob.blob_id).collect()
    }

    /// Ends the commit's hold on bytes that it certainly did not name.
    pub(in crate::service) fn release(mut self) -> Vec<StagedBlob> {
        self.0.iter_mut().for_each(StagedBlob::release);
        self.0
    }
}

impl Inner {
    /// Discards what is left of a request's bytes before its reply.
    pub(in crate::service) async fn discard_rest(&self, staged: Staged) {
        let rest = staged.0.into_inner().into_iter().filter(|blob| !blob.is_owned_elsewhere());
        let rest: Vec<_> = rest.map(StagedBlob::keep).collect();
        if !rest.is_empty() {
            self.discard(rest).await;
        }
    }
}
