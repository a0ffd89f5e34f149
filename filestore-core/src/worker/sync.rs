//! Sync: files that wait for their organization's provider.
//!
//! A file that has nowhere to go, or is there already, settles as NONE. The others are claimed with a
//! lease and copied, several at a time; a copy that fails is attempted again after a growing
//! pause, and after the last attempt the file is FAILED and served from where it is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::back_off_from;
use super::progress::Progress;
use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::id::{FileId, OrganizationId, OrganizationNumber};
use crate::domain::provider::ProviderCode;
use crate::domain::report::{SyncReport, SyncStatusReport, WorkFailure};
use crate::domain::status::Location;
use crate::metadata::{Lease, SyncClaim, SyncCounts};
use crate::service::relocate::{CopyMeter, Moved};
use crate::tasks;

/// Files settled or queued in one transaction: small, so that uploads do not wait long behind it.
const PAGE: usize = 500;

/// Interval at which new files are looked for while copies are under way.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Length of the lease on a claim. Renewed while copies are under way.
const LEASE: Duration = Duration::from_mins(10);

impl FileStore {
    /// Settles every waiting file that has nowhere to go, and copies the others that are due. Ends when
    /// nothing is due any more. Progress counts files, and bytes beside them.
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
        progress.start(Some(metadata.sync_counts().await?.pending));

        let mut report = SyncReport::default();
        self.settle(stop, &*progress, &mut report).await?;

        let targets = self.providers().active_clouds();
        if !targets.is_empty() {
            let run = SyncRun::new(self.clone(), targets, progress);
            run.copy(stop, &mut report).await?;
        }

        let counts = metadata.sync_counts().await?;
        report.waiting = counts.pending + counts.syncing;
        Ok(report)
    }

    /// Settles files that have nowhere to go, or are there already.
    async fn settle(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
        report: &mut SyncReport,
    ) -> Result<()> {
        while !stop() {
            let settled = self.inner().metadata.settle_sync(PAGE).await?.len() as u64;
            if settled == 0 {
                break;
            }
            report.settled += settled;
            progress.advance(settled);
        }
        Ok(())
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
                self.inner().sync_wanted.notify_one();
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
                self.inner().sync_wanted.notify_one();
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

/// One run of the sync: the claims of one owner.
struct SyncRun {
    store: FileStore,
    owner: String,
    targets: Vec<ProviderCode>,
    progress: Arc<dyn Progress>,
    /// Claims whose copies have not begun.
    claimed: VecDeque<SyncClaim>,
    copies: JoinSet<(FileId, u32, u64, Result<Moved>)>,
    renew_at: Instant,
    last: Option<OrganizationId>,
}

impl SyncRun {
    fn new(store: FileStore, targets: Vec<ProviderCode>, progress: Arc<dyn Progress>) -> Self {
        Self {
            store,
            owner: tasks::random_name(),
            targets,
            progress,
            claimed: VecDeque::new(),
            copies: JoinSet::new(),
            renew_at: Instant::now() + LEASE / 3,
            last: None,
        }
    }

    async fn copy(
        mut self,
        stop: &(dyn Fn() -> bool + Sync),
        report: &mut SyncReport,
    ) -> Result<()> {
        let outcome = self.copy_all(stop, report).await;
        // What was claimed and not begun; after an error, also what was not finished.
        let released = self.store.inner().metadata.release_syncs(&self.owner).await;
        outcome.and(released)
    }

    async fn copy_all(
        &mut self,
        stop: &(dyn Fn() -> bool + Sync),
        report: &mut SyncReport,
    ) -> Result<()> {
        let at_once = self.store.config().sync.concurrency;
        let mut settle_at = Instant::now() + LOOK_AGAIN;

        loop {
            if !stop() {
                if self.claimed.len() < at_once / 2 + 1 {
                    self.claim(at_once).await?;
                }
                while self.copies.len() < at_once
                    && let Some(claim) = self.claimed.pop_front()
                {
                    self.begin(claim);
                }
            }

            if self.copies.is_empty() {
                return Ok(());
            }

            tokio::select! {
                Some(copied) = self.copies.join_next() => self.end(copied, report).await?,
                // Copies may take hours: what arrives meanwhile is not to wait for their end.
                () = self.store.inner().sync_wanted.notified() => {}
                () = sleep_until(settle_at) => {
                    settle_at = Instant::now() + LOOK_AGAIN;
                    self.store.settle(stop, &*self.progress, report).await?;
                }
                () = sleep_until(self.renew_at) => {
                    self.renew_at = Instant::now() + LEASE / 3;
                    let until = self.store.inner().now().plus(LEASE);
                    self.store.inner().metadata.renew_syncs(&self.owner, until).await?;
                }
            }
        }
    }

    async fn claim(&mut self, limit: usize) -> Result<()> {
        let now = self.store.inner().now();
        let lease = Lease { owner: &self.owner, now, until: now.plus(LEASE) };
        let metadata = &self.store.inner().metadata;
        let claims = metadata.claim_syncs(lease, &self.targets, self.last.as_ref(), limit).await?;

        if let Some(claim) = claims.last() {
            self.last = Some(claim.record.organization_id.clone());
        }
        self.claimed.extend(claims);
        Ok(())
    }

    fn begin(&mut self, claim: SyncClaim) {
        let store = self.store.clone();
        let meter = meter(&store, &self.progress);
        self.copies.spawn(async move {
            let SyncClaim { record, target, key, attempts } = claim;
            let moved = store.inner().move_out(&record, &target, key, meter).await;
            (record.file_id, attempts, record.blob.size_bytes, moved)
        });
    }

    async fn end(
        &self,
        copied: Result<(FileId, u32, u64, Result<Moved>), JoinError>,
        report: &mut SyncReport,
    ) -> Result<()> {
        let inner = self.store.inner();
        self.progress.advance(1);

        let (file, attempts, bytes, moved) = match copied {
            Ok(copied) => copied,
            Err(lost) => {
                // A panic: the end of the run gives the file back.
                tracing::error!(%lost, "a sync broke off");
                return Ok(());
            }
        };

        match moved {
            Ok(Moved::Done) => {
                inner.traffic.add_file();
                report.synced += 1;
                report.synced_bytes += bytes;
                Ok(())
            }
            Ok(Moved::Lost) => Ok(()),
            Err(error) => {
                let config = &inner.config.sync;
                let is_last = attempts + 1 >= config.max_attempts;
                let pause = back_off_from(config.first_pause, attempts);
                let retry_at = (!is_last).then(|| self.store.inner().now().plus(pause));
                tracing::warn!(file_id = %file, attempts, is_last, error = %error.chain(), "a sync failed");
                report.failures.push(WorkFailure::new(file, &error));
                inner.metadata.fail_sync(&self.owner, file, retry_at).await
            }
        }
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
