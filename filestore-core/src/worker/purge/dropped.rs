//! The lane of replaced blobs at one holder.
//!
//! If there are several servers, each claims its own blobs with a lease. A single server needs no claims.

use super::PurgeRun;
use super::files::LaneReport;
use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::metadata::{Claims, DueBlob};
use crate::service::opening::unflushed;
use crate::tasks::step::{Step, reached};
use crate::worker::running::claimed::{Batches, LaneClaims};
use crate::worker::running::lane::{self, Admission, while_renewing};

/// The number of local blobs in one list, which are removed with one sync of each directory.
const LOCAL_BLOBS: usize = 200;

/// The number of a provider's blobs in one list.
const CLOUD_BLOBS: usize = 64;

/// The number of objects that are removed in parallel.
const AT_ONCE: usize = 16;

/// A running lane.
pub(super) struct DroppedLane<'a> {
    run: &'a PurgeRun<'a>,
    holder: &'a ProviderCode,
    claims: LaneClaims,
}

impl<'a> DroppedLane<'a> {
    pub(super) fn new(run: &'a PurgeRun<'a>, holder: &'a ProviderCode) -> Self {
        Self { run, holder, claims: LaneClaims::new(run.store, Claims::Dropped, holder) }
    }

    /// Removes the due blobs of the holder, at most `budget`.
    pub(super) async fn work(&self, budget: usize) -> Result<LaneReport> {
        let mut report = LaneReport::new(self.run);
        let removing = self.remove_due(budget, &mut report);
        let outcome = while_renewing(removing, || self.claims.renew()).await;
        self.claims.release(outcome).await?;
        Ok(report)
    }

    async fn claim(&self, limit: usize) -> Result<Vec<DueBlob>> {
        let metadata = &self.run.store.inner().metadata;
        let due = metadata.claim_blobs(self.claims.lease(), self.holder, limit).await;
        self.claims.note(&due);
        due
    }

    async fn remove_due(&self, budget: usize, report: &mut LaneReport) -> Result<()> {
        let mut left = budget;

        while left > 0 && !self.run.is_to_stop() {
            let most = match lane::admission(self.run.store, self.holder) {
                Admission::Freely if self.holder.is_local() => LOCAL_BLOBS,
                Admission::Freely => CLOUD_BLOBS,
                Admission::OneTrial => 1,
                Admission::NotNow => break,
            };

            let due = self.claim(most.min(left)).await?;
            if due.is_empty() {
                break;
            }
            left -= due.len();

            // What replaced them has to be on the disk first.
            let grace = self.run.store.inner().config().blob_grace;
            unflushed::flush_older_than(self.run.store, grace).await?;
            self.remove(&due, report).await?;
        }
        Ok(())
    }

    async fn remove(&self, due: &[DueBlob], report: &mut LaneReport) -> Result<()> {
        let (batch, at_once) = if self.holder.is_local() { (LOCAL_BLOBS, 1) } else { (1, AT_ONCE) };
        let mut batches = Batches::new(due, batch, at_once);
        loop {
            batches.begin(|blobs| self.remove_some(blobs));
            let Some(removed) = batches.next().await else { return Ok(()) };
            self.settle(removed, report).await?;
        }
    }

    /// Removes blobs. Omits blobs that were not attempted because the provider is down.
    async fn remove_some<'b>(&self, blobs: &'b [DueBlob]) -> Vec<(&'b DueBlob, Result<()>)> {
        if self.run.is_to_stop()
            || lane::admission(self.run.store, self.holder) == Admission::NotNow
        {
            return Vec::new();
        }

        let keys = blobs.iter().map(|due| (self.holder.clone(), due.blob.key.clone())).collect();
        blobs.iter().zip(self.run.remove(keys).await).collect()
    }

    async fn settle(
        &self,
        removed: Vec<(&DueBlob, Result<()>)>,
        report: &mut LaneReport,
    ) -> Result<()> {
        let inner = self.run.store.inner();
        let mut absent = Vec::new();

        for (due, outcome) in removed {
            match outcome {
                Ok(()) => absent.push(due.clone()),
                Err(error) => {
                    tracing::warn!(
                        file_id = %due.blob.file_id,
                        holder = %self.holder,
                        attempts = due.attempts,
                        error = %error.chain(),
                        "a dropped blob could not be removed"
                    );
                    report.failures.note(due.blob.file_id, &error);
                    let retry_at = self.run.retry_at(self.holder, due.attempts);
                    inner.metadata.postpone_blob(due, retry_at).await?;
                }
            }
        }

        if !absent.is_empty() {
            reached(Step::DroppedRemoved);
            inner.metadata.finish_blobs(&absent, inner.now()).await?;
            reached(Step::DroppedFinished);
            report.count_removed(absent.iter().map(|_| self.holder.clone()));
            report.report.blobs_removed += absent.len() as u64;
            self.run.progress.advance(absent.len() as u64);
        }
        Ok(())
    }
}
