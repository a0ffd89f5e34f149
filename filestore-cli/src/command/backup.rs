//! `backup`.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use filestore_core::admin::{Backups, RestoredAs};
use filestore_core::api::{
    BackupError, BackupFault, BackupForgetReport, BackupPruneReport, BackupReport,
    BackupRestoreReport, BackupVerifyReport, CreateBackup, ForgetBackups, RestoreBackup, Snapshot,
};
use filestore_core::config::{BackupPlace, ProviderConfig};
use filestore_core::{DataDir, StoreConfig};

use crate::args::{BackupCommand, RestoredPart, SnapshotArgs};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Align, Output, Table, counted, plain, size, when};
use crate::target::{Address, Target};

/// Carries out what needs no store: reading and pruning snapshots, and restoring all of one. `None` for the
/// rest.
pub(super) async fn without_store(
    command: &BackupCommand,
    address: &Address,
    out: Output,
) -> Result<Option<Exit>> {
    if let BackupCommand::Restore { snapshot, what: RestoredPart { all: true, .. }, replace } =
        command
    {
        return restore_all(snapshot, address, *replace, out).await.map(Some);
    }
    let (BackupCommand::List { from }
    | BackupCommand::Verify(SnapshotArgs { from, .. })
    | BackupCommand::Prune { from, .. }) = command
    else {
        return Ok(None);
    };
    let Some(place) = place_without_store(from, address)? else { return Ok(None) };

    let exit = match command {
        BackupCommand::Verify(SnapshotArgs { snapshot, .. }) => {
            let meter = out.count_meter("verifying");
            let backups = place.open().await?;
            let id = snapshot.as_deref().map(str::parse).transpose()?;
            let verified = backups.verify(id, Arc::new(meter.clone())).await;
            drop(meter);
            verify(&verified.map_err(Failure::from).map_err(cannot_verify)?.into(), out)?
        }
        BackupCommand::Prune { keep, .. } => {
            let meter = out.count_meter("removing");
            let pruned = place.open().await?.prune(*keep, Arc::new(meter.clone())).await;
            drop(meter);
            prune(&pruned.map_err(Failure::from).map_err(cannot_prune)?.into(), out)?
        }
        _ => list(&listed(&place).await.map_err(|e| cannot_list(e, from))?, out)?,
    };
    Ok(Some(exit))
}

/// A place of snapshots that is opened without a store.
enum SnapshotPlace {
    Directory(PathBuf),
    Provider(ProviderConfig),
}

impl SnapshotPlace {
    /// Finds a destination: a directory, or one that the configuration names.
    fn find(from: &str, config: &StoreConfig) -> Result<Self> {
        if is_directory(from) {
            return Ok(Self::Directory(from.into()));
        }
        let destinations = &config.backup_destinations;
        let Some(named) = destinations.iter().find(|named| named.name == from) else {
            let problem = format!("the configuration names no backup destination {}", plain(from));
            return Err(Failure::refused(problem).hint(
                "name one of [[backup.destinations]] in the file of --config, or a directory with a slash in it",
            ));
        };
        let code = match &named.place {
            BackupPlace::Directory(path) => return Ok(Self::Directory(path.clone())),
            BackupPlace::Provider(code) => code,
        };
        let provider = config.providers.iter().find(|provider| provider.code == *code);
        provider.cloned().map(Self::Provider).ok_or_else(|| {
            Failure::failed(format!("the provider is not configured: {code}")).hint("see --config")
        })
    }

    async fn open(&self) -> Result<Backups> {
        Ok(match self {
            Self::Directory(path) => Backups::open(path).await?,
            Self::Provider(provider) => Backups::at_provider(provider).await?,
        })
    }
}

/// Finds a place that is read without a store: a directory, or a destination of the configuration where there
/// is no data directory. `None` where a store is to be asked.
fn place_without_store(from: &str, address: &Address) -> Result<Option<SnapshotPlace>> {
    if is_directory(from) {
        return Ok(Some(SnapshotPlace::Directory(from.into())));
    }
    match address {
        Address::Directory { path, config: Some(config) } if !DataDir::exists(path) => {
            SnapshotPlace::find(from, &configured(Some(config))?).map(Some)
        }
        _ => Ok(None),
    }
}

/// Tells a directory of this machine from a destination of the server's configuration.
pub(crate) fn is_directory(destination: &str) -> bool {
    destination.contains('/')
}

async fn listed(place: &SnapshotPlace) -> Result<Vec<Snapshot>> {
    let snapshots = place.open().await?.list().await?;
    Ok(snapshots.into_iter().map(Into::into).collect())
}

async fn restore_all(
    snapshot: &SnapshotArgs,
    address: &Address,
    replaces: bool,
    out: Output,
) -> Result<Exit> {
    let SnapshotArgs { from, snapshot } = snapshot;
    let Address::Directory { path, config } = address else {
        return Err(Failure::failed("--all restores into a directory, which --data-dir names")
            .hint("give --data-dir an empty directory, or a name that does not exist yet"));
    };
    let config = configured(config.as_deref())?;
    let place = SnapshotPlace::find(from, &config)?;
    let providers = config.providers;
    let restored_as = if replaces { RestoredAs::Original } else { RestoredAs::Copy };
    let meter = out.count_meter("restoring");
    let backups = place.open().await?;
    let id = snapshot.as_deref().map(str::parse).transpose()?;
    let progress = Arc::new(meter.clone());
    let restored = backups.restore(id, path, restored_as, &providers, progress).await;
    drop(meter);
    restore(&restored.map_err(Failure::from).map_err(cannot_restore)?.into(), out)
}

fn configured(config: Option<&Path>) -> Result<StoreConfig> {
    let loaded = config.map_or_else(|| Ok(StoreConfig::default()), StoreConfig::load);
    loaded.map_err(|e| Failure::failed(e.to_string()).hint("see --config"))
}

/// `backup create`, `verify`, `restore`, `list`, `prune` and `forget` on a store.
pub(super) async fn run(command: BackupCommand, target: &dyn Target, out: Output) -> Result<Exit> {
    match command {
        BackupCommand::Create { to, local_only, hard_links } => {
            let mut request = CreateBackup::default();
            (request.local_only, request.hard_links) = (local_only, hard_links);
            let meter = out.count_meter("copying");
            let made = target.backup_create(&to, &request, &meter).await;
            drop(meter);
            create(&made.map_err(|e| e.doing("cannot take a snapshot"))?, out)
        }
        BackupCommand::List { from } => {
            list(&target.backup_list(&from).await.map_err(|e| cannot_list(e, &from))?, out)
        }
        BackupCommand::Verify(SnapshotArgs { from, snapshot }) => {
            let meter = out.count_meter("verifying");
            let verified = target.backup_verify(&from, snapshot).await;
            drop(meter);
            verify(&verified.map_err(cannot_verify)?, out)
        }
        BackupCommand::Prune { from, keep } => {
            let meter = out.count_meter("removing");
            let pruned = target.backup_prune(&from, keep).await;
            drop(meter);
            prune(&pruned.map_err(cannot_prune)?, out)
        }
        BackupCommand::Forget { from, disk } => {
            let request = ForgetBackups::new(disk);
            let forgotten = target.backup_forget(&from, &request).await;
            forget(&forgotten.map_err(|e| e.doing("cannot forget"))?, out)
        }
        BackupCommand::Restore { snapshot: SnapshotArgs { from, snapshot }, what, .. } => {
            let request = match (what.org, what.file) {
                (Some(org), _) => RestoreBackup::organization(org),
                (None, file) => RestoreBackup::file(file.unwrap_or_default()),
            };
            let request = request.from_snapshot(snapshot);
            let meter = out.count_meter("restoring");
            let restored = target.backup_restore(&from, &request, &meter).await;
            drop(meter);
            restore(&restored.map_err(cannot_restore)?, out)
        }
    }
}

fn cannot_list(failure: Failure, from: &str) -> Failure {
    failure.doing(format!("cannot list the snapshots of {}", plain(from)))
}

fn cannot_verify(failure: Failure) -> Failure {
    failure.doing("cannot verify the snapshot")
}

fn cannot_prune(failure: Failure) -> Failure {
    failure.doing("cannot remove old snapshots")
}

fn cannot_restore(failure: Failure) -> Failure {
    failure.doing("cannot restore")
}

/// Turns the failure in a report into that of the command.
fn check(error: Option<&BackupError>, doing: fn(Failure) -> Failure) -> Result<()> {
    match error {
        Some(error) => Err(doing(Failure::told(error.code.clone(), plain(&error.message)))),
        None => Ok(()),
    }
}

fn create(report: &BackupReport, out: Output) -> Result<Exit> {
    check(report.error.as_ref(), |failure| failure.doing("cannot take a snapshot"))?;
    let Some(snapshot) = &report.snapshot else {
        return Err(Failure::failed("the server made no snapshot and does not say why"));
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
        "snapshot {}: {}, {} ({}); copied {} ({}), {} there already",
        plain(&snapshot.snapshot_id),
        counted(snapshot.files, "file"),
        counted(snapshot.blobs, "content"),
        size(snapshot.bytes),
        report.copied,
        size(report.copied_bytes),
        report.reused,
    );
    if snapshot.elsewhere > 0 {
        let _ = write!(text, "\n{} only noted, at their providers", snapshot.elsewhere);
    }
    text + &damage_text(snapshot)
}

/// The number of things that the store had not whole when the snapshot was taken.
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
        let _ = write!(text, "\n{records} of the store cannot be read: their bytes are not in it");
    }
    text
}

fn list(snapshots: &[Snapshot], out: Output) -> Result<Exit> {
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

fn verify(report: &BackupVerifyReport, out: Output) -> Result<Exit> {
    check(report.error.as_ref(), cannot_verify)?;
    out.data(report, |_| Vec::new(), verify_text)?;
    let bad = report.missing + report.wrong + u64::from(!report.database_ok);
    Ok(faults("good", &report.faults, bad + damage(&report.snapshot), out))
}

fn verify_text(report: &BackupVerifyReport) -> String {
    let mut text = format!(
        "verified snapshot {}: {} ({}), {} missing, {} wrong; its copy of the database is {}",
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
            "\n{} set aside: the next snapshot takes anew what the store has of that",
            counted(report.set_aside, "content")
        );
    }
    if report.snapshot.shares_disk {
        text += "\nit shares the disk of the store: what fails there fails here";
    }
    if report.snapshot.elsewhere > 0 {
        let _ = write!(text, "\n{} at providers were not read", report.snapshot.elsewhere);
    }
    text + &damage_text(&report.snapshot)
}

fn prune(report: &BackupPruneReport, out: Output) -> Result<Exit> {
    check(report.error.as_ref(), cannot_prune)?;
    out.data(
        report,
        |report| report.removed.iter().map(String::as_str).collect(),
        |report| {
            format!(
                "removed {}, {} ({}); {} kept",
                counted(report.removed.len() as u64, "snapshot"),
                counted(report.blobs_removed, "content"),
                size(report.bytes_removed),
                report.kept.len(),
            )
        },
    )?;
    Ok(Exit::Done)
}

fn forget(report: &BackupForgetReport, out: Output) -> Result<Exit> {
    let text =
        |report: &BackupForgetReport| format!("forgot {}", counted(report.forgotten, "disk"));
    out.data(report, |_| Vec::new(), text)?;
    Ok(Exit::Done)
}

fn restore(report: &BackupRestoreReport, out: Output) -> Result<Exit> {
    check(report.error.as_ref(), cannot_restore)?;
    out.data(report, |_| Vec::new(), restore_text)?;
    Ok(faults("restored", &report.faults, report.failed + report.damaged_records, out))
}

fn restore_text(report: &BackupRestoreReport) -> String {
    let mut text = format!(
        "restored {} ({}), {} failed",
        counted(report.restored, "file"),
        size(report.restored_bytes),
        report.failed,
    );
    if report.present > 0 {
        let _ = write!(text, "; {} in the store already", report.present);
    }
    if report.left_at_providers > 0 {
        let _ = write!(text, "; {} compared at their providers", report.left_at_providers);
    }
    if report.damaged_records > 0 {
        let records = counted(report.damaged_records, "record");
        let _ = write!(
            text,
            "\n{records} of the snapshot cannot be read: their files are not restored"
        );
    }
    text
}

/// Names the first of the contents that are not as they should be, of `count` in all; the exit status
/// says whether there are any.
fn faults(done: &str, faults: &[BackupFault], count: u64, out: Output) -> Exit {
    for fault in faults {
        let what = fault.file_id.as_deref().unwrap_or(&fault.sha256);
        let message = format!("{}: its bytes are {}", plain(what), plain(&fault.problem));
        out.failure(&Failure::refused(message).doing(format!("not {done}")));
    }
    if faults.is_empty() && count == 0 { Exit::Done } else { Exit::Refused }
}

/// The number of snapshots to keep, as the wire has it.
pub(crate) fn kept(keep: NonZeroUsize) -> u64 {
    u64::try_from(keep.get()).unwrap_or(u64::MAX)
}
