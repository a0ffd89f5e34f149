//! `purge`, `sync`, `variants`, `usage`, `health`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use filestore_core::api::{
    DryRun, PurgeReport, SyncQueueReport, SyncReport, SyncStatusReport, UsageReply,
    VariantCacheReport, WorkFailure,
};

use crate::failure::{Exit, Failure, Result};
use crate::output::{Align, Output, Table, counted, plain, size};
use crate::target::Target;

/// `purge run`: removes what is due, or counts it.
pub(super) async fn purge(dry_run: DryRun, target: &dyn Target, out: Output) -> Result<Exit> {
    let meter = out.count_meter("purging");
    let report = target.purge(dry_run, &meter).await.map_err(|e| e.doing("cannot purge"))?;
    drop(meter);
    out.data(&report, |_| Vec::new(), purge_text)?;
    let exit = failures("purge", &report.failures, report.failed, out);
    Ok(if report.postponed.is_empty() && !report.is_paused { exit } else { Exit::Refused })
}

fn purge_text(report: &PurgeReport) -> String {
    let [purged, removed, expired] = if report.dry_run {
        ["would purge", "would remove", "would expire"]
    } else {
        ["purged", "removed", "expired"]
    };

    let mut text = format!(
        "{purged} {} ({}), {removed} {}, {expired} {}; {} within the grace, {} failed",
        counted(report.purged, "file"),
        size(report.purged_bytes),
        counted(report.blobs_removed, "replaced blob"),
        counted(report.expired, "temporary file"),
        report.waiting,
        report.failed,
    );

    for (provider, blobs) in &report.removed_at {
        let _ = write!(text, "\nat {}: {removed} {}", plain(provider), counted(*blobs, "blob"));
    }
    postponed(&mut text, &report.postponed);
    if report.is_paused {
        text += "\nthe clock leapt forward: nothing is removed until it is back or has settled";
    }
    text
}

/// `sync run`: copies what is waiting to its provider.
pub(super) async fn sync(target: &dyn Target, out: Output) -> Result<Exit> {
    let meter = out.count_meter("syncing");
    let report = target.sync(&meter).await.map_err(|e| e.doing("cannot sync"))?;
    drop(meter);
    out.data(&report, |_| Vec::new(), sync_text)?;
    Ok(failures("sync", &report.failures, report.failed, out))
}

fn sync_text(report: &SyncReport) -> String {
    let mut text = format!(
        "settled {}, synced {} ({}), {} waiting, {} failed",
        counted(report.settled, "file"),
        counted(report.synced, "file"),
        size(report.synced_bytes),
        report.waiting,
        report.failed,
    );
    postponed(&mut text, &report.postponed);
    text
}

/// Adds a line for each provider that does not answer, or is not configured.
fn postponed(text: &mut String, waiting: &BTreeMap<String, u64>) {
    for (provider, count) in waiting {
        let _ = write!(text, "\n{count} wait for {}, which does not answer", plain(provider));
    }
}

/// `sync enqueue`: queues an organization's older files.
pub(super) async fn sync_enqueue(
    organization: i64,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let doing = format!("cannot queue files of organization {organization}");
    let queued = target.sync_enqueue(organization).await.map_err(|e| e.doing(doing))?;
    queue_report(queued, out)
}

/// `sync retry`: queues failed files again.
pub(super) async fn sync_retry(
    organization: Option<i64>,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let queued =
        target.sync_retry(organization).await.map_err(|e| e.doing("cannot queue files again"))?;
    queue_report(queued, out)
}

fn queue_report(queued: u64, out: Output) -> Result<Exit> {
    let report = SyncQueueReport::new(queued);
    out.data(
        &report,
        |_| Vec::new(),
        |report| format!("queued {}", counted(report.queued, "file")),
    )?;
    Ok(Exit::Done)
}

/// Names the first of the files that are left, of `count` in all; the exit status says whether there
/// are any.
pub(super) fn failures(doing: &str, failures: &[WorkFailure], count: u64, out: Output) -> Exit {
    for failure in failures {
        let id = plain(&failure.file_id);
        out.failure(&Failure::refused(plain(&failure.error)).doing(format!("cannot {doing} {id}")));
    }
    if failures.is_empty() && count == 0 { Exit::Done } else { Exit::Refused }
}

/// `sync status`: counts files by sync status.
pub(super) async fn sync_status(target: &dyn Target, out: Output) -> Result<Exit> {
    let report = target.sync_status().await.map_err(|e| e.doing("cannot count files"))?;
    out.data(&report, |_| Vec::new(), sync_status_text)?;
    Ok(Exit::Done)
}

fn sync_status_text(report: &SyncStatusReport) -> String {
    let mut table = Table::new([("SYNC STATUS", Align::Left), ("FILES", Align::Right)]);
    for (status, count) in [
        ("NONE", report.none),
        ("PENDING", report.pending),
        ("SYNCING", report.syncing),
        ("SYNCED", report.synced),
        ("FAILED", report.failed),
    ] {
        table.row([status.to_owned(), count.to_string()]);
    }

    let mut text = table.render();
    if report.files_moved + report.bytes_copied > 0 {
        let moved = counted(report.files_moved, "file");
        let _ =
            write!(text, "\nsince the start: {moved} moved, {} copied", size(report.bytes_copied));
    }

    text
}

/// `variants status`: shows what the cache holds.
pub(super) async fn variants_status(target: &dyn Target, out: Output) -> Result<Exit> {
    let report = target.variants_status().await.map_err(|e| e.doing("cannot look at the cache"))?;
    out.data(&report, |_| Vec::new(), cache_text)?;
    Ok(Exit::Done)
}

/// `variants prune`: empties the cache.
pub(super) async fn variants_prune(target: &dyn Target, out: Output) -> Result<Exit> {
    let report = target.variants_prune().await.map_err(|e| e.doing("cannot empty the cache"))?;
    out.data(
        &report,
        |_| Vec::new(),
        |report| format!("removed {}", counted(report.removed, "variant")),
    )?;
    Ok(Exit::Done)
}

fn cache_text(report: &VariantCacheReport) -> String {
    let mut table =
        Table::new([("WHERE", Align::Left), ("VARIANTS", Align::Right), ("SIZE", Align::Right)]);
    table.row(["disk".to_owned(), report.disk_entries.to_string(), size(report.disk_bytes)]);
    table.row(["memory".to_owned(), report.memory_entries.to_string(), size(report.memory_bytes)]);

    let mut text = table.render();
    if report.intermediate_bytes > 0 {
        let _ = write!(
            text,
            "\n{} of decoded pictures kept for further sizes",
            size(report.intermediate_bytes)
        );
    }

    let VariantCacheReport { eager_waiting, eager_made, eager_dropped, .. } = report;
    if eager_waiting + eager_made + eager_dropped > 0 {
        let made = counted(*eager_made, "variant");
        let _ = write!(
            text,
            "\nin advance: {made} made, {} waiting, {} dropped",
            counted(*eager_waiting, "file"),
            counted(*eager_dropped, "file")
        );
    }

    text
}

/// `health`: checks that the target answers and can store.
pub(super) async fn health(target: &dyn Target, out: Output) -> Result<Exit> {
    let reply = target.health().await.map_err(|e| e.doing("not healthy"))?;
    out.data(
        &reply,
        |_| Vec::new(),
        |reply| {
            format!(
                "{}: database {}, storage {}",
                plain(&reply.message),
                plain(&reply.database),
                plain(&reply.storage)
            )
        },
    )?;

    Ok(Exit::Done)
}

/// `usage`: counts what an organization stores.
pub(super) async fn usage(org: &str, target: &dyn Target, out: Output) -> Result<Exit> {
    let usage = target.usage(org).await;
    let usage = usage.map_err(|e| e.doing(format!("cannot count the files of {org}")))?;
    out.data(&usage, |_| Vec::new(), usage_text)?;
    Ok(Exit::Done)
}

fn usage_text(usage: &UsageReply) -> String {
    let (local, cloud) = (&usage.by_location.local, &usage.by_location.cloud);
    let quota =
        [usage.quota_files.map(|files| counted(files, "file")), usage.quota_bytes.map(size)];
    let quota = quota.into_iter().flatten().collect::<Vec<_>>().join(", ");

    let rows = [
        ("stored", usage.files, usage.bytes),
        ("local", local.files, local.bytes),
        ("at providers", cloud.files, cloud.bytes),
    ];
    let mut text = String::new();
    for (label, files, bytes) in rows {
        let line = format!("{label:<13} {}, {}", counted(files, "file"), size(bytes));
        writeln!(text, "{line}").expect("a string takes every write");
    }
    text + &format!("{:<13} {}\n", "quota", if quota.is_empty() { "none" } else { &quota })
}
