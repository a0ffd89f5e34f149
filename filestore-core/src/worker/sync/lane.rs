//! The lane of one provider: claims, copies and leases.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::meter;
use crate::FileStore;
use crate::domain::error::{Error, Result};
use crate::domain::id::OrganizationId;
use crate::domain::provider::ProviderCode;
use crate::metadata::{AfterFailure, Claims, SyncClaim};
use crate::service::providers::relocate::Moved;
use crate::service::spans;
use crate::service::work::wake::Listener;
use crate::tasks::step::{Step, reached};
use crate::worker::running::claimed::LaneClaims;
use crate::worker::running::failures::{Audience, Failures};
use crate::worker::running::lane::{self, Admission, LEASE};
use crate::worker::running::progress::Progress;

/// The interval between two searches for new files while copies are running.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// A running lane.
pub(super) struct SyncLane {
    store: FileStore,
    claims: LaneClaims,
    target: ProviderCode,
    progress: Arc<dyn Progress>,
    /// Claims whose copies have not started.
    claimed: VecDeque<SyncClaim>,
    copies: JoinSet<Copied>,
    wanted: Listener,
    renew_at: Instant,
    last: Option<OrganizationId>,
    report: LaneReport,
}

/// The report of a lane.
pub(super) struct LaneReport {
    pub(super) synced: u64,
    pub(super) synced_bytes: u64,
    pub(super) failures: Failures,
}

/// A completed copy.
struct Copied {
    claim: SyncClaim,
    moved: Result<Moved>,
}

impl SyncLane {
    pub(super) fn new(
        store: FileStore,
        target: ProviderCode,
        progress: Arc<dyn Progress>,
        audience: Audience,
    ) -> Self {
        let wanted = store.inner().background.sync_wanted.listen();
        let failures = Failures::of(audience);
        let claims = LaneClaims::new(&store, Claims::Syncs, &target);
        Self {
            store,
            claims,
            target,
            progress,
            claimed: VecDeque::new(),
            copies: JoinSet::new(),
            wanted,
            renew_at: Instant::now() + LEASE / 3,
            last: None,
            report: LaneReport { synced: 0, synced_bytes: 0, failures },
        }
    }

    /// Copies the due files, with at most `budget` attempts, until no file is due or `stop` returns true.
    pub(super) async fn copy(
        mut self,
        budget: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<LaneReport> {
        let outcome = self.copy_all(budget, stop).await;
        self.claims.release(outcome).await?;
        Ok(self.report)
    }

    async fn copy_all(&mut self, budget: usize, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let mut left = budget;
        let mut look_at = Instant::now() + LOOK_AGAIN;

        loop {
            if !stop() {
                self.begin_some(&mut left).await?;
            }
            if self.copies.is_empty() {
                return Ok(());
            }

            tokio::select! {
                biased;
                Some(copied) = self.copies.join_next() => self.end(copied).await?,
                // Copies may take hours: what arrives meanwhile is not to wait for their end.
                () = self.wanted.notified() => {}
                () = sleep_until(look_at) => look_at = Instant::now() + LOOK_AGAIN,
                () = sleep_until(self.renew_at) => self.renew().await,
            }
        }
    }

    /// Starts as many copies as the provider can get now.
    async fn begin_some(&mut self, left: &mut usize) -> Result<()> {
        let at_once = match lane::admission(&self.store, &self.target) {
            Admission::Freely => self.store.config().sync.concurrency,
            Admission::OneTrial => 1,
            Admission::NotNow => return Ok(()),
        };

        let is_low = self.claimed.len() < at_once / 2 + 1;
        let is_full = self.copies.len() + self.claimed.len() >= 2 * at_once;
        if is_low && !is_full && *left > 0 {
            self.claim(at_once.min(*left)).await?;
        }

        while self.copies.len() < at_once
            && *left > 0
            && let Some(claim) = self.claimed.pop_front()
        {
            *left -= 1;
            self.begin(claim);
        }
        Ok(())
    }

    async fn claim(&mut self, limit: usize) -> Result<()> {
        let lease = self.claims.lease();
        let metadata = &self.store.inner().metadata;
        let targets = std::slice::from_ref(&self.target);
        let unreadable = lane::unreadable(&self.store);

        let claims =
            metadata.claim_syncs(lease, targets, &unreadable, self.last.as_ref(), limit).await;
        self.claims.note(&claims);
        let claims = claims?;
        reached(Step::SyncClaimed);
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
            let SyncClaim { record, target, key, .. } = &claim;
            let moving = store.inner().move_out(record, target, key.clone(), meter);
            let moved = spans::within(spans::sync(record, target), Box::pin(moving)).await;
            Copied { claim, moved }
        });
    }

    /// Renews the claims. After a failure, the next renewal tries again, a third of a lease later.
    async fn renew(&mut self) {
        self.renew_at = Instant::now() + LEASE / 3;
        self.claims.renew().await;
    }

    async fn end(&mut self, copied: Result<Copied, JoinError>) -> Result<()> {
        self.progress.advance(1);
        let Copied { claim, moved } = match copied {
            Ok(copied) => copied,
            Err(lost) => {
                // A panic: the end of the run gives the file back.
                tracing::error!(%lost, "a sync broke off");
                return Ok(());
            }
        };

        match moved {
            Ok(Moved::Done) => {
                self.store.inner().background.traffic.add_file();
                self.report.synced += 1;
                self.report.synced_bytes += claim.record.blob.size_bytes;
                Ok(())
            }
            Ok(Moved::Lost) => Ok(()),
            Err(error) => self.fail(&claim, &error).await,
        }
    }

    async fn fail(&mut self, claim: &SyncClaim, error: &Error) -> Result<()> {
        let SyncClaim { record, attempts, .. } = claim;
        let config = self.store.config().sync;
        let now = self.store.inner().now();
        let pause = |provider| lane::pause(&self.store, provider, config.first_pause, *attempts);

        let next = if lane::is_out(&self.store, &self.target) {
            AfterFailure::Excuse(now.plus(pause(&self.target)))
        } else if lane::is_out(&self.store, &record.blob.provider) {
            AfterFailure::Excuse(now.plus(pause(&record.blob.provider)))
        } else if attempts + 1 >= config.max_attempts {
            AfterFailure::GiveUp(now)
        } else {
            AfterFailure::Postpone(now.plus(pause(&self.target)))
        };

        tracing::warn!(
            file_id = %record.file_id,
            attempts,
            ?next,
            error = %error.chain(),
            "a sync failed"
        );
        self.report.failures.note(record.file_id, error);
        let metadata = &self.store.inner().metadata;
        metadata.fail_sync(self.claims.owner(), record.file_id, next, error.message()).await
    }
}
