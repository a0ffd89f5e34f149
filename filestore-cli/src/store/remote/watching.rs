//! Shows the progress of a server's work. While the request runs, this module polls the status.

use std::pin::pin;
use std::time::Duration;

use filestore_client::Admin;
use filestore_client::admin::{Migrations, SyncQueue};
use filestore_core::admin::Progress as _;
use filestore_core::api::{
    FsckReport, FsckRunRequest, MigrateReport, SyncReport, SyncStatusReport,
};
use tokio::time::{MissedTickBehavior, interval};

use crate::failure::Result;
use crate::output::Meter;
use crate::store::operations::Stop;
use crate::store::request::Migration;

/// The time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Runs the sync and shows the queue's progress.
pub(super) async fn sync(queue: SyncQueue<'_>, meter: &Meter) -> Result<SyncReport> {
    if !meter.is_shown() {
        return Ok(queue.run().await?);
    }
    let before = queue.status().await?;
    meter.start(Some(waiting(&before)));
    let mut run = pin!(queue.run());

    let mut ticks = ticks();
    loop {
        tokio::select! {
            report = &mut run => return Ok(report?),
            _ = ticks.tick() => {
                // A failed poll only stops the bar, not the work.
                if let Ok(now) = queue.status().await {
                    meter.set(waiting(&before).saturating_sub(waiting(&now)));
                    meter.set_bytes(now.bytes_copied.saturating_sub(before.bytes_copied));
                }
            }
        }
    }
}

fn waiting(status: &SyncStatusReport) -> u64 {
    status.pending + status.syncing
}

/// Runs the migration, shows its progress, and stops it if the user wants to.
pub(super) async fn migration(
    migrations: Migrations<'_>,
    migration: &Migration,
    stop: Stop,
    meter: &Meter,
) -> Result<MigrateReport> {
    let Migration { organization, to, .. } = migration;
    let request = migration.request();

    if meter.is_shown() {
        meter.start(Some(migrations.plan(*organization, to).await?.move_files));
    }

    let poll = || async move {
        let status = if meter.is_shown() { migrations.status(*organization).await } else { return };

        if let Some(running) = status.ok().and_then(|status| status.running) {
            meter.set(running.files);
            meter.set_bytes(running.bytes);
        }
    };
    let request_stop = || async move {
        let _ = migrations.stop(*organization).await;
    };
    until_done(migrations.run(&request), stop, poll, request_stop).await
}

/// Runs the check, shows its progress, and stops it if the user wants to.
pub(super) async fn fsck(
    admin: Admin<'_>,
    request: &FsckRunRequest,
    stop: Stop,
    meter: &Meter,
) -> Result<FsckReport> {
    if meter.is_shown() {
        let sync = admin.sync().status().await?;
        let files = sync.none + sync.pending + sync.syncing + sync.synced + sync.failed;
        meter.start(Some(files));
    }

    let poll = || async move {
        let status = if meter.is_shown() { admin.fsck().status().await } else { return };
        if let Some(running) = status.ok().and_then(|status| status.running) {
            meter.set(running.checked_files);
            meter.set_bytes(running.checked_bytes);
            meter.set_message(running.part);
        }
    };

    let request_stop = || async move {
        let _ = admin.fsck().stop().await;
    };

    until_done(admin.fsck().run(request), stop, poll, request_stop).await
}

/// Awaits `run`. Calls `poll` at intervals, and `request_stop` if the user wants to stop.
async fn until_done<T, L, P>(
    run: impl Future<Output = Result<T, filestore_client::Error>>,
    mut stop: Stop,
    poll: impl Fn() -> L,
    request_stop: impl Fn() -> P,
) -> Result<T>
where
    L: Future<Output = ()>,
    P: Future<Output = ()>,
{
    let mut run = pin!(run);

    let mut ticks = ticks();
    loop {
        tokio::select! {
            report = &mut run => return Ok(report?),
            Ok(()) = stop.changed() => {}
            _ = ticks.tick() => poll().await,
        }

        // Repeats until the run ends, because the run might not have started at the first request.
        if *stop.borrow() {
            request_stop().await;
        }
    }
}

fn ticks() -> tokio::time::Interval {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
