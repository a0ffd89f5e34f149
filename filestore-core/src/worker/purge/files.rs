//! The lane of deleted files at one holder.
//!
//! The lane works in this order, and each step can be repeated:
//! 1. Claim files with a lease. From now on, they cannot be restored.
//! 2. Remove the variants.
//! 3. Remove the bytes: the current blob and the replaced blobs.
//! 4. When all bytes are confirmed absent, delete the record. The same transaction writes the receipt.
//!
//! If bytes of a file cannot be removed, its record stays, and a later run tries again.
//!
//! A lane removes only bytes at its own holder and on the local disk. If a file has replaced blobs at another
//! provider, that provider's lane removes them, and the record waits.

use std::iter;
use std::time::Duration;

use super::{PurgeRun, due_files};
use crate::domain::error::{Error, Result};
use crate::domain::file::record::Blob;
use crate::domain::provider::ProviderCode;
use crate::domain::report::PurgeReport;
use crate::domain::report::receipt::{Content, RemovedBlob};
use crate::metadata::{Claims, Lease, PurgeClaim, Purged};
use crate::tasks::step::{Step, reached};
use crate::worker::running::claimed::{Batches, LaneClaims};
use crate::worker::running::failures::Failures;
use crate::worker::running::lane::{self, Admission, while_renewing};

/// The number of local files in one claim, which are removed with one sync of each directory.
pub(super) const LOCAL_CLAIMS: usize = 200;

/// The number of a provider's files in one claim. The number is small, so that a stop does not take long.
const CLOUD_CLAIMS: usize = 64;

/// The number of files whose objects are removed in parallel.
const AT_ONCE: usize = 16;

/// The maximum wait for replaced blobs at other providers before the file is checked again.
const AWAIT: Duration = Duration::from_mins(5);

/// A running lane, with the claims of one owner.
pub(super) struct FileLane<'a> {
    run: &'a PurgeRun<'a>,
    holder: &'a ProviderCode,
    claims: LaneClaims,
}

/// The report of a lane.
pub(super) struct LaneReport {
    pub(super) report: PurgeReport,
    pub(super) failures: Failures,
    /// The number of files that wait for another lane.
    pub(super) awaiting: u64,
}

/// The result of removing a claimed file's bytes.
struct Removal<'c> {
    claim: &'c PurgeClaim,
    outcome: Outcome,
    /// The blobs that are confirmed absent.
    removed: Vec<RemovedBlob>,
}

enum Outcome {
    /// All bytes are confirmed absent.
    Absent,
    /// All bytes are absent except bytes at other providers.
    Elsewhere,
    /// No work was done, because the lane must stop or its provider is down.
    Untouched,
    Failed(Error),
}

impl LaneReport {
    pub(super) fn new(run: &PurgeRun<'_>) -> Self {
        Self { report: PurgeReport::default(), failures: Failures::of(run.audience), awaiting: 0 }
    }

    /// Counts removed blobs by holder.
    pub(super) fn count_removed(&mut self, holders: impl IntoIterator<Item = ProviderCode>) {
        for holder in holders {
            *self.report.removed_at.entry(holder).or_default() += 1;
        }
    }
}

impl<'a> FileLane<'a> {
    pub(super) fn new(run: &'a PurgeRun<'a>, holder: &'a ProviderCode) -> Self {
        Self { run, holder, claims: LaneClaims::new(run.store, Claims::Purges, holder) }
    }

    /// Purges the due files of the holder, at most `budget`.
    pub(super) async fn work(&self, budget: usize) -> Result<LaneReport> {
        let mut report = LaneReport::new(self.run);
        let _working = self.run.store.inner().background.purging.begin();
        let purging = self.purge(budget, &mut report);
        let outcome = while_renewing(purging, || self.claims.renew()).await;
        self.claims.release(outcome).await?;
        Ok(report)
    }

    async fn purge(&self, budget: usize, report: &mut LaneReport) -> Result<()> {
        let mut left = budget;
        while left > 0 && !self.run.is_to_stop() {
            let most = match lane::admission(self.run.store, self.holder) {
                Admission::Freely if self.holder.is_local() => LOCAL_CLAIMS,
                Admission::Freely => CLOUD_CLAIMS,
                Admission::OneTrial => 1,
                Admission::NotNow => return Ok(()),
            };

            let claims = self.claim(most.min(left)).await?;
            if claims.is_empty() {
                return Ok(());
            }
            left -= claims.len();

            // A deletion that a power cut takes back must find its bytes.
            self.run.store.inner().metadata.flush().await?;
            self.purge_claimed(&claims, report).await?;
        }
        Ok(())
    }

    pub(super) async fn claim(&self, limit: usize) -> Result<Vec<PurgeClaim>> {
        let lease = self.claims.lease();
        let due = due_files(self.run.store, self.run.options, lease.now);
        let metadata = &self.run.store.inner().metadata;
        let claims = metadata.claim_purges(lease, self.holder, due, limit).await;
        self.claims.note(&claims);
        let claims = claims?;
        reached(Step::PurgeClaimed);
        Ok(claims)
    }

    /// Removes the bytes of each claim, and its record as soon as they are gone. A slow file does not delay
    /// other files.
    async fn purge_claimed(&self, claims: &[PurgeClaim], report: &mut LaneReport) -> Result<()> {
        // The disk syncs a directory once for all files that go from it.
        let (batch, at_once) =
            if self.holder.is_local() { (LOCAL_CLAIMS, 1) } else { (1, AT_ONCE) };
        let mut batches = Batches::new(claims, batch, at_once);
        loop {
            batches.begin(|claims| self.remove_bytes(claims));
            let Some(removed) = batches.next().await else { return Ok(()) };
            self.settle(removed, report).await?;
        }
    }

    /// Removes the variants and bytes of each claim, at this holder and on the local disk.
    async fn remove_bytes<'c>(&self, claims: &'c [PurgeClaim]) -> Vec<Removal<'c>> {
        let inner = self.run.store.inner();
        if self.run.is_to_stop()
            || lane::admission(self.run.store, self.holder) == Admission::NotNow
        {
            return claims.iter().map(|claim| Removal::new(claim, Outcome::Untouched)).collect();
        }

        let mut removals = Vec::with_capacity(claims.len());
        let (mut noted, mut blobs) = (Vec::new(), Vec::new());
        for (index, claim) in claims.iter().enumerate() {
            let variants = inner.pictures.engine.remove_file(claim.record.file_id).await;
            reached(Step::VariantsRemoved);
            removals.push(Removal::new(claim, self.outcome(claim, variants)));

            let Blob { provider, key, .. } = &claim.record.blob;
            let current = (provider, key, Some(Content::of(&claim.record.blob)));
            let dropped =
                claim.dropped.iter().map(|blob| (&blob.provider, &blob.key, blob.content));
            for (provider, key, content) in iter::once(current).chain(dropped) {
                if self.reaches(provider) {
                    noted.push((index, content));
                    blobs.push((provider.clone(), key.clone()));
                }
            }
        }

        let outcomes = self.run.remove(blobs.clone()).await;
        let now = inner.now();
        for (((index, content), (holder, key)), outcome) in
            noted.into_iter().zip(blobs).zip(outcomes)
        {
            match outcome {
                Ok(()) => removals[index].removed.push(RemovedBlob {
                    holder,
                    key,
                    content,
                    absent_at: now,
                    checked_at: now,
                }),
                Err(error) => removals[index].outcome = Outcome::Failed(error),
            }
        }
        removals
    }

    /// Returns true if this lane removes the bytes at this provider.
    fn reaches(&self, provider: &ProviderCode) -> bool {
        provider.is_local() || provider == self.holder
    }

    /// Returns the outcome for a claim after all bytes within this lane's reach are removed.
    fn outcome(&self, claim: &PurgeClaim, variants: Result<()>) -> Outcome {
        match variants {
            Err(error) => Outcome::Failed(error),
            Ok(()) if claim.dropped.iter().all(|blob| self.reaches(&blob.provider)) => {
                Outcome::Absent
            }
            Ok(()) => Outcome::Elsewhere,
        }
    }

    /// Deletes the records of completely removed files, and postpones the others.
    async fn settle(&self, removals: Vec<Removal<'_>>, report: &mut LaneReport) -> Result<()> {
        let metadata = &self.run.store.inner().metadata;
        let mut absent = Vec::with_capacity(removals.len());

        for Removal { claim, outcome, removed } in removals {
            report.count_removed(removed.iter().map(|blob| blob.holder.clone()));
            match outcome {
                Outcome::Absent => {
                    report.report.purged_bytes += claim.record.blob.size_bytes;
                    absent.push(Purged { file_id: claim.record.file_id, removed });
                }
                Outcome::Elsewhere => {
                    let now = self.run.store.inner().now();
                    let lease = Lease { owner: self.claims.owner(), now, until: now.plus(AWAIT) };
                    metadata.await_dropped(lease, &claim.record).await?;
                    report.awaiting += 1;
                }
                Outcome::Untouched => {}
                Outcome::Failed(error) => self.postpone(claim, &error, report).await?,
            }
        }

        if !absent.is_empty() {
            let now = self.run.store.inner().now();
            report.report.purged +=
                metadata.finish_purges(self.claims.owner(), &absent, now).await?;
            reached(Step::PurgeFinished);
            self.run.progress.advance(absent.len() as u64);
        }
        Ok(())
    }

    async fn postpone(
        &self,
        claim: &PurgeClaim,
        error: &Error,
        report: &mut LaneReport,
    ) -> Result<()> {
        let id = claim.record.file_id;
        tracing::warn!(file_id = %id, attempts = claim.attempts, error = %error.chain(), "a purge failed");
        report.failures.note(id, error);

        let retry_at = self.run.retry_at(self.holder, claim.attempts);
        self.run.store.inner().metadata.postpone_purge(self.claims.owner(), id, retry_at).await
    }
}

impl<'c> Removal<'c> {
    fn new(claim: &'c PurgeClaim, outcome: Outcome) -> Self {
        Self { claim, outcome, removed: Vec::new() }
    }
}
