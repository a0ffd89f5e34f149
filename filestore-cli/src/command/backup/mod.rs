//! `backup`.

mod report;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use filestore_core::admin::{Backups, CopiedFiles, RestoreOptions, RestoredAccess, RestoredAs};
use filestore_core::api::{
    BackupDestination, CreateBackup, ForgetBackups, RestoreBackup, Snapshot,
};
use filestore_core::config::{BackupPlace, MetadataPlace, ProviderConfig};
use filestore_core::{DataDir, StoreConfig};

use report::{
    cannot_list, cannot_prune, cannot_restore, cannot_verify, create, forget, list, prune,
    prune_plan, restore, restored_store, verify,
};

use super::metadata::moved_files;
use crate::args::{BackupCommand, RestoredKeysArgs, RestoredPart, SnapshotArgs};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, plain};
use crate::store::{Address, DetachedRun, Target};

/// Runs the commands that need no store: list, verify, prune, and restore --all. Returns `None` for
/// all others.
pub(super) async fn without_store(
    command: &BackupCommand,
    address: &Address,
    out: Output,
) -> Result<Option<Exit>> {
    if let BackupCommand::Restore {
        snapshot,
        what: RestoredPart { all: true, .. },
        replace,
        sqlite,
        access,
    } = command
    {
        let restored_as = if *replace { RestoredAs::Original } else { RestoredAs::Copy };
        let options = options_of(restored_as, access);
        let records = if *sqlite { Records::InSqlite } else { Records::AsConfigured };
        return restore_all(snapshot, address, options, records, out).await.map(Some);
    }
    let from = match command {
        BackupCommand::List { from } => from.as_deref(),
        BackupCommand::Verify(SnapshotArgs { from, .. }) | BackupCommand::Prune { from, .. } => {
            Some(from.as_str())
        }
        _ => return Ok(None),
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
        BackupCommand::Prune { keep, dry_run: true, .. } => {
            prune_plan(listed(&place).await.map_err(cannot_prune)?, *keep, out)?
        }
        BackupCommand::Prune { keep, .. } => {
            let meter = out.count_meter("removing");
            let pruned = place.open().await?.prune(*keep, Arc::new(meter.clone())).await;
            drop(meter);
            prune(&pruned.map_err(Failure::from).map_err(cannot_prune)?.into(), out)?
        }
        _ => {
            let from = from.unwrap_or("the destination");
            list(&listed(&place).await.map_err(|e| cannot_list(e, from))?, out)?
        }
    };
    Ok(Some(exit))
}

/// A destination that can be opened without a store.
enum SnapshotPlace {
    Directory(PathBuf),
    Provider(ProviderConfig),
}

impl SnapshotPlace {
    /// Finds a destination: a directory, or a name from the configuration.
    fn find(from: &str, config: &StoreConfig) -> Result<Self> {
        if is_directory(from) {
            return Ok(Self::Directory(from.into()));
        }

        let destinations = &config.backup_destinations;
        let Some(named) = destinations.iter().find(|named| named.name == from) else {
            let problem = format!("the configuration names no backup destination {}", plain(from));
            return Err(Failure::refused(problem).hint(
                "use a name from [[backup.destinations]] in the --config file, or a directory with a slash",
            ));
        };

        let code = match &named.place {
            BackupPlace::Directory(path) => return Ok(Self::Directory(path.clone())),
            BackupPlace::Provider(code) => code,
        };

        let provider = config.providers.iter().find(|provider| provider.code == *code);
        provider.cloned().map(Self::Provider).ok_or_else(|| {
            Failure::failed(format!("the provider is not configured: {code}"))
                .hint("check --config")
        })
    }

    async fn open(&self) -> Result<Backups> {
        Ok(match self {
            Self::Directory(path) => Backups::open(path).await?,
            Self::Provider(provider) => Backups::at_provider(provider).await?,
        })
    }
}

/// Finds a destination that needs no store: a directory, or a name from the configuration if no
/// data directory exists. Returns `None` if the store must open the destination.
fn place_without_store(from: Option<&str>, address: &Address) -> Result<Option<SnapshotPlace>> {
    if let Some(directory) = from.filter(|from| is_directory(from)) {
        return Ok(Some(SnapshotPlace::Directory(directory.into())));
    }
    match address {
        Address::Directory { path, config: Some(config) } if !DataDir::exists(path) => {
            let config = configured(Some(config))?;
            let names = config.backup_destinations.iter().map(|named| named.name.clone());
            let from =
                from.map_or_else(|| only_one(names.collect()), |from| Ok(from.to_owned()))?;
            SnapshotPlace::find(&from, &config).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the only destination of a configuration.
fn only_one(mut names: Vec<String>) -> Result<String> {
    match names.len() {
        1 => Ok(names.remove(0)),
        0 => Err(Failure::failed("the configuration names no backup destination")
            .hint("name a directory with --from, for example --from /mnt/backup/files")),
        _ => Err(Failure::failed("the configuration names several backup destinations")
            .hint(format!("choose with --from: {}", plain(&names.join(", "))))),
    }
}

/// Returns true for a directory on this machine, and false for a name from the configuration.
pub(crate) fn is_directory(destination: &str) -> bool {
    destination.contains('/')
}

async fn listed(place: &SnapshotPlace) -> Result<Vec<Snapshot>> {
    let snapshots = place.open().await?.list().await?;
    Ok(snapshots.into_iter().map(Into::into).collect())
}

fn options_of(restored_as: RestoredAs, access: &RestoredKeysArgs) -> RestoreOptions {
    let options = RestoreOptions::from(restored_as);
    match access {
        RestoredKeysArgs { revoke_keys: true, .. } => options.with_access(RestoredAccess::Revoked),
        RestoredKeysArgs { keep_keys: true, .. } => options.with_access(RestoredAccess::Kept),
        _ => options,
    }
}

/// The database for the records of a restored store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Records {
    /// The database in the configuration.
    AsConfigured,
    /// The data directory.
    InSqlite,
}

async fn restore_all(
    snapshot: &SnapshotArgs,
    address: &Address,
    options: RestoreOptions,
    records: Records,
    out: Output,
) -> Result<Exit> {
    let SnapshotArgs { from, snapshot } = snapshot;
    let Address::Directory { path, config } = address else {
        return Err(Failure::failed("--all needs --data-dir, the directory to restore into")
            .hint("use an empty or missing directory"));
    };

    let mut config = configured(config.as_deref())?;
    let place = SnapshotPlace::find(from, &config)?;
    if records == Records::InSqlite {
        config.metadata = MetadataPlace::Sqlite;
    }

    let meter = out.count_meter("restoring");
    let backups = place.open().await?;
    let id = snapshot.as_deref().map(str::parse).transpose()?;
    let progress = Arc::new(meter.clone());
    let restored = backups.restore_for(id, path, options, &config, progress).await;
    drop(meter);
    let report = restored.map_err(Failure::from).map_err(cannot_restore)?;

    let is_shared = config.metadata != MetadataPlace::Sqlite && moved_files::has_backend(&config);
    let moved = if is_shared { Some(move_to_backend(path, &config, out).await?) } else { None };
    restored_store(&report.into(), moved.as_ref(), out)
}

/// Moves the restored files from the directory to the backend, which all servers of the database use.
async fn move_to_backend(dir: &Path, config: &StoreConfig, out: Output) -> Result<CopiedFiles> {
    moved_files::move_all(dir, config, out).await.map_err(|failure| {
        let dir = plain(&dir.to_string_lossy());
        failure.doing("restored the store, but some files are still in the data directory").hint(
            format!(
                "to move them, run `filestore metadata copy --from sqlite:{dir}` with --config"
            ),
        )
    })
}

fn configured(config: Option<&Path>) -> Result<StoreConfig> {
    let loaded = config.map_or_else(|| Ok(StoreConfig::default()), StoreConfig::load);
    loaded.map_err(|e| Failure::failed(e.to_string()).hint("check --config"))
}

/// `backup create`, `verify`, `restore`, `list`, `prune` and `forget` on a store.
pub(super) async fn run(command: BackupCommand, target: &dyn Target, out: Output) -> Result<Exit> {
    match command {
        BackupCommand::Create { to, local_only, hard_links, detach } => {
            let mut request = CreateBackup::default();
            (request.local_only, request.hard_links) = (local_only, hard_links);
            if detach {
                let started = target.start(DetachedRun::Backup(&to, &request)).await;
                started.map_err(|e| e.doing("cannot start a snapshot"))?;
                out.report(&BackupDestination::new(to), |place| {
                    let name = plain(&place.name);
                    format!(
                        "the server takes a snapshot: see `filestore backup list --from {name}`"
                    )
                })?;
                return Ok(Exit::Done);
            }

            let meter = out.count_meter("copying");
            let made = target.backup_create(&to, &request, &meter).await;
            drop(meter);
            create(&made.map_err(|e| e.doing("cannot take a snapshot"))?, out)
        }
        BackupCommand::List { from } => {
            let from = match from {
                Some(from) => from,
                None => only_one(target.backup_destinations().await?)?,
            };
            list(&target.backup_list(&from).await.map_err(|e| cannot_list(e, &from))?, out)
        }
        BackupCommand::Verify(SnapshotArgs { from, snapshot }) => {
            let meter = out.count_meter("verifying");
            let verified = target.backup_verify(&from, snapshot).await;
            drop(meter);
            verify(&verified.map_err(cannot_verify)?, out)
        }
        BackupCommand::Prune { from, keep, dry_run: true } => {
            prune_plan(target.backup_list(&from).await.map_err(cannot_prune)?, keep, out)
        }
        BackupCommand::Prune { from, keep, .. } => {
            let meter = out.count_meter("removing");
            let pruned = target.backup_prune(&from, keep).await;
            drop(meter);
            prune(&pruned.map_err(cannot_prune)?, out)
        }
        BackupCommand::Forget { from, disk } => {
            let request = ForgetBackups::new(disk);
            let forgotten = target.backup_forget(&from, &request).await;
            forget(&forgotten.map_err(|e| e.doing("cannot forget the disks"))?, out)
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
            let restored = restored.map_err(|e| cannot_restore(in_another(e, &from)));
            restore(&restored?, out)
        }
    }
}

/// Adds the next step, if the snapshot does not contain the files.
fn in_another(failure: Failure, from: &str) -> Failure {
    if !failure.is_missing() || failure.field() == Some("destination") {
        return failure;
    }
    failure.hint(format!(
        "choose another snapshot with --snapshot ID. To see all snapshots, use \
         `filestore backup list --from {from}`"
    ))
}

/// Converts the number of snapshots to keep to the type of the wire.
pub(crate) fn kept(keep: NonZeroUsize) -> u64 {
    u64::try_from(keep.get()).unwrap_or(u64::MAX)
}
