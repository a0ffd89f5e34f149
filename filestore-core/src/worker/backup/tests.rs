//! Snapshots of a store with everything in it, and what comes of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::FileStore;
use crate::domain::access::key::{KeyScope, NewKey};
use crate::domain::access::scope::Scope;
use crate::domain::config::{BackupDestination, StoreConfig};
use crate::domain::error::ErrorKind;
use crate::domain::event::{After, EventFilter, EventKind};
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::Location;
use crate::domain::provider::binding::NewBinding;
use crate::domain::report::backup::{
    BackupOptions, BackupReport, RestoredAs, Selection, SnapshotBytes, SnapshotClouds,
};
use crate::service::{GivenName, NewBatch, NewUpload};
use crate::worker::running::progress::NoProgress;

mod access;
mod at_provider;
mod last;
mod links;
mod providers;
mod verifying;
#[cfg(feature = "postgres")]
mod postgres;

/// A store with a provider beside it, which organization 7 writes through to.
struct House {
    home: tempfile::TempDir,
    store: FileStore,
}

impl House {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = open(home.path(), "data").await;
        let binding = NewBinding {
            organization: 7.try_into().unwrap(),
            organization_name: "seven".into(),
            provider: "disk".parse().unwrap(),
            sync_enabled: false,
        };
        store.bindings().create(binding).await.unwrap();
        Self { home, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    async fn backups(&self) -> Backups {
        Backups::create(self.path("backup")).await.unwrap()
    }

    async fn back_up(&self) -> BackupReport {
        self.back_up_as(BackupOptions::default()).await.unwrap()
    }

    async fn back_up_as(&self, options: BackupOptions) -> Result<BackupReport> {
        let backups = self.backups().await;
        self.store.admin().backup(&backups, options, Arc::new(NoProgress)).await
    }

    /// Restores the newest snapshot into `name` and opens it; without the provider, if it is a copy.
    async fn restored(&self, name: &str, restored_as: RestoredAs) -> (RestoreReport, FileStore) {
        let backups = self.backups().await;
        let providers = providers(self.home.path());
        let into = self.path(name);
        let report =
            backups.restore(None, &into, restored_as, &providers, Arc::new(NoProgress)).await;
        let store = match restored_as {
            RestoredAs::Copy => FileStore::open(&into).await.unwrap(),
            RestoredAs::Original => open(self.home.path(), name).await,
        };
        (report.unwrap(), store)
    }

    async fn close(self) -> tempfile::TempDir {
        self.store.close().await;
        self.home
    }
}

fn providers(home: &Path) -> Vec<ProviderConfig> {
    let root = home.join("disk").to_str().unwrap().to_owned();
    vec![ProviderConfig::new("disk".parse().unwrap(), "fs").with_option("root", root)]
}

async fn open(home: &Path, name: &str) -> FileStore {
    let config = StoreConfig {
        providers: providers(home),
        purge_grace: Duration::ZERO,
        ..StoreConfig::default()
    };
    FileStore::builder(home.join(name)).config(config).open().await.unwrap()
}

fn new(organization: &str) -> NewUpload {
    NewUpload::new(organization.parse().unwrap(), "docs".parse().unwrap())
}

async fn upload(store: &FileStore, organization: &str, text: &str) -> FileRecord {
    store.upload(new(organization).with_name(format!("{text}.txt")), text.as_bytes()).await.unwrap()
}

async fn text_of(store: &FileStore, id: FileId) -> Result<String> {
    let bytes = store.scoped(&Scope::All).read(id).await?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

/// Lists the files of blobs in a directory of snapshots.
fn blobs(backup: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for prefix in std::fs::read_dir(backup.join("blobs")).unwrap() {
        let entries = std::fs::read_dir(prefix.unwrap().path()).unwrap();
        found.extend(entries.map(|entry| entry.unwrap().path()));
    }
    found
}

#[tokio::test]
async fn a_restored_store_serves_each_file_byte_for_byte() {
    let house = House::new().await;
    let store = &house.store;
    let plain = upload(store, "42", "plain").await;
    let twin = upload(store, "42", "plain").await;
    let empty = upload(store, "42", "").await;
    let at_provider = upload(store, "7", "through").await;
    assert_eq!(at_provider.state.location(), Location::Cloud);

    let batch = NewBatch::new("43".parse().unwrap(), "docs".parse().unwrap());
    let items = ["one", "two"].map(|text| (GivenName::named(text), text.into()));
    let batch = store.batch(batch, items).await.unwrap();

    let replaced = upload(store, "42", "before").await;
    store.scoped(&Scope::All).replace(replaced.file_id, &b"after"[..]).await.unwrap();
    let deleted = upload(store, "42", "deleted").await;
    store.scoped(&Scope::All).delete(deleted.file_id).await.unwrap();

    let scopes = [KeyScope::Read].into_iter().collect();
    let key = NewKey { organizations: Scope::All, scopes, name: "k".into(), expires_in: None };
    let (key, _) = store.keys().create(key).await.unwrap();
    let secrets = store.signing().secrets();

    let report = house.back_up().await;
    assert_eq!((report.snapshot.files, report.snapshot.damaged), (8, 0));
    assert_eq!(report.snapshot.blobs, 7, "equal bytes are there once");
    upload(store, "42", "after the snapshot").await;

    for (name, restored_as) in [("copy", RestoredAs::Copy), ("original", RestoredAs::Original)] {
        let (report, restored) = house.restored(name, restored_as).await;
        let is_copy = restored_as == RestoredAs::Copy;
        assert_eq!((report.failed, report.left_at_providers), (0, u64::from(!is_copy)));
        assert_eq!(restored.id() != store.id(), is_copy);

        for (id, text) in [
            (plain.file_id, "plain"),
            (twin.file_id, "plain"),
            (empty.file_id, ""),
            (at_provider.file_id, "through"),
            (batch[0].file_id, "one"),
            (batch[1].file_id, "two"),
            (replaced.file_id, "after"),
        ] {
            assert_eq!(text_of(&restored, id).await.unwrap(), text);
        }
        let gone = text_of(&restored, deleted.file_id).await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        restored.scoped(&Scope::All).restore(deleted.file_id).await.unwrap();
        assert_eq!(text_of(&restored, deleted.file_id).await.unwrap(), "deleted");

        assert_eq!(
            restored.scoped(&Scope::All).usage(&"42".parse().unwrap()).await.unwrap().total().files,
            5
        );
        assert!(restored.keys().list().iter().any(|listed| listed.id == key.id));
        assert_eq!(restored.signing().secrets(), secrets);
        upload(&restored, "42", "goes on").await;
        restored.close().await;
    }
    house.close().await;
}

#[tokio::test]
async fn the_log_of_a_restored_store_begins_with_a_gap_for_everybody() {
    let house = House::new().await;
    upload(&house.store, "42", "told").await;
    house.back_up().await;
    let (_, restored) = house.restored("copy", RestoredAs::Copy).await;
    for scope in [Scope::All, Scope::Organizations(vec!["42".parse().unwrap()])] {
        let log = restored.events(&scope).page(&EventFilter::new(), After::Start, 9).await.unwrap();
        let told: Vec<_> = log.events.iter().map(|event| event.kind).collect();
        assert_eq!(told, [EventKind::LogGap], "{scope:?}");
        assert!(log.events[0].details.off_since.is_some());
    }
    restored.close().await;
    house.close().await;
}

#[tokio::test]
async fn what_is_deleted_during_a_snapshot_is_in_it_and_goes_afterwards() {
    let house = House::new().await;
    let files =
        [upload(&house.store, "42", "local").await, upload(&house.store, "7", "cloud").await];

    let metadata = &house.store.inner().metadata;
    let now = house.store.now();
    metadata.take_hold("another snapshot", now, now.plus(Duration::from_mins(5))).await.unwrap();
    for file in &files {
        house.store.scoped(&Scope::All).delete(file.file_id).await.unwrap();
    }
    assert_eq!(house.store.admin().purge(&NoProgress).await.unwrap().purged, 0);

    let report = house.back_up().await;
    assert_eq!((report.snapshot.blobs, report.snapshot.damaged), (2, 0));
    metadata.release_hold("another snapshot").await.unwrap();
    assert_eq!(house.store.admin().purge(&NoProgress).await.unwrap().purged, 2);

    let (report, restored) = house.restored("copy", RestoredAs::Copy).await;
    assert_eq!((report.restored, report.failed), (2, 0), "a finished snapshot owns its bytes");
    for file in &files {
        restored.scoped(&Scope::All).restore(file.file_id).await.unwrap();
    }
    assert_eq!(text_of(&restored, files[1].file_id).await.unwrap(), "cloud");
    restored.close().await;
    house.close().await;
}

#[tokio::test]
async fn a_later_snapshot_copies_only_what_is_new() {
    let house = House::new().await;
    upload(&house.store, "42", "one").await;
    let first = house.back_up().await;
    assert_eq!((first.copied, first.reused), (1, 0));

    upload(&house.store, "42", "two").await;
    let second = house.back_up().await;
    assert_eq!((second.copied, second.reused, second.copied_bytes), (1, 1, 3));
    let listed = house.backups().await.list().await.unwrap();
    assert_eq!(listed, [first.snapshot, second.snapshot]);
    house.close().await;
}

#[tokio::test]
async fn pruning_keeps_the_newest_and_all_that_they_name() {
    let house = House::new().await;
    let first = upload(&house.store, "42", "first").await;
    upload(&house.store, "42", "kept").await;
    let old = house.back_up().await.snapshot.id;
    house.store.scoped(&Scope::All).delete(first.file_id).await.unwrap();
    assert_eq!(house.store.admin().purge(&NoProgress).await.unwrap().purged, 1);
    let new = house.back_up().await.snapshot.id;

    // What a run that broke off, or a prune, has left.
    let nobodys = house.path("backup/blobs/ab").join("ab".repeat(32));
    std::fs::create_dir_all(nobodys.parent().unwrap()).unwrap();
    std::fs::write(&nobodys, b"nobody's").unwrap();

    let backups = house.backups().await;
    let keep = NonZeroUsize::new(1).unwrap();
    let report = backups.prune(keep, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((report.removed, report.kept), (vec![old], vec![new]));
    assert_eq!((report.blobs_removed, report.bytes_removed), (2, 5 + 8));
    assert!(backups.verify(None, Arc::new(NoProgress)).await.unwrap().is_good());
    let again = backups.prune(keep, Arc::new(NoProgress)).await.unwrap();
    assert_eq!(again.blobs_removed, 0);
    drop(backups);
    house.close().await;
}

#[tokio::test]
async fn nothing_of_an_organization_that_was_erased_since_comes_back_out_of_a_snapshot() {
    let house = House::new().await;
    let store = &house.store;
    let erased = upload(store, "42", "erased").await;
    let other = upload(store, "43", "other").await;
    house.back_up().await;
    let organization = "42".parse().unwrap();
    let receipt = store.admin().erase_organization(&organization, &|| false, &NoProgress).await;
    let receipt = receipt.unwrap();
    assert!(receipt.is_complete, "{receipt:?}");
    let named: Vec<_> = receipt.may_return.iter().map(|one| one.place.as_str()).collect();
    assert!(named.iter().any(|place| place.starts_with("backup ")), "{named:?}");
    store.scoped(&Scope::All).delete(other.file_id).await.unwrap();
    store.admin().purge(&NoProgress).await.unwrap();

    let backups = house.backups().await;
    let restore = async |selection| {
        store.admin().restore(&backups, None, selection, Arc::new(NoProgress)).await
    };
    for selection in [Selection::File(erased.file_id), Selection::Organization(organization)] {
        let refused = restore(selection).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    }
    restore(Selection::File(other.file_id)).await.unwrap();
    drop(backups);

    // What is stored and backed up afterwards comes back as usual.
    let anew = upload(store, "42", "anew").await;
    house.back_up().await;
    store.scoped(&Scope::All).delete(anew.file_id).await.unwrap();
    store.admin().purge(&NoProgress).await.unwrap();
    let backups = house.backups().await;
    let restored = store
        .admin()
        .restore(&backups, None, Selection::File(anew.file_id), Arc::new(NoProgress))
        .await;
    assert_eq!(restored.unwrap().restored, 1);
    drop(backups);
    house.close().await;
}

#[tokio::test]
async fn one_file_or_one_organization_comes_back_under_its_id() {
    let house = House::new().await;
    let store = &house.store;
    let lost = upload(store, "42", "lost").await;
    let kept = upload(store, "42", "kept").await;
    let other = upload(store, "43", "other").await;
    house.back_up().await;
    for id in [lost.file_id, other.file_id] {
        store.scoped(&Scope::All).delete(id).await.unwrap();
    }
    assert_eq!(store.admin().purge(&NoProgress).await.unwrap().purged, 2);

    let backups = house.backups().await;
    let restore = async |selection| {
        store.admin().restore(&backups, None, selection, Arc::new(NoProgress)).await
    };
    let report = restore(Selection::Organization("42".parse().unwrap())).await.unwrap();
    assert_eq!((report.restored, report.present, report.failed), (1, 1, 0));
    let back = store.scoped(&Scope::All).record(lost.file_id).await.unwrap();
    assert_eq!((&*back.original_name, back.created_at), ("lost.txt", lost.created_at));
    assert_ne!(back.blob.key, lost.blob.key, "a key is written once");
    assert_eq!(text_of(store, lost.file_id).await.unwrap(), "lost");
    assert_eq!(
        store.scoped(&Scope::All).record(kept.file_id).await.unwrap().updated_at,
        kept.updated_at
    );

    restore(Selection::File(other.file_id)).await.unwrap();
    assert_eq!(text_of(store, other.file_id).await.unwrap(), "other");
    let unknown = restore(Selection::File(FileId::generate(store.now()))).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert_eq!(unknown.message(), "the file is not in this snapshot");
    drop(backups);
    house.close().await;
}

#[tokio::test]
async fn a_file_that_was_deleted_when_the_snapshot_was_taken_comes_back_live() {
    let house = House::new().await;
    let store = &house.store;
    let file = upload(store, "42", "deleted").await;
    store.scoped(&Scope::All).delete(file.file_id).await.unwrap();
    house.back_up().await;
    assert_eq!(store.admin().purge(&NoProgress).await.unwrap().purged, 1);

    let backups = house.backups().await;
    let selection = Selection::File(file.file_id);
    let restored = store.admin().restore(&backups, None, selection, Arc::new(NoProgress)).await;
    assert_eq!(restored.unwrap().restored, 1);
    let record = store.scoped(&Scope::All).record(file.file_id).await.unwrap();
    assert_eq!(record.deletion, None);
    assert_eq!(text_of(store, file.file_id).await.unwrap(), "deleted");
    drop(backups);
    house.close().await;
}

#[tokio::test]
async fn what_the_store_has_lost_is_named_and_keeps_nothing_else_from_being_saved() {
    let house = House::new().await;
    let lost = upload(&house.store, "42", "lost").await;
    upload(&house.store, "42", "kept").await;
    house.store.inner().uploads.publishing.idle().await;
    std::fs::remove_file(house.path("data/blobs").join(lost.blob.key.as_str())).unwrap();

    let report = house.back_up().await;
    assert_eq!((report.snapshot.blobs, report.snapshot.damaged), (1, 1));
    assert_eq!(report.faults[0].file_id, Some(lost.file_id));
    assert_eq!(report.faults[0].problem, BlobProblem::Missing);
    let verified = house.backups().await.verify(None, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((verified.missing, verified.is_good()), (0, false), "not all can be restored");
    house.close().await;
}

#[tokio::test]
async fn records_that_cannot_be_read_are_counted_in_every_report() {
    let house = House::new().await;
    upload(&house.store, "42", "sound").await;
    let damaged = upload(&house.store, "42", "damaged").await.file_id;
    let vandal = rusqlite::Connection::open(house.store.data_dir().database()).unwrap();
    vandal.pragma_update(None, "ignore_check_constraints", true).unwrap();
    let sql = "UPDATE files SET blob_key = '?' WHERE file_id = ?1";
    assert_eq!(vandal.execute(sql, [damaged.to_string()]).unwrap(), 1);
    drop(vandal);

    let snapshot = house.back_up().await.snapshot;
    assert_eq!((snapshot.files, snapshot.blobs, snapshot.damaged_records), (1, 1, 1));
    let backups = house.backups().await;
    assert_eq!(backups.list().await.unwrap(), [snapshot]);
    let verified = backups.verify(None, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((verified.missing, verified.wrong, verified.is_good()), (0, 0, false));

    let selection = Selection::Organization("42".parse().unwrap());
    let admin = house.store.admin();
    let report = admin.restore(&backups, None, selection, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((report.present, report.damaged_records), (1, 1));
    drop(backups);
    let (report, restored) = house.restored("copy", RestoredAs::Copy).await;
    assert_eq!((report.restored, report.failed, report.damaged_records), (1, 0, 1));
    restored.close().await;
    house.close().await;
}

#[tokio::test]
async fn directories_that_are_something_else_are_refused() {
    let house = House::new().await;
    upload(&house.store, "42", "one").await;
    let error = Backups::create(house.path("data")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unusable);
    assert_eq!(Backups::open(house.path("nowhere")).await.unwrap_err().kind(), ErrorKind::Unusable);

    house.back_up().await;
    let backups = house.backups().await;
    let second = Backups::open(house.path("backup")).await.unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Locked);
    let into = house.path("data");
    let occupied = backups
        .restore(None, &into, RestoredAs::Copy, &[], Arc::new(NoProgress))
        .await
        .unwrap_err();
    assert_eq!(occupied.kind(), ErrorKind::Unusable);
    drop(backups);
    house.close().await;
}

#[tokio::test]
async fn a_destination_whose_disk_is_not_mounted_is_known_by_its_marker() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("mounted");
    std::fs::create_dir_all(path.join("lost+found")).unwrap();
    let known = BackupDestination::new("nightly", path.clone());
    let config = StoreConfig { backup_destinations: vec![known], ..StoreConfig::default() };
    let store = FileStore::builder(home.path().join("data")).config(config).open().await.unwrap();
    drop(store.admin().backups("nightly").await.unwrap());

    let away = home.path().join("away");
    std::fs::rename(&path, &away).unwrap();
    std::fs::create_dir(&path).unwrap();
    let refused = store.admin().backups("nightly").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unusable);
    let said = refused.message();
    assert!(said.contains("mount its disk") && said.contains("filestore-backup"), "{said}");
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "nothing is written beneath");

    std::fs::write(path.join("filestore-backup"), "format 1\n").unwrap();
    drop(store.admin().backups("nightly").await.expect("as the message says"));
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::rename(&away, &path).unwrap();
    drop(store.admin().backups("nightly").await.unwrap());
    store.close().await;
}

#[tokio::test]
async fn a_restore_that_broke_off_is_no_store_and_goes_on() {
    let house = House::new().await;
    let file = upload(&house.store, "42", "one").await;
    let id = house.back_up().await.snapshot.id;

    // As a crash leaves it: a blob of other bytes, no database.
    let into = house.path("copy");
    let torn = into.join("blobs").join(file.blob.key.as_str());
    std::fs::create_dir_all(torn.parent().unwrap()).unwrap();
    std::fs::write(&torn, [0; 3]).unwrap();
    std::fs::write(into.join("filestore-restoring"), format!("{id}\n")).unwrap();
    assert_eq!(FileStore::open(&into).await.unwrap_err().kind(), ErrorKind::Unusable);

    // The attempt to open it made the directories of a store.
    let (report, restored) = house.restored("copy", RestoredAs::Copy).await;
    assert_eq!((report.restored, report.failed), (1, 0));
    assert_eq!(text_of(&restored, file.file_id).await.unwrap(), "one");
    restored.close().await;
    house.close().await;
}

/// Insists on files of mode 0600 in directories of mode 0700, whichever mask the process has.
fn assert_private(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;

    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        if path.is_dir() {
            assert_private(&path);
        }
    }
}

#[tokio::test]
async fn stores_snapshots_and_restored_stores_are_for_their_owner_alone() {
    let house = House::new().await;
    upload(&house.store, "42", "local").await;
    house.back_up().await;
    assert_private(&house.path("data"));
    assert_private(&house.path("backup"));
    let (_, restored) = house.restored("copy", RestoredAs::Copy).await;
    assert_private(&house.path("copy"));
    restored.close().await;
    house.close().await;
}
