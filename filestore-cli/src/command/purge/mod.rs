//! `purge`.

pub(super) mod receipt;

use std::fmt::Write as _;

use filestore_core::api::{PurgeReport, PurgeRunRequest};

use super::sync::postponed;
use crate::args::{PurgeCommand, PurgeRunArgs};
use crate::failure::{Exit, Result};
use crate::output::{Output, counted, plain, size, when};
use crate::store::Target;

/// `purge run`, `receipt` and `receipt-keys`.
pub(super) async fn run(command: PurgeCommand, target: &dyn Target, out: Output) -> Result<Exit> {
    match command {
        PurgeCommand::Run(args) => purge(args, target, out).await,
        PurgeCommand::Receipt { id, .. } => {
            let id = id.expect("clap requires it without --verify");
            receipt::show(&id, target, out).await
        }
        PurgeCommand::ReceiptKeys { rotate } => receipt::keys(rotate, target, out).await,
    }
}

/// `purge run`: removes deleted files, or only counts them.
async fn purge(args: PurgeRunArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let mut request = PurgeRunRequest::default();
    request.dry_run = args.dry_run;
    request.now = args.now;
    request.organization_id = args.org;

    let meter = out.count_meter("purging");
    let report = target.purge(&request, &meter).await.map_err(|e| e.doing("cannot purge"))?;
    drop(meter);
    out.report(&report, purge_text)?;
    let exit = out.failures("purge", &report.failures, report.failed);
    Ok(if report.postponed.is_empty() && !report.is_paused { exit } else { Exit::Refused })
}

fn purge_text(report: &PurgeReport) -> String {
    let [purged, removed, expired] = if report.dry_run {
        ["would purge", "would remove", "would expire"]
    } else {
        ["purged", "removed", "expired"]
    };

    let mut text = format!(
        "{purged} {} ({}), {removed} {}, {expired} {}, {}, {} failed",
        counted(report.purged, "file"),
        size(report.purged_bytes),
        counted(report.blobs_removed, "replaced blob"),
        counted(report.expired, "temporary file"),
        waiting(report.waiting, report.waiting_bytes, report.next_due_at.as_deref()),
        report.failed,
    );

    for (provider, blobs) in &report.removed_at {
        let _ = write!(text, "\nat {}: {removed} {}", plain(provider), counted(*blobs, "blob"));
    }
    postponed(&mut text, &report.postponed);
    if report.is_paused {
        text += "\nthe system clock jumped forward: the purge waits until the clock is correct or stable again";
    }
    text
}

/// Describes the deleted files in their grace period, and when the first file is due.
pub(super) fn waiting(files: u64, bytes: u64, next_due_at: Option<&str>) -> String {
    let mut text = format!("{} in the grace period", counted(files, "file"));
    if files > 0 {
        let _ = write!(text, " ({})", size(bytes));
    }
    if let Some(at) = next_due_at {
        let _ = write!(text, ", next due {} UTC", when(at));
    }
    text
}
