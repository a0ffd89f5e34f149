//! Watches work that a server does: while the request is under way, its progress is polled beside it.

use std::pin::pin;
use std::time::Duration;

use filestore_client::Admin;
use filestore_core::admin::Progress as _;
use filestore_core::api::{
    FsckReport, FsckRunRequest, MigrateReport, MigrateRunRequest, SyncReport, SyncStatusReport,
};
use tokio::time::{MissedTickBehavior, interval};

use crate::failure::Result;
use crate::output::Meter;
use crate::target::operations::Stop;
use crate::target::request::Migration;

/// The pause between two looks at the progress.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Runs the sync, and shows how the queue gets shorter.
pub(super) async fn sync(admin: Admin<'_>, meter: &Meter) -> Result<SyncReport> {
    if !meter.is_shown() {
        return Ok(admin.sync_run().await?);
    }
    let before = admin.sync_status().await?;
    meter.start(Some(waiting(&before)));
    let mut run = pin!(admin.sync_run());

    let mut ticks = ticks();
    loop {
        tokio::select! {
            report = &mut run => return Ok(report?),
            _ = ticks.tick() => {
                // A bar that stands still is no reason to give up the work.
                if let Ok(now) = admin.sync_status().await {
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

/// Runs the migration, shows its progress, and passes the user's wish to stop on.
pub(super) async fn migration(
    admin: Admin<'_>,
    migration: &Migration,
    stop: Stop,
    meter: &Meter,
) -> Result<MigrateReport> {
    let Migration { organization, to, bytes_per_second } = migration;
    let request = MigrateRunRequest::new(*organization, to).bytes_per_second(*bytes_per_second);

    if meter.is_shown() {
        meter.start(Some(admin.migrate_plan(*organization, to).await?.move_files));
    }
    let look = || async move {
        let status =
            if meter.is_shown() { admin.migrate_status(*organization).await } else { return };
        if let Some(running) = status.ok().and_then(|status| status.running) {
            meter.set(running.files);
            meter.set_bytes(running.bytes);
        }
    };
    let pass_on = || async move {
        let _ = admin.migrate_stop(*organization).await;
    };
    until_done(admin.migrate_run(&request), stop, look, pass_on).await
}

/// Runs the check, shows its progress, and passes the user's wish to stop on.
pub(super) async fn fsck(
    admin: Admin<'_>,
    request: &FsckRunRequest,
    stop: Stop,
    meter: &Meter,
) -> Result<FsckReport> {
    if meter.is_shown() {
        let sync = admin.sync_status().await?;
        let files = sync.none + sync.pending + sync.syncing + sync.synced + sync.failed;
        meter.start(Some(files));
    }
    let look = || async move {
        let status = if meter.is_shown() { admin.fsck_status().await } else { return };
        if let Some(running) = status.ok().and_then(|status| status.running) {
            meter.set(running.checked_files);
            meter.set_bytes(running.checked_bytes);
            meter.set_message(running.part);
        }
    };
    let pass_on = || async move {
        let _ = admin.fsck_stop().await;
    };
    until_done(admin.fsck_run(request), stop, look, pass_on).await
}

/// Awaits `run`; `look`s at its progress now and then, and `pass_on`s the user's wish to stop.
async fn until_done<T, L, P>(
    run: impl Future<Output = Result<T, filestore_client::Error>>,
    mut stop: Stop,
    look: impl Fn() -> L,
    pass_on: impl Fn() -> P,
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
            _ = ticks.tick() => look().await,
        }
        // Repeated until the run ends: at the first time it may not have begun yet.
        if *stop.borrow() {
            pass_on().await;
        }
    }
}

fn ticks() -> tokio::time::Interval {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
