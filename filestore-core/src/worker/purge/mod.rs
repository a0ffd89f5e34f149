//! The purge: removes the bytes of deleted files, then their records. Also removes replaced blobs.
//!
//! Each holder has a lane for deleted files (`files`) and a lane for replaced blobs (`dropped`). Other
//! holders cannot delay them. The background runs each lane separately. A requested run executes all lanes in
//! parallel and waits for them. Such a run can also purge files before the end of their grace period, or only
//! files of one organization.
//!
//! # Crash safety
//! A file is claimed with a lease, and cannot be restored from then on. Its variants, its blob and its
//! replaced blobs are removed, and the directories are flushed. Only then its record is deleted, in the
//! transaction that writes its receipt. A crash leaves a claimed record. Its lease ends at the next start.

mod files;
mod dropped;

use futures_util::future::join_all;

use super::running::failures::Audience;
use super::running::lane;
use super::running::progress::{NoProgress, Progress};
use super::{backlog, upkeep};
use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::report::{PurgeOptions, PurgeReport, PurgeWhen};
use crate::domain::time::clock::Timestamp;
use crate::metadata::{DueFiles, PurgeBacklog};

use self::dropped::DroppedLane;
use self::files::{FileLane, LaneReport};

/// The maximum number of passes in a run. If a file has a replaced blob at another provider, the first pass
/// finds that the file must wait. In the second pass, that provider's lane removes the blob. The last pass
/// purges the file.
const PASSES: usize = 3;

/// The pause after the first failed attempt.
const FIRST_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Returns the deleted files for a run with these options at `now`.
fn due_files<'o>(store: &FileStore, options: &'o PurgeOptions, now: Timestamp) -> DueFiles<'o> {
    let marked_before = match options.when {
        PurgeWhen::Due => now.minus(store.config().purge_grace),
        // Also files that were deleted while the clock was ahead.
        PurgeWhen::Now => Timestamp::from_millis(i64::MAX),
    };
    DueFiles { marked_before, organization: options.organization.as_ref() }
}

/// Counts the files that a purge run with these options would remove now. Changes nothing.
pub(crate) async fn plan(store: &FileStore, options: &PurgeOptions) -> Result<PurgeReport> {
    let now = store.inner().now();
    let backlog = store.inner().metadata.purge_backlog(due_files(store, options, now), now).await?;

    Ok(PurgeReport {
        dry_run: true,
        expired: backlog.expired,
        purged: backlog.due,
        purged_bytes: backlog.due_bytes,
        blobs_removed: backlog.due_blobs,
        waiting: backlog.waiting,
        waiting_bytes: backlog.waiting_bytes,
        next_due_at: first_due(store, &backlog),
        ..PurgeReport::default()
    })
}

/// Returns the time at which the first waiting file becomes due.
fn first_due(store: &FileStore, backlog: &PurgeBacklog) -> Option<Timestamp> {
    backlog.first_mark.map(|mark| mark.plus(store.config().purge_grace))
}

/// Purges all due files: expired TEMP files, and deleted files and replaced blobs after their grace period.
/// Ends when no other work is due, or after the amount of work that was due at the start. Failed files stay
/// for later. Progress counts files and blobs.
#[cfg(test)]
pub(crate) async fn run_due(store: &FileStore, progress: &dyn Progress) -> Result<PurgeReport> {
    run(store, &PurgeOptions::default(), &|| false, progress).await
}

/// Purges the files that the options select. Ends when only failed files are left, after the amount of work
/// found at the start, or between two removals once `stop` returns true.
pub(super) async fn run(
    store: &FileStore,
    options: &PurgeOptions,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &dyn Progress,
) -> Result<PurgeReport> {
    let plan = plan(store, options).await?;
    let planned = plan.expired + plan.purged + plan.blobs_removed;
    progress.accepted();
    progress.start(Some(planned));

    let run = PurgeRun { store, options, stop, progress, audience: Audience::Caller };
    let budget = usize::try_from(planned).unwrap_or(usize::MAX).saturating_add(files::LOCAL_CLAIMS);
    let mut total = LaneReport::new(&run);
    total.report.expired =
        upkeep::expiry::mark_expired(store, options.organization.as_ref(), stop).await?;

    let mut was_awaiting = false;
    for _ in 0..PASSES {
        let dropped = run.dropped_budget(budget, was_awaiting);
        let is_awaiting = run.pass(budget, dropped, &mut total).await? > 0;
        // The lane that ended a wait ran beside the one that waited, and may have come after it.
        if !(is_awaiting || was_awaiting) || stop() {
            break;
        }
        was_awaiting = is_awaiting;
    }

    total.report.is_paused = !store.inner().background.may_remove();
    count_left(store, options, &mut total.report).await?;
    (total.report.failures, total.report.failed) = total.failures.into_parts();
    Ok(total.report)
}

/// Counts the files that wait for their grace period, and the files that stay because their provider is down
/// or not configured.
async fn count_left(
    store: &FileStore,
    options: &PurgeOptions,
    report: &mut PurgeReport,
) -> Result<()> {
    let now = store.inner().now();
    let left = store.inner().metadata.purge_backlog(due_files(store, options, now), now).await?;
    report.waiting = left.waiting;
    report.waiting_bytes = left.waiting_bytes;
    report.next_due_at = first_due(store, &left);

    let mut postponed = left.due_at;
    if options.organization.is_none() {
        for waiting in backlog::count(store).await? {
            *postponed.entry(waiting.provider).or_default() += waiting.dropped.count;
        }
    }
    postponed.retain(|provider, count| *count > 0 && lane::is_out(store, provider));
    report.postponed = postponed;
    Ok(())
}

/// Purges the selected deleted files at one holder.
pub(super) async fn run_files(
    store: &FileStore,
    holder: &ProviderCode,
    options: &PurgeOptions,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let run = PurgeRun::unattended(store, options, stop);
    FileLane::new(&run, holder).work(usize::MAX).await.map(drop)
}

/// Removes the due replaced blobs at one holder.
pub(super) async fn run_dropped(
    store: &FileStore,
    holder: &ProviderCode,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let options = PurgeOptions::default();
    let run = PurgeRun::unattended(store, &options, stop);
    DroppedLane::new(&run, holder).work(usize::MAX).await.map(drop)
}

/// The shared state of a run's lanes.
struct PurgeRun<'a> {
    store: &'a FileStore,
    options: &'a PurgeOptions,
    stop: &'a (dyn Fn() -> bool + Sync),
    progress: &'a dyn Progress,
    audience: Audience,
}

impl<'a> PurgeRun<'a> {
    fn unattended(
        store: &'a FileStore,
        options: &'a PurgeOptions,
        stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Self {
        Self { store, options, stop, progress: &NoProgress, audience: Audience::Nobody }
    }

    /// Returns the maximum number of replaced blobs that a pass removes. A run for one organization removes
    /// none at first. If one of its files waits for blobs elsewhere, the run removes all due blobs, because
    /// the file's blobs can be the last ones.
    fn dropped_budget(&self, budget: usize, is_awaiting: bool) -> usize {
        match self.options.organization {
            None => budget,
            Some(_) if is_awaiting => usize::MAX,
            Some(_) => 0,
        }
    }

    fn is_to_stop(&self) -> bool {
        (self.stop)() || !self.store.inner().background.may_remove()
    }

    /// Runs all lanes in parallel. Returns the number of files that wait for another lane.
    async fn pass(
        &self,
        budget: usize,
        dropped_budget: usize,
        total: &mut LaneReport,
    ) -> Result<u64> {
        let holders = lane::holders(self.store);
        let files: Vec<_> = holders.iter().map(|holder| FileLane::new(self, holder)).collect();
        let dropped: Vec<_> = holders.iter().map(|holder| DroppedLane::new(self, holder)).collect();
        let (files, dropped) = tokio::join!(
            join_all(files.iter().map(|lane| lane.work(budget))),
            join_all(dropped.iter().map(|lane| lane.work(dropped_budget))),
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

    /// Removes blobs from their stores. `Ok` if a blob is confirmed absent. Results have the given order.
    async fn remove(&self, blobs: Vec<(ProviderCode, BlobKey)>) -> Vec<Result<()>> {
        let inner = self.store.inner();
        let keys: Vec<_> = blobs.iter().map(|(_, key)| key.clone()).collect();
        inner.uploads.publishing.forget(&keys);
        inner.stores.remove(blobs).await
    }

    /// Returns the time of the next attempt at the holder, after `attempts` earlier attempts.
    fn retry_at(&self, holder: &ProviderCode, attempts: u32) -> Timestamp {
        let pause = lane::pause(self.store, holder, FIRST_PAUSE, attempts);
        self.store.inner().now().plus(pause)
    }
}

impl LaneReport {
    /// Adds the results of another lane in the same run.
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
