//! `fsck`: checks the whole store.

use std::fmt::Write as _;

use filestore_core::api::{FsckFinding, FsckReport, FsckRunRequest};
use tokio::sync::watch;

use crate::args::FsckArgs;
use crate::failure::{Exit, Result};
use crate::output::{Align, Output, Table, counted, plain, size};
use crate::target::Target;

/// Findings that are shown to people; JSON has all of a report.
const SHOWN: usize = 100;

/// Checks the store, and says by the exit status whether anything was found.
pub(super) async fn run(
    args: FsckArgs,
    target: &dyn Target,
    out: Output,
    stop: &watch::Sender<bool>,
) -> Result<Exit> {
    let mut request = FsckRunRequest::default();
    request.deep = args.deep;
    request.repair = args.repair;
    request.restart = args.restart;
    request.bytes_per_second = args.pace.map(|rate| rate.0);
    request.provider_code = args.provider;

    let meter = out.count_meter("checking");
    let checked = target.fsck(&request, stop.subscribe(), &meter).await;
    drop(meter);

    let report = checked.map_err(|e| e.doing("cannot check the store"))?;
    out.data(&report, |_| Vec::new(), text)?;
    Ok(exit(&report))
}

fn exit(report: &FsckReport) -> Exit {
    match report {
        report if report.found > 0 => Exit::Found,
        report if !report.clean => Exit::Refused,
        _ => Exit::Done,
    }
}

fn text(report: &FsckReport) -> String {
    let mut text = String::new();
    if !report.findings.is_empty() {
        text = findings(&report.findings);
        text.push('\n');
    }

    if report.ended_at.is_none() {
        text += "stopped: run the command again to go on from here\n";
    }
    let read =
        if report.deep { format!(" ({} read)", size(report.checked_bytes)) } else { String::new() };
    let _ = writeln!(
        text,
        "checked {}{read} and {}: {}",
        counted(report.checked_files, "file"),
        counted(report.checked_names, "name"),
        verdict(report)
    );

    for (provider, reason) in &report.postponed {
        let _ = writeln!(text, "not looked at: {}: {}", plain(provider), plain(reason));
    }
    for what in &report.not_looked_at {
        let _ = writeln!(text, "not looked at: {}", plain(what));
    }
    if report.repair && !report.repaired_by_kind.is_empty() {
        text += "what was moved to the quarantine can be moved back from there\n";
    }
    text
}

fn verdict(report: &FsckReport) -> String {
    if report.found == 0 {
        return "nothing found".to_owned();
    }

    let repaired: u64 = report.repaired_by_kind.values().sum();
    let kinds = report.found_by_kind.iter();
    let kinds: Vec<_> = kinds.map(|(kind, count)| format!("{count} {}", plain(kind))).collect();
    let mut verdict = format!("found {}", kinds.join(", "));
    if report.repair {
        let _ = write!(verdict, "; {repaired} set right or aside");
    }
    verdict
}

fn findings(all: &[FsckFinding]) -> String {
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
        let _ = writeln!(text, "and {} more: --json has them", all.len() - SHOWN);
    }
    text
}
