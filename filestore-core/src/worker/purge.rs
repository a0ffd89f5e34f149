//! The purge: removes the bytes of deleted files, then their records.
//!
//! Order, each step repeatable: claim with a lease (no restore from here on) → variants → bytes, the
//! current blob and those it dropped → only when all are confirmed absent, the record. A file whose
//! bytes cannot be removed keeps its record; the removal is attempted again later.

use std::iter;

use super::back_off;
use super::progress::Progress;
use crate::FileStore;
use crate::domain::error::{Error, Result};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::report::{PurgeReport, WorkFailure};
use crate::metadata::{Lease, PurgeClaim};
use crate::tasks;

/// Files claimed at once.
const CLAIMS: usize = 200;

/// Length of the lease on a claim.
const LEASE: std::time::Duration = std::time::Duration::from_mins(10);

impl FileStore {
    /// Counts what a purge run would find now; changes nothing.
    pub(crate) async fn purge_plan(&self) -> Result<PurgeReport> {
        let now = self.inner().now();
        let backlog =
            self.inner().metadata.purge_backlog(now.minus(self.config().purge_grace), now).await?;

        Ok(PurgeReport {
            dry_run: true,
            expired: backlog.expired,
            purged: backlog.due,
            purged_bytes: backlog.due_bytes,
            blobs_removed: backlog.due_blobs,
            waiting: backlog.waiting,
            ..PurgeReport::default()
        })
    }

    /// Purges all that is due: expired TEMP files, deleted files past their grace period, dropped
    /// blobs past theirs. Ends when nothing due is left but what failed. Progress counts files and
    /// blobs.
    pub(crate) async fn purge_run(&self, progress: &dyn Progress) -> Result<PurgeReport> {
        self.purge_until(&|| false, progress).await
    }

    /// Purges as [`purge_run`](Self::purge_run) does, but ends early, between two claims, once
    /// `stop` returns true.
    pub(super) async fn purge_until(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<PurgeReport> {
        let plan = self.purge_plan().await?;
        progress.start(Some(plan.expired + plan.purged + plan.blobs_removed));

        let mut report =
            PurgeReport { expired: self.expire_temp().await?, ..PurgeReport::default() };

        let run = PurgeRun { store: self, owner: tasks::random_name(), progress };

        while !stop() && run.purge_some(&mut report).await? {}
        while !stop() && run.remove_blobs(&mut report).await? {}

        let now = self.inner().now();
        let left =
            self.inner().metadata.purge_backlog(now.minus(self.config().purge_grace), now).await?;
        report.waiting = left.waiting;
        Ok(report)
    }

    async fn expire_temp(&self) -> Result<u64> {
        let mut expired = 0;
        loop {
            let some = self.inner().metadata.expire_temp(self.inner().now(), CLAIMS).await?;
            expired += some;
            if some == 0 {
                return Ok(expired);
            }
        }
    }
}

struct PurgeRun<'a> {
    store: &'a FileStore,
    owner: String,
    progress: &'a dyn Progress,
}

/// A blob to remove, and the claim whose record waits for it.
struct Removal<'a> {
    claim_index: usize,
    provider: &'a ProviderCode,
    key: &'a BlobKey,
}

impl PurgeRun<'_> {
    /// Purges one claim's worth; false when nothing was due.
    async fn purge_some(&self, report: &mut PurgeReport) -> Result<bool> {
        let inner = self.store.inner();
        let now = inner.now();
        let before = now.minus(inner.config.purge_grace);
        let lease = Lease { owner: &self.owner, now, until: now.plus(LEASE) };
        let claims = inner.metadata.claim_purges(lease, before, CLAIMS).await?;
        if claims.is_empty() {
            return Ok(false);
        }

        let mut absent = Vec::with_capacity(claims.len());
        for (claim, outcome) in claims.iter().zip(self.remove_bytes(&claims, report).await) {
            match outcome {
                Ok(()) => {
                    report.purged_bytes += claim.record.blob.size_bytes;
                    absent.push(claim.record.file_id);
                }
                Err(error) => self.postpone(claim, &error, report).await?,
            }
        }

        report.purged += inner.metadata.finish_purges(&self.owner, &absent).await?;
        self.progress.advance(absent.len() as u64);
        Ok(true)
    }

    /// Removes variants and bytes of each claim; `Ok` where all of it is confirmed absent.
    async fn remove_bytes(
        &self,
        claims: &[PurgeClaim],
        report: &mut PurgeReport,
    ) -> Vec<Result<()>> {
        let inner = self.store.inner();
        let mut outcomes: Vec<Result<()>> = Vec::with_capacity(claims.len());
        let mut removals = Vec::with_capacity(claims.len());
        for (claim_index, claim) in claims.iter().enumerate() {
            outcomes.push(inner.variants.remove_file(claim.record.file_id).await);

            let current = (&claim.record.blob.provider, &claim.record.blob.key);
            let dropped = claim.dropped.iter().map(|blob| (&blob.provider, &blob.key));
            for (provider, key) in iter::once(current).chain(dropped) {
                removals.push(Removal { claim_index, provider, key });
            }
        }

        let blobs = removals.iter().map(|blob| (blob.provider.clone(), blob.key.clone())).collect();
        for (removal, outcome) in removals.iter().zip(self.remove(blobs, report).await) {
            if let Err(error) = outcome {
                outcomes[removal.claim_index] = Err(error);
            }
        }
        outcomes
    }

    /// Removes blobs from the stores that hold them; `Ok` where one is confirmed absent. In the order
    /// given.
    async fn remove(
        &self,
        blobs: Vec<(ProviderCode, BlobKey)>,
        report: &mut PurgeReport,
    ) -> Vec<Result<()>> {
        let inner = self.store.inner();
        let (holders, keys): (Vec<_>, Vec<_>) = blobs.iter().cloned().unzip();
        inner.publishing.forget(&keys);

        let outcomes = inner.stores.remove(blobs).await;
        for (holder, outcome) in holders.into_iter().zip(&outcomes) {
            if outcome.is_ok() {
                *report.removed_at.entry(holder).or_default() += 1;
            }
        }
        outcomes
    }

    async fn postpone(
        &self,
        claim: &PurgeClaim,
        error: &Error,
        report: &mut PurgeReport,
    ) -> Result<()> {
        let id = claim.record.file_id;
        tracing::warn!(file_id = %id, attempts = claim.attempts, error = %error.chain(), "a purge failed");
        report.failures.push(WorkFailure::new(id, error));
        let retry_at = self.store.inner().now().plus(back_off(claim.attempts));
        self.store.inner().metadata.postpone_purge(&self.owner, id, retry_at).await
    }

    /// Removes a page of dropped blobs; false when none was due.
    async fn remove_blobs(&self, report: &mut PurgeReport) -> Result<bool> {
        let inner = self.store.inner();
        let due = inner.metadata.due_blobs(inner.now(), CLAIMS).await?;
        if due.is_empty() {
            return Ok(false);
        }

        let blobs =
            due.iter().map(|due| (due.blob.provider.clone(), due.blob.key.clone())).collect();
        let outcomes = self.remove(blobs, report).await;

        let mut absent = Vec::new();
        for (due, outcome) in due.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => absent.push(due.id),
                Err(error) => {
                    report.failures.push(WorkFailure::new(due.blob.file_id, &error));
                    let retry_at = inner.now().plus(back_off(due.attempts));
                    inner.metadata.postpone_blob(due.id, retry_at).await?;
                }
            }
        }

        inner.metadata.finish_blobs(&absent).await?;
        report.blobs_removed += absent.len() as u64;
        self.progress.advance(absent.len() as u64);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::domain::clock::Timestamp;
    use crate::domain::config::{Durability, StoreConfig};
    use crate::domain::scope::Scope;
    use crate::service::NewUpload;
    use crate::worker::NoProgress;

    #[tokio::test]
    async fn a_run_that_is_stopped_leaves_the_rest_to_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let config = StoreConfig { durability: Durability::Process, ..StoreConfig::default() };
        let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
        for _ in 0..=CLAIMS {
            let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
            let id = store.upload(new, &b"bytes"[..]).await.unwrap().file_id;
            store.delete(id, &Scope::All).await.unwrap();
        }
        let asked = AtomicUsize::new(0);
        let after_one_claim = || asked.fetch_add(1, Ordering::SeqCst) > 0;
        let stopped = store.purge_until(&after_one_claim, &NoProgress).await.unwrap();
        assert_eq!((stopped.purged, stopped.waiting), (CLAIMS as u64, 0));
        assert_eq!(store.purge_run(&NoProgress).await.unwrap().purged, 1);
    }

    #[tokio::test]
    async fn a_record_stays_until_its_variants_are_gone_too() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        let id = store.upload(new, &b"bytes"[..]).await.unwrap().file_id;
        // Where the directory of its variants would be: nothing can be listed there.
        let text = id.to_string();
        let in_the_way = store.data_dir().variants().join(&text[24..]).join(&text);
        std::fs::create_dir_all(in_the_way.parent().unwrap()).unwrap();
        std::fs::write(&in_the_way, b"x").unwrap();

        store.delete(id, &Scope::All).await.unwrap();
        let report = store.purge_run(&NoProgress).await.unwrap();
        assert_eq!(report.purged, 0);
        assert_eq!(report.failures[0].file_id, id);
        assert!(store.info(id, &Scope::All).await.is_ok());

        std::fs::remove_file(&in_the_way).unwrap();
        let due = Timestamp::now().plus(back_off(40));
        let lease = Lease { owner: "later", now: due, until: due.plus(LEASE) };
        let inner = store.inner();
        let claims = inner.metadata.claim_purges(lease, due, CLAIMS).await.unwrap();
        let run = PurgeRun { store: &store, owner: "later".into(), progress: &NoProgress };
        assert!(
            run.remove_bytes(&claims, &mut PurgeReport::default()).await.iter().all(Result::is_ok)
        );
        assert_eq!(inner.metadata.finish_purges("later", &[id]).await.unwrap(), 1);
    }
}
