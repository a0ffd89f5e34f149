//! The purge: removes the bytes of deleted files, then their records, and dropped blobs.
//!
//! Each holder has a lane of deleted files (`files`) and one of dropped blobs (`dropped`), which no
//! other holder delays. The background runs each lane by itself; a run that a caller asks for runs
//! them all beside each other and waits for them.
//!
//! # Crash safety
//! A file is claimed with a lease, from when on it cannot be restored. Its variants go, its blob and those it
//! dropped; the directories are flushed; only then its record is deleted, in the transaction that writes its
//! receipt. A crash leaves a claimed record, and its lease ends at the next start.

mod files;
mod dropped;

use futures_util::future::join_all;

use super::failures::Audience;
use super::progress::{NoProgress, Progress};
use crate::FileStore;
use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::report::PurgeReport;

use self::dropped::DroppedLane;
use self::files::{FileLane, LaneReport};

/// The most passes of a run. A file that dropped a blob at another provider is found to wait by the first,
/// and that provider's lane removes the blob in the second; the last purges the file.
const PASSES: usize = 3;

/// The wait of the first attempt that failed.
const FIRST_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

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
    /// blobs past theirs. Ends when nothing due is left but what failed, or once as much was done as
    /// was due at the start. Progress counts files and blobs.
    pub(crate) async fn purge_run(&self, progress: &dyn Progress) -> Result<PurgeReport> {
        self.purge_until(&|| false, progress).await
    }

    /// Purges as [`purge_run`](Self::purge_run) does, but ends early, between two removals, once
    /// `stop` returns true.
    pub(super) async fn purge_until(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<PurgeReport> {
        let plan = self.purge_plan().await?;
        let planned = plan.expired + plan.purged + plan.blobs_removed;
        progress.accepted();
        progress.start(Some(planned));

        let run = PurgeRun { store: self, stop, progress, audience: Audience::Caller };
        let budget =
            usize::try_from(planned).unwrap_or(usize::MAX).saturating_add(files::LOCAL_CLAIMS);
        let mut total = LaneReport::new(&run);
        total.report.expired = self.expire_temp(stop).await?;

        let mut was_awaiting = false;
        for _ in 0..PASSES {
            let is_awaiting = run.pass(budget, &mut total).await? > 0;
            // The lane that ended a wait ran beside the one that waited, and may have come after it.
            if !(is_awaiting || was_awaiting) || stop() {
                break;
            }
            was_awaiting = is_awaiting;
        }

        total.report.is_paused = !self.may_remove();
        let now = self.inner().now();
        let before = now.minus(self.config().purge_grace);
        total.report.waiting = self.inner().metadata.purge_backlog(before, now).await?.waiting;
        self.count_postponed(&mut total.report).await?;
        (total.report.failures, total.report.failed) = total.failures.into_parts();
        Ok(total.report)
    }

    /// Counts what is due and left to later because its provider is out, or not configured.
    async fn count_postponed(&self, report: &mut PurgeReport) -> Result<()> {
        for waiting in self.backlog().await? {
            let count = waiting.purge.count + waiting.dropped.count;
            if count > 0 && self.is_out(&waiting.provider) {
                report.postponed.insert(waiting.provider, count);
            }
        }
        Ok(())
    }

    /// Purges the deleted files that are due at one holder.
    pub(super) async fn purge_files_of(
        &self,
        holder: &ProviderCode,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        let run = PurgeRun::unattended(self, stop);
        FileLane::new(&run, holder).work(usize::MAX).await.map(drop)
    }

    /// Removes the dropped blobs that are due at one holder.
    pub(super) async fn remove_dropped_of(
        &self,
        holder: &ProviderCode,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        let run = PurgeRun::unattended(self, stop);
        DroppedLane::new(&run, holder).work(usize::MAX).await.map(drop)
    }
}

/// What the lanes of a run share.
struct PurgeRun<'a> {
    store: &'a FileStore,
    stop: &'a (dyn Fn() -> bool + Sync),
    progress: &'a dyn Progress,
    audience: Audience,
}

impl<'a> PurgeRun<'a> {
    fn unattended(store: &'a FileStore, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { store, stop, progress: &NoProgress, audience: Audience::Nobody }
    }

    fn is_to_stop(&self) -> bool {
        (self.stop)() || !self.store.may_remove()
    }

    /// Runs all lanes beside each other; returns how many files wait for another lane.
    async fn pass(&self, budget: usize, total: &mut LaneReport) -> Result<u64> {
        let holders = self.store.holders();
        let files: Vec<_> = holders.iter().map(|holder| FileLane::new(self, holder)).collect();
        let dropped: Vec<_> = holders.iter().map(|holder| DroppedLane::new(self, holder)).collect();
        let (files, dropped) = tokio::join!(
            join_all(files.iter().map(|lane| lane.work(budget))),
            join_all(dropped.iter().map(|lane| lane.work(budget))),
        );

        let (mut outcome, mut awaiting) = (Ok(()), 0);
        for lane in files.into_iter().chain(dropped) {
            match lane {
                Ok(lane) => {
                    awaiting += lane.awaiting;
                    total.add(lane);
                }
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome.map(|()| awaiting)
    }

    /// Removes blobs from the stores that hold them; `Ok` where one is confirmed absent. In the order
    /// given.
    async fn remove(&self, blobs: Vec<(ProviderCode, BlobKey)>) -> Vec<Result<()>> {
        let inner = self.store.inner();
        let keys: Vec<_> = blobs.iter().map(|(_, key)| key.clone()).collect();
        inner.publishing.forget(&keys);
        inner.stores.remove(blobs).await
    }

    /// Returns the instant of the next attempt at what failed at the holder after `attempts` others.
    fn retry_at(&self, holder: &ProviderCode, attempts: u32) -> Timestamp {
        let pause = self.store.pause(holder, FIRST_PAUSE, attempts);
        self.store.inner().now().plus(pause)
    }
}

impl LaneReport {
    /// Adds what another lane of the same run has done.
    fn add(&mut self, lane: Self) {
        let PurgeReport { purged, purged_bytes, blobs_removed, removed_at, .. } = lane.report;
        self.report.purged += purged;
        self.report.purged_bytes += purged_bytes;
        self.report.blobs_removed += blobs_removed;
        for (holder, count) in removed_at {
            *self.report.removed_at.entry(holder).or_default() += count;
        }
        self.failures.add(lane.failures);
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod receipt_tests;
