//! The lane of dropped blobs at one holder.

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::PurgeRun;
use super::files::LaneReport;
use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::metadata::DueBlob;
use crate::service::unflushed;
use crate::tasks::step::{Step, reached};
use crate::worker::lane::Admission;

/// Blobs of the service's disk listed at once, and removed with one sync of each directory.
const LOCAL_BLOBS: usize = 200;

/// Blobs of a provider listed at once.
const CLOUD_BLOBS: usize = 64;

/// Objects removed at the same time.
const AT_ONCE: usize = 16;

/// One lane at work.
pub(super) struct DroppedLane<'a> {
    run: &'a PurgeRun<'a>,
    holder: &'a ProviderCode,
}

impl<'a> DroppedLane<'a> {
    pub(super) fn new(run: &'a PurgeRun<'a>, holder: &'a ProviderCode) -> Self {
        Self { run, holder }
    }

    /// Removes what is due at the holder, `budget` blobs at most.
    pub(super) async fn work(&self, budget: usize) -> Result<LaneReport> {
        let mut report = LaneReport::new(self.run);
        let mut left = budget;

        while left > 0 && !self.run.is_to_stop() {
            let most = match self.run.store.admission(self.holder) {
                Admission::Freely if self.holder.is_local() => LOCAL_BLOBS,
                Admission::Freely => CLOUD_BLOBS,
                Admission::OneTrial => 1,
                Admission::NotNow => break,
            };

            let inner = self.run.store.inner();
            let due = inner.metadata.due_blobs(self.holder, inner.now(), most.min(left)).await?;
            if due.is_empty() {
                break;
            }
            left -= due.len();

            // What replaced them has to be on the disk first.
            unflushed::flush_older_than(self.run.store, inner.config().blob_grace).await?;
            self.remove(&due, &mut report).await?;
        }
        Ok(report)
    }

    async fn remove(&self, due: &[DueBlob], report: &mut LaneReport) -> Result<()> {
        let (batch, at_once) = if self.holder.is_local() { (LOCAL_BLOBS, 1) } else { (1, AT_ONCE) };
        let mut waiting = due.chunks(batch);
        let mut removing = FuturesUnordered::new();

        loop {
            while removing.len() < at_once
                && let Some(blobs) = waiting.next()
            {
                removing.push(self.remove_some(blobs));
            }

            let Some(mut removed) = removing.next().await else { return Ok(()) };
            while let Some(Some(more)) = removing.next().now_or_never() {
                removed.extend(more);
            }
            self.settle(removed, report).await?;
        }
    }

    /// Removes blobs; those that are not attempted, because the provider is out, are left out.
    async fn remove_some<'b>(&self, blobs: &'b [DueBlob]) -> Vec<(&'b DueBlob, Result<()>)> {
        if self.run.is_to_stop() || self.run.store.admission(self.holder) == Admission::NotNow {
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
