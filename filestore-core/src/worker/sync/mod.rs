//! Sync: copies waiting files to their organization's provider.
//!
//! A file that needs no copy, or is already there, settles as NONE. Other files are claimed with a lease and
//! copied, several at a time, in the lane of their provider (`lane`). A failed copy is tried again after a
//! growing pause. After the last attempt, the file is FAILED and stays available at its old place. A failure
//! because of an outage counts no attempt.
//!
//! # How a file is copied
//! A copy begins with a write intent for a new key. The object is put and verified. One compare-and-set then
//! flips the record to the new object, and drops the old blob. A migration moves files in the same way from
//! any place. The remaining work follows from the records.
//!
//! Without `syncEnabled`, files are not synced. The request itself writes the staged bytes to the provider
//! before its commit (`service/providers/cloud_write.rs`).

mod lane;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::future::join_all;

use super::running::failures::{Audience, Failures};
use super::running::lane::is_out;
use super::running::progress::{NoProgress, Progress};
use super::{backlog, migrate};
use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::file::status::Location;
use crate::domain::id::{OrganizationId, OrganizationNumber};
use crate::domain::provider::ProviderCode;
use crate::domain::report::{OrganizationSyncStatus, SyncReport, SyncStatusReport};
use crate::metadata::SyncCounts;
use crate::service::providers::relocate::CopyMeter;

use self::lane::SyncLane;

/// The number of files settled or queued in one transaction. The number is small, so that uploads do not wait
/// long.
const PAGE: usize = 500;

/// Copies all waiting files to their providers, and settles files that need no copy. Ends when no file is
/// due, or after as many attempts as files waited at the start. Progress counts files and bytes.
pub(crate) async fn run(store: &FileStore, progress: Arc<dyn Progress>) -> Result<SyncReport> {
    run_until(store, &|| false, progress).await
}

/// Syncs like [`run`], but ends early once `stop` returns true, after the running copies.
pub(super) async fn run_until(
    store: &FileStore,
    stop: &(dyn Fn() -> bool + Sync),
    progress: Arc<dyn Progress>,
) -> Result<SyncReport> {
    let metadata = &store.inner().metadata;
    let waiting = metadata.sync_counts().await?.pending;
    progress.accepted();
    progress.start(Some(waiting));

    let settled = settle(store, stop, &*progress).await?;
    let mut report = SyncReport { settled, ..SyncReport::default() };

    let targets = store.providers().active_clouds();
    // Twice what waited: some of it may be attempted a second time.
    let budget = usize::try_from(waiting).unwrap_or(usize::MAX).saturating_add(8).saturating_mul(2);
    let lanes = targets.into_iter().map(|target| {
        SyncLane::new(store.clone(), target, Arc::clone(&progress), Audience::Caller)
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
    count_unsynced(store, &mut report).await?;
    Ok(report)
}

/// Counts the files that wait for providers that are down or not configured.
async fn count_unsynced(store: &FileStore, report: &mut SyncReport) -> Result<()> {
    for waiting in backlog::count(store).await? {
        if waiting.sync.count > 0 && is_out(store, &waiting.provider) {
            report.postponed.insert(waiting.provider, waiting.sync.count);
        }
    }
    Ok(())
}

/// Copies the due files of one provider.
pub(super) async fn run_lane(
    store: &FileStore,
    target: &ProviderCode,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let progress = Arc::new(NoProgress);
    let lane = SyncLane::new(store.clone(), target.clone(), progress, Audience::Nobody);
    lane.copy(usize::MAX, stop).await.map(drop)
}

/// Settles files that need no copy or are already there. Returns their number.
pub(super) async fn settle(
    store: &FileStore,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &dyn Progress,
) -> Result<u64> {
    let mut settled = 0;
    while !stop() {
        let some = store.inner().metadata.settle_sync(PAGE).await?.len() as u64;
        if some == 0 {
            break;
        }
        settled += some;
        progress.advance(some);
    }
    Ok(settled)
}

/// Queues the organization's READY files that are not at its provider yet, because they are older than the
/// binding. Returns `NoActiveBinding` without a binding. Queues no files if the binding names LOCAL.
pub(crate) async fn enqueue(store: &FileStore, organization: OrganizationNumber) -> Result<u64> {
    let (organization, target) = migrate::bound(store, organization).await?;
    let (mut queued, mut after) = (0, None);
    if store.providers().location(&target) == Location::Local {
        return Ok(0);
    }

    loop {
        let (some, next) =
            store.inner().metadata.enqueue_sync(&organization, &target, after, PAGE).await?;
        queued += some;
        after = next;
        if after.is_none() {
            store.inner().background.sync_wanted.notify();
            return Ok(queued);
        }
    }
}

/// Queues FAILED files again, of one organization or of all organizations.
pub(crate) async fn retry(
    store: &FileStore,
    organization: Option<OrganizationNumber>,
) -> Result<u64> {
    let organization = organization.map(OrganizationId::from);
    let mut queued = 0;

    loop {
        let some = store.inner().metadata.retry_sync(organization.as_ref(), PAGE).await?;
        queued += some;
        if some == 0 {
            store.inner().background.sync_wanted.notify();
            return Ok(queued);
        }
    }
}

/// Counts the files in each sync status, without deleted files, and the copies.
pub(crate) async fn status(store: &FileStore) -> Result<SyncStatusReport> {
    let SyncCounts { none, pending, syncing, synced, failed } =
        store.inner().metadata.sync_counts().await?;
    let (files_moved, bytes_copied) = store.inner().background.traffic.totals();
    Ok(SyncStatusReport { none, pending, syncing, synced, failed, files_moved, bytes_copied })
}

/// Counts the sync queue of an organization.
pub(crate) async fn status_of(
    store: &FileStore,
    organization: OrganizationNumber,
) -> Result<OrganizationSyncStatus> {
    let id = OrganizationId::from(organization);
    let metadata = &store.inner().metadata;
    let SyncCounts { pending, syncing, failed, .. } = metadata.sync_queue_of(&id).await?;
    let usage = metadata.usage(&id).await?;
    let live = usage.total().files.saturating_sub(usage.deleted.files);
    let done = live.saturating_sub(pending + syncing + failed);
    Ok(OrganizationSyncStatus { organization, pending, syncing, failed, done })
}

/// Creates the meter of a copy. The meter counts bytes for the store and for `progress`.
pub(super) fn meter(store: &FileStore, progress: &Arc<dyn Progress>) -> CopyMeter {
    let (store, progress) = (store.clone(), Arc::clone(progress));
    CopyMeter::new(move |bytes| {
        store.inner().background.traffic.add_bytes(bytes);
        progress.add_bytes(bytes);
    })
}
