//! `fsck`: checks the whole store.

use std::fmt::Write as _;

use filestore_core::api::{FsckFinding, FsckReport, FsckRunRequest, FsckStatus, FsckSummary};
use tokio::sync::watch;

use crate::args::FsckArgs;
use crate::failure::{Exit, Result};
use crate::output::{Align, Output, Table, counted, plain, size, when};
use crate::store::{DetachedRun, Target};

/// Maximum number of findings in a table. JSON contains all of them.
const SHOWN: usize = 100;

/// Checks the store. The exit status tells whether the check has findings.
pub(super) async fn run(
    args: FsckArgs,
    target: &dyn Target,
    out: Output,
    stop: &watch::Sender<bool>,
) -> Result<Exit> {
    if args.status {
        return status(target, out).await;
    }
    let mut request = FsckRunRequest::default();
    request.deep = args.deep;
    request.repair = args.repair;
    request.restart = args.restart;
    request.bytes_per_second = args.pace.map(|rate| rate.0);
    request.provider_code = args.provider;

    if args.detach {
        let started = target.start(DetachedRun::Fsck(&request)).await;
        started.map_err(|e| e.doing("cannot start the check"))?;
        return status(target, out).await;
    }

    let meter = out.count_meter("checking");
    let checked = target.fsck(&request, stop.subscribe(), &meter).await;
    drop(meter);

    let report = checked.map_err(|e| e.doing("cannot check the store"))?;
    out.report(&report, report_text)?;
    Ok(exit_of(&report))
}

async fn status(target: &dyn Target, out: Output) -> Result<Exit> {
    let status = target.fsck_status().await.map_err(|e| e.doing("cannot read the last check"))?;
    out.report(&status, status_text)?;
    Ok(Exit::Done)
}

fn status_text(status: &FsckStatus) -> String {
    let mut lines = Vec::new();
    if let Some(running) = &status.running {
        lines.push(format!(
            "a {} is running: part {}, {} and {} checked ({} read), {} so far",
            if running.scrub { "scrub" } else { "check" },
            plain(&running.part),
            counted(running.checked_files, "file"),
            counted(running.checked_names, "name"),
            size(running.checked_bytes),
            counted(running.found, "finding"),
        ));
    }
    for (name, summary) in [("check", &status.last), ("scrub", &status.scrub)] {
        if let Some(summary) = summary {
            lines.push(format!("the last {name} {}", summary_text(summary)));
        }
    }
    if lines.is_empty() { "no check yet".to_owned() } else { lines.join("\n") }
}

fn summary_text(summary: &FsckSummary) -> String {
    let end = match &summary.ended_at {
        Some(ended_at) => format!("ended {} UTC", when(ended_at)),
        None => format!("began {} UTC and has not ended", when(&summary.started_at)),
    };
    let mut text = format!(
        "{end}: {} ({} read), {}, {} repaired or quarantined",
        counted(summary.checked_files, "file"),
        size(summary.checked_bytes),
        counted(summary.found, "finding"),
        summary.repaired,
    );
    if !summary.postponed.is_empty() {
        let places: Vec<_> = summary.postponed.iter().map(|place| plain(place)).collect();
        let _ = write!(text, ", not checked: {}", places.join(", "));
    }
    text
}

fn exit_of(report: &FsckReport) -> Exit {
    if report.found > 0 {
        Exit::Found
    } else if report.clean {
        Exit::Done
    } else {
        Exit::Refused
    }
}

fn report_text(report: &FsckReport) -> String {
    let mut text = String::new();
    if !report.findings.is_empty() {
        text = findings_table(&report.findings);
        text.push('\n');
    }

    if report.ended_at.is_none() {
        text += "stopped: run the command again to resume the check\n";
    }
    let read =
        if report.deep { format!(" ({} read)", size(report.checked_bytes)) } else { String::new() };
    let _ = writeln!(
        text,
        "checked {}{read} and {}: {}",
        counted(report.checked_files, "file"),
        counted(report.checked_names, "name"),
        summary(report)
    );

    for (provider, reason) in &report.postponed {
        let _ = writeln!(text, "not checked: {}: {}", plain(provider), plain(reason));
    }
    for place in &report.not_looked_at {
        let _ = writeln!(text, "not checked: {}", plain(place));
    }
    if report.repair && !report.repaired_by_kind.is_empty() {
        text += "you can move quarantined files back from the folder quarantine in the data directory\n";
    }
    text
}

fn summary(report: &FsckReport) -> String {
    if report.found == 0 {
        return "no findings".to_owned();
    }

    let repaired: u64 = report.repaired_by_kind.values().sum();
    let kinds = report.found_by_kind.iter();
    let kinds: Vec<_> = kinds.map(|(kind, count)| format!("{count} {}", plain(kind))).collect();
    let mut summary = format!("found {}", kinds.join(", "));
    if report.repair {
        let _ = write!(summary, ", {repaired} repaired or quarantined");
    }
    summary
}

fn findings_table(all: &[FsckFinding]) -> String {
    let columns = [
        ("FOUND", Align::Left),
        ("PLACE", Align::Left),
        ("NAME", Align::Left),
        ("DETAIL", Align::Left),
    ];

    let mut table = Table::new(columns);
    for finding in all.iter().take(SHOWN) {
        let mut detail = plain(&finding.detail);
        if !finding.action.is_empty() {
            let _ = write!(detail, "; {}: {}", plain(&finding.outcome), plain(&finding.action));
        }
        table.row([plain(&finding.kind), plain(&finding.place), plain(&finding.name), detail]);
    }

    let mut text = table.render();
    if all.len() > SHOWN {
        let _ = writeln!(text, "and {} more (to see all, use --json)", all.len() - SHOWN);
    }
    text
}
