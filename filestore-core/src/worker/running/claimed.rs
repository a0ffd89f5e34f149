//! The claims of one lane: their owner, lease and end. And batches of work that a lane does in parallel.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::lane::LEASE;
use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::metadata::{Claims, Lease};

/// The claims that a lane has in the database.
pub(in crate::worker) struct LaneClaims {
    store: FileStore,
    kind: Claims,
    holder: ProviderCode,
    owner: String,
    /// True once the owner may have claims in the database.
    may_exist: AtomicBool,
}

impl LaneClaims {
    /// Begins without claims, with an owner that no other lane has.
    pub(in crate::worker) fn new(store: &FileStore, kind: Claims, holder: &ProviderCode) -> Self {
        let owner = store.inner().metadata.run_name();
        let may_exist = AtomicBool::new(false);
        Self { store: store.clone(), kind, holder: holder.clone(), owner, may_exist }
    }

    /// Returns the name under which the lane claims.
    pub(in crate::worker) fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns a lease from now on.
    pub(in crate::worker) fn lease(&self) -> Lease<'_> {
        let now = self.store.inner().now();
        Lease { owner: &self.owner, now, until: now.plus(LEASE) }
    }

    /// Takes note of the outcome of a claim. After an error, claims may exist.
    pub(in crate::worker) fn note<T>(&self, claimed: &Result<Vec<T>>) {
        if !matches!(claimed, Ok(none) if none.is_empty()) {
            self.may_exist.store(true, Ordering::Relaxed);
        }
    }

    /// Renews the leases, and the write intents of copies.
    pub(in crate::worker) async fn renew(&self) {
        let metadata = &self.store.inner().metadata;
        if let Err(error) = metadata.renew_claims(self.kind, self.lease()).await {
            let (kind, holder) = (self.kind, &self.holder);
            tracing::warn!(?kind, %holder, error = %error.chain(), "a lane could not renew its leases");
        }
    }

    /// Ends a run with this outcome. Gives back the claims that were not begun and, after an error, not finished.
    pub(in crate::worker) async fn release(&self, outcome: Result<()>) -> Result<()> {
        if !self.may_exist.load(Ordering::Relaxed) {
            return outcome;
        }
        let metadata = &self.store.inner().metadata;
        outcome.and(metadata.release_claims(self.kind, &self.owner).await)
    }
}

/// Batches of which at most a given number are worked on in parallel.
pub(in crate::worker) struct Batches<'c, T, F> {
    waiting: std::slice::Chunks<'c, T>,
    at_once: usize,
    working: FuturesUnordered<F>,
}

impl<'c, T, R, F: Future<Output = Vec<R>>> Batches<'c, T, F> {
    /// Splits `items` into batches of `size`.
    pub(in crate::worker) fn new(items: &'c [T], size: usize, at_once: usize) -> Self {
        Self { waiting: items.chunks(size), at_once, working: FuturesUnordered::new() }
    }

    /// Begins as many batches as are allowed.
    pub(in crate::worker) fn begin(&mut self, work: impl Fn(&'c [T]) -> F) {
        while self.working.len() < self.at_once
            && let Some(batch) = self.waiting.next()
        {
            self.working.push(work(batch));
        }
    }

    /// Waits for a batch, and returns the results of all batches that have ended by then. `None` if no batch is
    /// left.
    pub(in crate::worker) async fn next(&mut self) -> Option<Vec<R>> {
        let mut done = self.working.next().await?;
        while let Some(Some(more)) = self.working.next().now_or_never() {
            done.extend(more);
        }
        Some(done)
    }
}
