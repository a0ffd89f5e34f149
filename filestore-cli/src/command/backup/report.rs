//! The reports of `backup` as text, and their exit status.

use std::fmt::Write as _;
use std::num::NonZeroUsize;

use filestore_core::admin::CopiedFiles;
use filestore_core::api::{
    BackupError, BackupFault, BackupForgetReport, BackupPruneReport, BackupReport,
    BackupRestoreReport, BackupVerifyReport, RestoredKeys, Snapshot,
};
use serde::Serialize;
use serde_json::json;

use crate::command::metadata::moved_files;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Align, Output, Table, counted, plain, size, when};

/// Turns the failure in a report into the failure of the command.
fn check(error: Option<&BackupError>, doing: fn(Failure) -> Failure) -> Result<()> {
    match error {
        Some(error) => Err(doing(Failure::told(error.code.clone(), plain(&error.message)))),
        None => Ok(()),
    }
}

pub(super) fn create(report: &BackupReport, out: Output) -> Result<Exit> {
    check(report.error.as_ref(), |failure| failure.doing("cannot take a snapshot"))?;
    let Some(snapshot) = &report.snapshot else {
        return Err(Failure::failed("the server returned no snapshot and no error"));
    };
    out.data(
        report,
        |report| report.snapshot.iter().map(|made| made.snapshot_id.as_str()).collect(),
        |report| create_text(report, snapshot),
    )?;
    Ok(faults("saved", &report.faults, damage(snapshot), out))
}

fn create_text(report: &BackupReport, snapshot: &Snapshot) -> String {
    let mut text = format!(
        "snapshot {}: {}, {} ({}), copied {} ({}), {} already there",
        plain(&snapshot.snapshot_id),
        counted(snapshot.files, "file"),
        counted(snapshot.blobs, "content"),
        size(snapshot.bytes),
        report.copied,
        size(report.copied_bytes),
        report.reused,
    );
    if snapshot.elsewhere > 0 {
        let _ = write!(
            text,
            "\n{} listed but not copied, because providers store them",
            snapshot.elsewhere
        );
    }
    text + &damage_text(snapshot)
}

/// The number of contents and records that were damaged when the snapshot was taken.
fn damage(snapshot: &Snapshot) -> u64 {
    snapshot.damaged + snapshot.damaged_records
}

fn damage_text(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    if snapshot.damaged > 0 {
        let _ = write!(text, "\n{} damaged in the store", counted(snapshot.damaged, "content"));
    }
    if snapshot.damaged_records > 0 {
        let records = counted(snapshot.damaged_records, "record");
        let _ = write!(text, "\n{records} unreadable in the store: the snapshot lacks their bytes");
    }
    text
}

pub(super) fn list(snapshots: &[Snapshot], out: Output) -> Result<Exit> {
    out.each(snapshots, |snapshot| &snapshot.snapshot_id, list_text)?;
    Ok(Exit::Done)
}

fn list_text(snapshots: &[Snapshot]) -> String {
    if snapshots.is_empty() {
        return "no snapshots".to_owned();
    }

    let columns = [
        ("SNAPSHOT", Align::Left),
        ("OF", Align::Left),
        ("FILES", Align::Right),
        ("CONTENTS", Align::Right),
        ("SIZE", Align::Right),
        ("NOTE", Align::Left),
    ];

    let mut table = Table::new(columns);
    for snapshot in snapshots {
        table.row([
            plain(&snapshot.snapshot_id),
            when(&snapshot.created_at),
            snapshot.files.to_string(),
            snapshot.blobs.to_string(),
            size(snapshot.bytes),
            notes(snapshot),
        ]);
    }
    table.render()
}

fn notes(snapshot: &Snapshot) -> String {
    let mut notes = Vec::new();
    if snapshot.shares_disk {
        notes.push("shares the disk of the store".to_owned());
    }

    if snapshot.elsewhere > 0 {
        notes.push(format!("{} at providers", snapshot.elsewhere));
    }
    if snapshot.damaged > 0 {
        notes.push(format!("{} damaged", snapshot.damaged));
    }
    if snapshot.damaged_records > 0 {
        notes.push(format!("{} unreadable", counted(snapshot.damaged_records, "record")));
    }

    notes.join(", ")
}

pub(super) fn verify(report: &BackupVerifyReport, out: Output) -> Result<Exit> {
    check(report.error.as_ref(), cannot_verify)?;
    out.report(report, verify_text)?;
    let bad = report.missing + report.wrong + u64::from(!report.database_ok);
    Ok(faults("good", &report.faults, bad + damage(&report.snapshot), out))
}

fn verify_text(report: &BackupVerifyReport) -> String {
    let mut text = format!(
        "verified snapshot {}: {} ({}), {} missing, {} wrong, the database copy is {}",
        plain(&report.snapshot.snapshot_id),
        counted(report.checked, "content"),
        size(report.checked_bytes),
        report.missing,
        report.wrong,
        if report.database_ok { "good" } else { "damaged" },
    );

    if report.set_aside > 0 {
        let _ = write!(
            text,
            "\n{} moved aside: the next snapshot copies them from the store again",
            counted(report.set_aside, "content")
        );
    }
    if report.snapshot.shares_disk {
        text += "\nthe snapshot shares the disk of the store, so a disk failure damages both";
    }
    if report.snapshot.elsewhere > 0 {
        let _ = write!(text, "\n{} at providers were not read", report.snapshot.elsewhere);
    }

    text + &damage_text(&report.snapshot)
}

pub(super) fn prune(report: &BackupPruneReport, out: Output) -> Result<Exit> {
    check(report.error.as_ref(), cannot_prune)?;
    out.data(
        report,
        |report| report.removed.iter().map(String::as_str).collect(),
        |report| {
            format!(
                "removed {}, {} ({}), {} kept",
                counted(report.removed.len() as u64, "snapshot"),
                counted(report.blobs_removed, "content"),
                size(report.bytes_removed),
                report.kept.len(),
            )
        },
    )?;
    Ok(Exit::Done)
}

/// The effect of a prune, as `--json` prints it.
#[derive(Debug, Serialize)]
struct PrunePlan {
    dry_run: bool,
    removed: Vec<String>,
    kept: Vec<String>,
}

/// Shows the snapshots that a prune would remove. The list starts with the oldest snapshot.
pub(super) fn prune_plan(
    snapshots: Vec<Snapshot>,
    keep: NonZeroUsize,
    out: Output,
) -> Result<Exit> {
    let mut removed: Vec<_> = snapshots.into_iter().map(|one| one.snapshot_id).collect();
    let kept = removed.split_off(removed.len().saturating_sub(keep.get()));
    let plan = PrunePlan { dry_run: true, removed, kept };
    out.data(
        &plan,
        |plan| plan.removed.iter().map(String::as_str).collect(),
        |plan| {
            let lines = plan.removed.iter().map(|id| format!("\n  {}", plain(id)));
            let removed = counted(plan.removed.len() as u64, "snapshot");
            format!("would remove {removed}, {} kept", plan.kept.len()) + &lines.collect::<String>()
        },
    )?;
    Ok(Exit::Done)
}

pub(super) fn forget(report: &BackupForgetReport, out: Output) -> Result<Exit> {
    let text =
        |report: &BackupForgetReport| format!("forgot {}", counted(report.forgotten, "disk"));
    out.report(report, text)?;
    Ok(Exit::Done)
}

pub(super) fn restore(report: &BackupRestoreReport, out: Output) -> Result<Exit> {
    check(report.error.as_ref(), cannot_restore)?;
    out.report(report, restore_text)?;
    Ok(faults("restored", &report.faults, report.failed + report.damaged_records, out))
}

/// Shows a whole store that was restored, with the files that moved on to the backend.
pub(super) fn restored_store(
    report: &BackupRestoreReport,
    moved: Option<&CopiedFiles>,
    out: Output,
) -> Result<Exit> {
    let Some(moved) = moved else { return restore(report, out) };
    let shown = RestoredAndMoved { report, moved: json_of(moved) };
    out.report(&shown, |_| format!("{}\n{}", restore_text(report), moved_files::text(moved)))?;

    let count = report.failed + report.damaged_records;
    let exit = faults("restored", &report.faults, count, out);
    Ok(exit.max(moved_files::conclude(moved, out)))
}

#[derive(Serialize)]
struct RestoredAndMoved<'r> {
    #[serde(flatten)]
    report: &'r BackupRestoreReport,
    moved: serde_json::Value,
}

fn json_of(moved: &CopiedFiles) -> serde_json::Value {
    json!({
        "files": moved.files,
        "bytes": moved.bytes,
        "failed": moved.failed,
        "failures": moved_files::failures_of(moved),
        "damaged": moved_files::damaged_of(moved),
        "is_complete": moved.is_complete,
    })
}

fn restore_text(report: &BackupRestoreReport) -> String {
    let mut text = format!(
        "restored {} ({}), {} failed",
        counted(report.restored, "file"),
        size(report.restored_bytes),
        report.failed,
    );

    if report.present > 0 {
        let _ = write!(text, ", {} already in the store", report.present);
    }
    if report.left_at_providers > 0 {
        let _ = write!(text, ", {} compared at their providers", report.left_at_providers);
    }
    if report.damaged_records > 0 {
        let records = counted(report.damaged_records, "record");
        let _ =
            write!(text, "\n{records} unreadable in the snapshot: their files are not restored");
    }

    if let Some(keys) = &report.keys {
        text += &keys_text(keys);
    }
    text
}

/// Lists the keys and signing secrets from a snapshot, with their new state.
fn keys_text(restored: &RestoredKeys) -> String {
    let RestoredKeys { keys, signing_secrets, .. } = restored;
    if keys.is_empty() && signing_secrets.is_empty() {
        return String::new();
    }

    let all = format!(
        "{} and {}",
        counted(keys.len() as u64, "API key"),
        counted(signing_secrets.len() as u64, "signing secret")
    );
    let taken_at = when(&restored.taken_at);
    let mut text = if restored.revoked {
        format!("\nrevoked {all} of the snapshot. To create a key, run `filestore key create`")
    } else {
        format!(
            "\n{all} are valid again as of {taken_at}, even if you revoked or rotated them since. \
             Revoke the ones that you no longer trust:"
        )
    };

    if !restored.revoked {
        for key in keys {
            let (id, name) = (plain(&key.id), plain(&key.name));
            let _ = write!(text, "\n  key {id} {name} ({})", plain(&key.scopes.join(", ")));
        }
        for secret in signing_secrets {
            let _ = write!(text, "\n  signing secret {}", plain(&secret.kid));
        }
    }
    text
}

/// Prints the faults of a report, which lists the first of `count` contents. Returns the exit
/// status.
fn faults(done: &str, faults: &[BackupFault], count: u64, out: Output) -> Exit {
    for fault in faults {
        let what = fault.file_id.as_deref().unwrap_or(&fault.sha256);
        let message = format!("{}: its bytes are {}", plain(what), plain(&fault.problem));
        out.failure(&Failure::refused(message).doing(format!("not {done}")));
    }
    if faults.is_empty() && count == 0 { Exit::Done } else { Exit::Refused }
}

pub(super) fn cannot_list(failure: Failure, from: &str) -> Failure {
    failure.doing(format!("cannot list the snapshots of {}", plain(from)))
}

pub(super) fn cannot_verify(failure: Failure) -> Failure {
    failure.doing("cannot verify the snapshot")
}

pub(super) fn cannot_prune(failure: Failure) -> Failure {
    failure.doing("cannot remove old snapshots")
}

pub(super) fn cannot_restore(failure: Failure) -> Failure {
    failure.doing("cannot restore")
}
