//! Snapshots that are killed in the middle: in a directory, and at a provider.
//!
//! Afterwards every snapshot that is listed must be whole, the next one must be taken, by what the broken run
//! has left, and a prune must leave nothing that no snapshot names. No hold may stay.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use filestore_core::admin::{BackupOptions, NoProgress};
use filestore_core::config::{BackupDestination, ProviderConfig};
use filestore_core::{FileStore, ProviderCode, Result, StoreConfig};

use crate::scenario;
use crate::tally::Kind;
use crate::verify::Findings;

/// The destinations: a directory and a provider, named as they are below the home.
const NEAR: &str = "near";
const FAR: &str = "far";

/// The directory of snapshots below the root of a provider.
const AT_PROVIDER: &str = ".filestore-backup";

/// Adds the destinations to a configuration.
pub(crate) fn configure(config: &mut StoreConfig, home: &Path) {
    let far: ProviderCode = FAR.parse().expect("a code");
    let root = home.join(FAR).display().to_string();
    config.providers.push(ProviderConfig::new(far.clone(), "fs").with_option("root", root));
    config.backup_destinations =
        vec![BackupDestination::new(NEAR, home.join(NEAR)), BackupDestination::new(FAR, far)];
}

/// Makes the directory that a destination needs.
pub(crate) fn prepare(home: &Path) {
    fs::create_dir_all(home.join(NEAR)).expect("a directory can be made");
}

/// Takes a snapshot to each destination.
pub(crate) async fn take(store: &FileStore) -> Result<()> {
    for name in [NEAR, FAR] {
        let backups = store.admin().backups(name).await?;
        let options = BackupOptions::default();
        store.admin().backup(&backups, options, Arc::new(NoProgress)).await?;
    }
    Ok(())
}

/// Removes all snapshots but the newest, and what these do not name.
pub(crate) async fn prune(store: &FileStore) -> Result<()> {
    for name in [NEAR, FAR] {
        let backups = store.admin().backups(name).await?;
        backups.prune(NonZeroUsize::MIN, Arc::new(NoProgress)).await?;
    }
    Ok(())
}

/// Goes on where a life was killed, and compares.
pub(crate) async fn check(home: &Path) -> Findings {
    let mut findings = Findings::default();
    prepare(home);
    age_prunes(home);
    if let Err(error) = go_on(home, &mut findings).await {
        findings.expect(false, Kind::Broken, || format!("backups: {}", error.chain()));
    }
    findings
}

async fn go_on(home: &Path, findings: &mut Findings) -> Result<()> {
    let store = scenario::open(home).await?;
    let holds = holds_of(&store);
    findings.expect(holds == 0, Kind::Broken, || format!("{holds} holds stay after a start"));

    for name in [NEAR, FAR] {
        let backups = store.admin().backups(name).await?;
        for snapshot in backups.list().await? {
            let verified = backups.verify(Some(snapshot.id), Arc::new(NoProgress)).await?;
            findings.expect(verified.is_good(), Kind::Lost, || format!("{name}: {verified:?}"));
        }

        let options = BackupOptions::default();
        let made = store.admin().backup(&backups, options, Arc::new(NoProgress)).await?;
        let is_whole = made.faults.is_empty() && made.copied + made.reused == made.snapshot.blobs;
        findings.expect(is_whole, Kind::Lost, || format!("{name}: {made:?}"));
        let pruned = backups.prune(NonZeroUsize::MIN, Arc::new(NoProgress)).await?;
        findings.expect(pruned.kept == [made.snapshot.id], Kind::Broken, || format!("{pruned:?}"));
        let verified = backups.verify(None, Arc::new(NoProgress)).await?;
        findings.expect(verified.is_good(), Kind::Lost, || format!("{name}: {verified:?}"));

        let left = leftovers(home, name, made.snapshot.blobs);
        findings.expect(left.is_empty(), Kind::Orphan, || format!("{name}: {left:?}"));
    }
    let holds = holds_of(&store);
    findings.expect(holds == 0, Kind::Broken, || format!("{holds} holds stay after a snapshot"));
    let scratch = files_below(&home.join("data/scratch"));
    findings.expect(scratch.is_empty(), Kind::Orphan, || format!("{scratch:?}"));
    store.close().await;
    Ok(())
}

/// Lists what a pruned destination has besides one snapshot of `blobs` contents.
fn leftovers(home: &Path, name: &str, blobs: u64) -> BTreeSet<PathBuf> {
    let root = if name == FAR { home.join(FAR).join(AT_PROVIDER) } else { home.join(NEAR) };
    let mut left = files_below(&root);
    let contents = left.iter().filter(|path| path.starts_with(root.join("blobs"))).count();
    if contents as u64 == blobs {
        left.retain(|path| !path.starts_with(root.join("blobs")));
    }
    let is_marker = |path: &PathBuf| path.parent() == Some(&root);
    let parts = left.iter().filter(|path| path.starts_with(root.join("snapshots"))).count();
    // A run that was killed before its manifest is remembered as that.
    let is_note = |path: &PathBuf| path.extension().is_some_and(|last| last == "revoked");
    let notes = left.iter().filter(|path| is_note(path)).count();
    if parts - notes == 2 {
        left.retain(|path| !path.starts_with(root.join("snapshots")));
    }
    left.retain(|path| !is_marker(path));
    left
}

/// Makes the beats of killed prunes so old that nobody waits for these any more.
fn age_prunes(home: &Path) {
    let runs = home.join(FAR).join(AT_PROVIDER).join("runs");
    for path in files_below(&runs) {
        if path.to_string_lossy().contains(".prune.") {
            let file = File::options().write(true).open(path).expect("a beat can be opened");
            file.set_modified(SystemTime::UNIX_EPOCH).expect("a time can be set");
        }
    }
}

fn holds_of(store: &FileStore) -> i64 {
    let database = rusqlite::Connection::open(store.data_dir().database()).expect("a database");
    let count = database.query_row("SELECT count(*) FROM holds", (), |row| row.get(0));
    count.expect("the table is there")
}

fn files_below(root: &Path) -> BTreeSet<PathBuf> {
    let (mut files, mut open) = (BTreeSet::new(), vec![root.to_owned()]);
    while let Some(next) = open.pop() {
        let Ok(entries) = fs::read_dir(next) else { continue };
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                open.push(path);
            } else {
                files.insert(path);
            }
        }
    }
    files
}
