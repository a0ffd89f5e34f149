//! `sync`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use filestore_core::api::{
    OrganizationNumber, OrganizationSyncStatus, SyncQueueReport, SyncReport, SyncStatusReport,
};

use crate::args::SyncCommand;
use crate::failure::{Exit, Result};
use crate::output::{Align, Output, Table, counted, plain, size};
use crate::store::Target;

/// `sync run`, `enqueue`, `retry` and `status`.
pub(super) async fn run(command: SyncCommand, target: &dyn Target, out: Output) -> Result<Exit> {
    match command {
        SyncCommand::Run => copy(target, out).await,
        SyncCommand::Enqueue { org } => enqueue(org, target, out).await,
        SyncCommand::Retry { org } => retry(org, target, out).await,
        SyncCommand::Status { org: None } => status(target, out).await,
        SyncCommand::Status { org: Some(org) } => status_of(org, target, out).await,
    }
}

/// `sync run`: copies pending files to their provider.
async fn copy(target: &dyn Target, out: Output) -> Result<Exit> {
    let meter = out.count_meter("syncing");
    let report = target.sync(&meter).await.map_err(|e| e.doing("cannot sync"))?;
    drop(meter);
    out.report(&report, copy_text)?;
    Ok(out.failures("sync", &report.failures, report.failed))
}

fn copy_text(report: &SyncReport) -> String {
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

/// Adds a line for each provider that is unreachable or not configured.
pub(super) fn postponed(text: &mut String, waiting: &BTreeMap<String, u64>) {
    for (provider, count) in waiting {
        let _ = write!(
            text,
            "\n{count} waiting for {}, which is unreachable or not configured",
            plain(provider)
        );
    }
}

/// `sync enqueue`: queues an organization's older files.
async fn enqueue(
    organization: OrganizationNumber,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let doing = format!("cannot queue files of organization {organization}");
    let queued = target.sync_enqueue(organization).await.map_err(|e| e.doing(doing))?;
    queue_report(queued, out)
}

/// `sync retry`: queues failed files again.
async fn retry(
    organization: Option<OrganizationNumber>,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let queued =
        target.sync_retry(organization).await.map_err(|e| e.doing("cannot queue files again"))?;
    queue_report(queued, out)
}

fn queue_report(queued: u64, out: Output) -> Result<Exit> {
    let report = SyncQueueReport::new(queued);
    out.report(&report, |report| format!("queued {}", counted(report.queued, "file")))?;
    Ok(Exit::Done)
}

/// `sync status`: counts files by sync status.
async fn status(target: &dyn Target, out: Output) -> Result<Exit> {
    let report = target.sync_status().await.map_err(|e| e.doing("cannot count files"))?;
    out.report(&report, status_text)?;
    Ok(Exit::Done)
}

/// `sync status --org`: counts the queue of an organization.
async fn status_of(
    organization: OrganizationNumber,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let doing = format!("cannot count files of organization {organization}");
    let status = target.sync_status_of(organization).await.map_err(|e| e.doing(doing))?;
    out.report(&status, queue_text)?;
    Ok(Exit::Done)
}

fn queue_text(status: &OrganizationSyncStatus) -> String {
    let mut table = Table::new([("SYNC STATUS", Align::Left), ("FILES", Align::Right)]);
    for (status, count) in [
        ("PENDING", status.pending),
        ("SYNCING", status.syncing),
        ("FAILED", status.failed),
        ("all others", status.done),
    ] {
        table.row([status.to_owned(), count.to_string()]);
    }
    table.render()
}

fn status_text(report: &SyncStatusReport) -> String {
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
        let _ = write!(
            text,
            "\nsince the server started: {moved} moved, {} copied",
            size(report.bytes_copied)
        );
    }

    text
}
