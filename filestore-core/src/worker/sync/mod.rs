//! Sync: files that wait for their organization's provider.
//!
//! A file that has nowhere to go, or is there already, settles as NONE. The others are claimed with a
//! lease and copied, several at a time, in the lane of their provider (`lane`); a copy that fails is
//! attempted again after a growing pause, and after the last attempt the file is FAILED and served
//! from where it is. What fails because the provider is out counts no attempt.
//!
//! # The way of a file
//! A copy begins with an intent for a new key. The object is put and verified; then the record is flipped to it
//! in one compare-and-set, which also drops the blob that it had. A migration moves files in the same way, from
//! wherever they are; what is left to do follows from the records. Without `syncEnabled` nothing comes this
//! way: staged bytes are written to the provider before the commit, in the request's own future
//! (`service/cloud_write.rs`).

mod lane;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::future::join_all;

use super::failures::{Audience, Failures};
use super::progress::{NoProgress, Progress};
use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::id::{OrganizationId, OrganizationNumber};
use crate::domain::provider::ProviderCode;
use crate::domain::report::{SyncReport, SyncStatusReport};
use crate::domain::status::Location;
use crate::metadata::SyncCounts;
use crate::service::relocate::CopyMeter;

use self::lane::SyncLane;

/// Files settled or queued in one transaction: small, so that uploads do not wait long behind it.
const PAGE: usize = 500;

impl FileStore {
    /// Settles every waiting file that has nowhere to go, and copies the others that are due. Ends when
    /// nothing is due any more, or once as much was attempted as waited at the start. Progress counts
    /// files, and bytes beside them.
    pub(crate) async fn sync_run(&self, progress: Arc<dyn Progress>) -> Result<SyncReport> {
        self.sync_until(&|| false, progress).await
    }

    /// Syncs as [`sync_run`](Self::sync_run) does, but ends early once `stop` returns true, when
    /// the copies under way are done.
    pub(super) async fn sync_until(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: Arc<dyn Progress>,
    ) -> Result<SyncReport> {
        let metadata = &self.inner().metadata;
        let waiting = metadata.sync_counts().await?.pending;
        progress.accepted();
        progress.start(Some(waiting));

        let settled = self.settle(stop, &*progress).await?;
        let mut report = SyncReport { settled, ..SyncReport::default() };

        let targets = self.providers().active_clouds();
        // Twice what waited: some of it may be attempted a second time.
        let budget =
            usize::try_from(waiting).unwrap_or(usize::MAX).saturating_add(8).saturating_mul(2);
        let lanes = targets.into_iter().map(|target| {
            SyncLane::new(self.clone(), target, Arc::clone(&progress), Audience::Caller)
                .copy(budget, stop)
        });

        let mut failures = Failures::of(Audience::Caller);
        let mut outcome = Ok(());
        for lane in join_all(lanes).await {
            match lane {
                Ok(lane) => {
                    report.synced += lane.synced;
                    report.synced_bytes += lane.synced_bytes;
                    failures.add(lane.failures);
                }
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome?;

        let counts = metadata.sync_counts().await?;
        report.waiting = counts.pending + counts.syncing;
        (report.failures, report.failed) = failures.into_parts();
        self.count_unsynced(&mut report).await?;
        Ok(report)
    }

    /// Counts what waits for providers that are out, or not configured.
    async fn count_unsynced(&self, report: &mut SyncReport) -> Result<()> {
        for waiting in self.backlog().await? {
            if waiting.sync.count > 0 && self.is_out(&waiting.provider) {
                report.postponed.insert(waiting.provider, waiting.sync.count);
            }
        }
        Ok(())
    }

    /// Copies the files that are due at one provider.
    pub(super) async fn sync_to(
        &self,
        target: &ProviderCode,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        let progress = Arc::new(NoProgress);
        let lane = SyncLane::new(self.clone(), target.clone(), progress, Audience::Nobody);
        lane.copy(usize::MAX, stop).await.map(drop)
    }

    /// Settles files that have nowhere to go, or are there already; returns how many.
    pub(super) async fn settle(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<u64> {
        let mut settled = 0;
        while !stop() {
            let some = self.inner().metadata.settle_sync(PAGE).await?.len() as u64;
            if some == 0 {
                break;
            }
            settled += some;
            progress.advance(some);
        }
        Ok(settled)
    }

    /// Queues the READY files of the organization that are not at its provider: those from before the
    /// binding. `NoActiveBinding` without one; nothing is queued if the binding names LOCAL.
    pub(crate) async fn sync_enqueue(&self, organization: OrganizationNumber) -> Result<u64> {
        let (organization, target) = self.bound(organization).await?;
        let (mut queued, mut after) = (0, None);
        if self.providers().location(&target) == Location::Local {
            return Ok(0);
        }

        loop {
            let (some, next) =
                self.inner().metadata.enqueue_sync(&organization, &target, after, PAGE).await?;
            queued += some;
            after = next;
            if after.is_none() {
                self.inner().sync_wanted.notify();
                return Ok(queued);
            }
        }
    }

    /// Queues FAILED files again, of one organization or of all.
    pub(crate) async fn sync_retry(&self, organization: Option<OrganizationNumber>) -> Result<u64> {
        let organization = organization.map(OrganizationId::from);
        let mut queued = 0;

        loop {
            let some = self.inner().metadata.retry_sync(organization.as_ref(), PAGE).await?;
            queued += some;
            if some == 0 {
                self.inner().sync_wanted.notify();
                return Ok(queued);
            }
        }
    }

    /// Counts the files in each sync status, deleted ones left out, and what was copied.
    pub(crate) async fn sync_status(&self) -> Result<SyncStatusReport> {
        let SyncCounts { none, pending, syncing, synced, failed } =
            self.inner().metadata.sync_counts().await?;
        let (files_moved, bytes_copied) = self.inner().traffic.totals();
        Ok(SyncStatusReport { none, pending, syncing, synced, failed, files_moved, bytes_copied })
    }
}

/// Makes the meter of a copy: it counts bytes for the store and for `progress`.
pub(super) fn meter(store: &FileStore, progress: &Arc<dyn Progress>) -> CopyMeter {
    let (store, progress) = (store.clone(), Arc::clone(progress));
    CopyMeter::new(move |bytes| {
        store.inner().traffic.add_bytes(bytes);
        progress.add_bytes(bytes);
    })
}
