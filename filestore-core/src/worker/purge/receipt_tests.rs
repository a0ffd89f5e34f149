//! Receipts of whole purges: over holders, backups and crashes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::domain::access::scope::Scope;
use crate::domain::config::{BackupDestination, StoreConfig};
use crate::domain::error::ErrorKind;
use crate::domain::id::{FileId, KeyId, Sha256, SnapshotId};
use crate::domain::provider::ProviderConfig;
use crate::domain::provider::binding::{BindingChange, NewBinding};
use crate::domain::report::backup::{BackupOptions, Selection};
use crate::domain::report::receipt::{DeletedBy, PurgeReceipt, UNNAMED};
use crate::domain::report::receipt_key::verify_receipt;
use crate::domain::time::clock::ManualClock;
use crate::metadata::Lease;
use crate::service::NewUpload;

const HOUR: Duration = Duration::from_hours(1);

/// A store with the providers `one` and `two` and a destination of backups beside it.
async fn open(home: &Path, clock: &ManualClock) -> FileStore {
    let provider = |code: &str| {
        let root = home.join(code).to_str().unwrap().to_owned();
        ProviderConfig::new(code.parse().unwrap(), "fs").with_option("root", root)
    };
    std::fs::create_dir_all(home.join("nightly")).unwrap();
    let nightly = BackupDestination::new("nightly", home.join("nightly"));
    let config = StoreConfig {
        providers: vec![provider("one"), provider("two")],
        backup_destinations: vec![nightly],
        purge_grace: Duration::ZERO,
        ..StoreConfig::default()
    };
    let store = FileStore::builder(home.join("data")).config(config).clock(clock.clock());
    store.open().await.unwrap()
}

/// Opens a new store, with its home and its clock.
async fn fresh() -> (TempDir, ManualClock, FileStore) {
    let home = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::now());
    let store = open(home.path(), &clock).await;
    (home, clock, store)
}

fn new() -> NewUpload {
    NewUpload::new("7".parse().unwrap(), "docs".parse().unwrap())
}

async fn bind(store: &FileStore, provider: &str) {
    let provider: ProviderCode = provider.parse().unwrap();
    let binding = NewBinding {
        organization: 7.try_into().unwrap(),
        organization_name: "x".into(),
        provider: provider.clone(),
        sync_enabled: false,
    };
    if store.bindings().list(None).await.unwrap().is_empty() {
        store.bindings().create(binding).await.unwrap();
    } else {
        let change = BindingChange { provider: Some(provider), ..BindingChange::default() };
        store.bindings().update(binding.organization, change).await.unwrap();
    }
}

/// Takes a snapshot a second later, so that ids are in the order of the snapshots.
async fn back_up(store: &FileStore, clock: &ManualClock) -> SnapshotId {
    clock.advance(Duration::from_secs(1));
    let backups = store.admin().backups("nightly").await.unwrap();
    let options = BackupOptions::default();
    let report = store.admin().backup(&backups, options, Arc::new(NoProgress)).await;
    report.unwrap().snapshot.id
}

async fn delete_and_purge(store: &FileStore, ids: &[FileId]) {
    for id in ids {
        store.scoped(&Scope::All).delete(*id).await.unwrap();
    }
    assert_eq!(run_due(store, &NoProgress).await.unwrap().purged, ids.len() as u64);
}

async fn receipt(store: &FileStore, id: FileId) -> PurgeReceipt {
    let signed = store.scoped(&Scope::All).receipt(id).await.unwrap();
    let keys = store.receipts().keys().await.unwrap();
    let key = keys.iter().find(|key| key.retired_at.is_none()).unwrap();
    let verified = verify_receipt(signed.to_document().as_bytes(), Some(&key.public_key)).unwrap();
    assert_eq!(verified.file_id, id.to_string());
    assert_eq!(verified.is_absent_everywhere, signed.receipt.is_absent_everywhere());
    signed.receipt
}

/// Lists which digest went from which holder.
fn removed(receipt: &PurgeReceipt) -> Vec<(&str, Sha256, u64)> {
    let blobs = receipt.file.removed.iter();
    let blobs = blobs.map(|blob| (blob.holder.as_str(), blob.content.unwrap()));
    blobs.map(|(holder, content)| (holder, content.sha256, content.size_bytes)).collect()
}

#[tokio::test]
async fn a_run_of_one_organization_removes_what_a_file_dropped_elsewhere_and_no_other_blob() {
    let (_home, clock, store) = fresh().await;
    bind(&store, "one").await;
    let id = store.upload(new(), &b"first"[..]).await.unwrap().file_id;
    bind(&store, "two").await;
    let replace = async |id| {
        store.scoped(&Scope::All).replace(id, &b"the second"[..]).await.unwrap();
    };
    replace(id).await;
    let other = NewUpload::new("8".parse().unwrap(), "docs".parse().unwrap());
    let other = store.upload(other, &b"other"[..]).await.unwrap().file_id;
    replace(other).await;
    store.scoped(&Scope::All).delete(id).await.unwrap();
    clock.advance(Duration::from_secs(5));

    let of = |name: &str| PurgeOptions {
        organization: Some(name.parse().unwrap()),
        ..PurgeOptions::default()
    };
    let none = run(&store, &of("8"), &|| false, &NoProgress).await.unwrap();
    assert_eq!((none.purged, none.blobs_removed), (0, 0), "replaced blobs are left to others");
    let run = run(&store, &of("7"), &|| false, &NoProgress).await.unwrap();
    assert_eq!((run.purged, run.blobs_removed), (1, 1), "one run, over both providers");
}

#[tokio::test]
async fn a_receipt_names_both_providers_and_the_snapshots_until_they_are_pruned() {
    let (_home, clock, store) = fresh().await;
    bind(&store, "one").await;
    let first = store.upload(new(), &b"first"[..]).await.unwrap();
    let id = first.file_id;
    let with_first = back_up(&store, &clock).await;

    bind(&store, "two").await;
    let second = store.scoped(&Scope::All).replace(id, &b"the second"[..]).await.unwrap().record;
    let with_second = back_up(&store, &clock).await;

    let by = DeletedBy::Key { id: KeyId::generate(store.now()), name: "the night job".into() };
    store.scoped(&Scope::All).deleting_as(&by).delete(id).await.unwrap();
    let deleted_at = store.now();
    let early = store.scoped(&Scope::All).receipt(id).await.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::NotFound);

    clock.advance(Duration::from_secs(5));
    let run = run_due(&store, &NoProgress).await.unwrap();
    assert_eq!((run.purged, run.blobs_removed), (1, 1), "one run, over both providers");
    let purged = receipt(&store, id).await;
    assert_eq!((&purged.file.deleted_by, purged.file.deleted_at), (&by, deleted_at));
    let expected = [("one", first.blob.sha256, 5), ("two", second.blob.sha256, 10)];
    assert_eq!(removed(&purged), expected);
    assert_eq!(purged.file.awaited.len(), 1, "a late write may land until the grace is over");

    let held: Vec<_> = purged.backups[0].snapshots.iter().collect();
    assert_eq!(held.iter().map(|one| one.id).collect::<Vec<_>>(), [with_first, with_second]);
    assert_eq!(held[0].sha256, [first.blob.sha256]);
    assert_eq!(held[1].sha256, [second.blob.sha256]);
    assert!(!purged.is_absent_everywhere());

    clock.advance(HOUR);
    assert_eq!(run_due(&store, &NoProgress).await.unwrap().blobs_removed, 1);
    let looked_again = receipt(&store, id).await;
    assert_eq!(looked_again.file.awaited, []);
    let again = &looked_again.file.removed[0];
    assert_eq!(again.checked_at, store.now());
    assert!(again.absent_at < again.checked_at && !looked_again.is_absent_everywhere());

    let without = back_up(&store, &clock).await;
    let backups = store.admin().backups("nightly").await.unwrap();
    let report = backups.prune(1.try_into().unwrap(), Arc::new(NoProgress)).await.unwrap();
    assert_eq!(report.kept, [without]);
    // The directory is locked by now: a receipt looks all the same.
    let gone = receipt(&store, id).await;
    assert!(gone.is_absent_everywhere(), "{gone:?}");
    assert_eq!(removed(&gone), expected);
    store.close().await;
}

#[tokio::test]
async fn what_cannot_be_looked_at_or_lies_in_the_quarantine_is_no_absence() {
    let (home, clock, store) = fresh().await;
    let record = store.upload(new(), &b"bytes"[..]).await.unwrap();
    let id = record.file_id;
    back_up(&store, &clock).await;
    delete_and_purge(&store, &[id]).await;
    let backups = store.admin().backups("nightly").await.unwrap();
    drop(backups);
    back_up(&store, &clock).await;
    let backups = store.admin().backups("nightly").await.unwrap();
    backups.prune(1.try_into().unwrap(), Arc::new(NoProgress)).await.unwrap();
    drop(backups);
    assert!(receipt(&store, id).await.is_absent_everywhere());

    let (there, away) = (home.path().join("nightly"), home.path().join("away"));
    std::fs::rename(&there, &away).unwrap();
    let unmounted = receipt(&store, id).await;
    assert_eq!(unmounted.backups[0].problem, Some("unusable"));
    assert!(!unmounted.is_absent_everywhere());
    std::fs::rename(&away, &there).unwrap();
    assert!(receipt(&store, id).await.is_absent_everywhere());

    let quarantined =
        store.data_dir().path().join("quarantine/run/blobs").join(record.blob.key.as_str());
    std::fs::create_dir_all(quarantined.parent().unwrap()).unwrap();
    std::fs::write(quarantined, b"bytes").unwrap();
    let found = receipt(&store, id).await;
    assert!(!found.quarantine.is_absent && !found.is_absent_everywhere());
    store.close().await;
}

#[tokio::test]
async fn a_purge_that_was_killed_between_removal_and_finish_has_its_receipt_in_the_end() {
    let (home, clock, store) = fresh().await;
    let record = store.upload(new(), &b"bytes"[..]).await.unwrap();
    let id = record.file_id;
    store.inner().uploads.publishing.idle().await;
    store.scoped(&Scope::All).delete(id).await.unwrap();

    let (inner, local) = (store.inner(), ProviderCode::local());
    let lease = Lease { owner: "killed", now: store.now(), until: store.now().plus(HOUR) };
    let claims = inner
        .metadata
        .claim_purges(lease, &local, DueFiles::marked_before(store.now()), 10)
        .await
        .unwrap();
    let blobs = vec![(local, claims[0].record.blob.key.clone())];
    assert!(inner.stores.remove(blobs).await[0].is_ok());
    assert!(store.scoped(&Scope::All).receipt(id).await.is_err(), "nothing is finished");
    store.close().await;
    drop(store);

    clock.advance(Duration::from_mins(1));
    let store = open(home.path(), &clock).await;
    assert_eq!(run_due(&store, &NoProgress).await.unwrap().purged, 1);
    let found = receipt(&store, id).await;
    assert_eq!(removed(&found), [("LOCAL", record.blob.sha256, 5)]);
    assert_eq!(found.file.removed[0].absent_at, store.now());
    assert_eq!(found.file.deleted_by, DeletedBy::Library);
    assert!(found.is_absent_everywhere());
    store.close().await;
}

#[tokio::test]
async fn receipts_are_kept_for_their_time_and_retired_keys_verify_them() {
    let (_home, clock, store) = fresh().await;
    assert_eq!(store.receipts().keys().await.unwrap(), []);
    let id = store.upload(new(), &b"bytes"[..]).await.unwrap().file_id;
    store.scoped(&Scope::All).delete(id).await.unwrap();
    run_due(&store, &NoProgress).await.unwrap();

    let signed = store.scoped(&Scope::All).receipt(id).await.unwrap();
    let old = store.receipts().keys().await.unwrap().remove(0);
    clock.advance(HOUR);
    let new = store.receipts().rotate_key().await.unwrap();
    assert_eq!(receipt(&store, id).await.file, signed.receipt.file);
    let keys = store.receipts().keys().await.unwrap();
    assert_eq!(
        keys.iter().map(|key| &key.public_key).collect::<Vec<_>>(),
        [&old.public_key, &new.public_key]
    );
    assert_eq!(keys[0].retired_at, Some(store.now()));
    let document = signed.to_document();
    verify_receipt(document.as_bytes(), Some(&old.public_key)).unwrap();
    assert!(verify_receipt(document.as_bytes(), Some(&new.public_key)).is_err());
    let settings = store.inner().metadata.settings().await.unwrap();
    let retired = &settings[&format!("receipt_key:{}", old.public_key)];
    assert!(retired.ends_with(','), "no private key: {retired}");

    clock.advance(HOUR * 24 * 89);
    upkeep::run(&store).await.unwrap();
    assert!(store.scoped(&Scope::All).receipt(id).await.is_ok());
    clock.advance(HOUR * 24);
    upkeep::run(&store).await.unwrap();
    assert!(store.scoped(&Scope::All).receipt(id).await.is_err());
    store.close().await;
}

#[tokio::test]
async fn expiry_and_erasure_are_named_as_what_deleted_a_file() {
    let (_home, clock, store) = fresh().await;
    let temp = store.upload(new().temp(), &b"bytes"[..]).await.unwrap().file_id;
    clock.advance(HOUR * 25);
    assert_eq!(run_due(&store, &NoProgress).await.unwrap().purged, 1);
    assert_eq!(receipt(&store, temp).await.file.deleted_by, DeletedBy::Expiry);

    let erased = store.upload(new(), &b"bytes"[..]).await.unwrap().file_id;
    let organization = "7".parse().unwrap();
    let whole = store.admin().erase_organization(&organization, &|| false, &NoProgress).await;
    assert!(whole.unwrap().is_complete);
    let found = receipt(&store, erased).await.file;
    assert_eq!((found.deleted_by, found.deleted_at), (DeletedBy::Erasure, store.now()));
    store.close().await;
}

#[tokio::test]
async fn a_file_that_was_put_back_from_a_snapshot_has_no_receipt() {
    let (_home, clock, store) = fresh().await;
    let id = store.upload(new(), &b"bytes"[..]).await.unwrap().file_id;
    let snapshot = back_up(&store, &clock).await;
    delete_and_purge(&store, &[id]).await;
    receipt(&store, id).await;

    let backups = store.admin().backups("nightly").await.unwrap();
    let selection = Selection::File(id);
    let restored = store.admin().restore(&backups, Some(snapshot), selection, Arc::new(NoProgress));
    assert_eq!(restored.await.unwrap().restored, 1);
    let refused = store.scoped(&Scope::All).receipt(id).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound, "its bytes are here");
    store.close().await;
}

#[tokio::test]
async fn equal_bytes_of_another_organization_do_not_show() {
    let (_home, clock, store) = fresh().await;
    let others = NewUpload::new("8".parse().unwrap(), "docs".parse().unwrap());
    store.upload(others, &b"the same"[..]).await.unwrap();
    back_up(&store, &clock).await;

    clock.advance(Duration::from_secs(1));
    let id = store.upload(new(), &b"the same"[..]).await.unwrap().file_id;
    delete_and_purge(&store, &[id]).await;
    back_up(&store, &clock).await;
    let purged = receipt(&store, id).await;
    assert_eq!(purged.backups[0].snapshots, [], "none was taken while it was there");
    assert!(purged.is_absent_everywhere());
    store.close().await;
}

#[tokio::test]
async fn a_destination_that_the_configuration_lacks_is_looked_at_all_the_same() {
    let (home, clock, store) = fresh().await;
    let id = store.upload(new(), &b"bytes"[..]).await.unwrap().file_id;
    let snapshot = back_up(&store, &clock).await;
    delete_and_purge(&store, &[id]).await;
    store.close().await;
    drop(store);

    let store = FileStore::builder(home.path().join("data")).clock(clock.clock()).as_guest();
    let store = store.open().await.unwrap();
    let found = receipt(&store, id).await;
    assert_eq!(found.backups[0].destination, UNNAMED);
    assert_eq!(found.backups[0].snapshots[0].id, snapshot);
    assert!(!found.is_absent_everywhere());

    std::fs::rename(home.path().join("nightly"), home.path().join("away")).unwrap();
    let found = receipt(&store, id).await;
    assert_eq!(found.backups[0].problem, Some("unusable"));
    assert!(!found.is_absent_everywhere());
    store.close().await;
}

/// One disk has the bytes and lies in a drawer; the other one, at its path, has none.
#[tokio::test]
async fn a_disk_that_took_the_place_of_another_does_not_stand_for_it() {
    let (home, clock, store) = fresh().await;
    let (nightly, drawer) = (home.path().join("nightly"), home.path().join("drawer"));
    let id = store.upload(new(), &b"bytes"[..]).await.unwrap().file_id;
    let snapshot = back_up(&store, &clock).await;
    std::fs::rename(&nightly, &drawer).unwrap();
    delete_and_purge(&store, &[id]).await;

    // As the refusal of an empty directory says.
    std::fs::create_dir(&nightly).unwrap();
    std::fs::write(nightly.join("filestore-backup"), "format 1\n").unwrap();
    clock.advance(Duration::from_secs(1));
    back_up(&store, &clock).await;

    let found = receipt(&store, id).await;
    let [here, away] = &found.backups[..] else { panic!("{found:?}") };
    assert!(here.is_absent() && here.destination_id.is_some() && away.destination_id.is_some());
    assert!(here.destination_id != away.destination_id);
    assert_eq!((away.problem, &*away.destination), (Some("unusable"), "nightly"));
    assert!(!found.is_absent_everywhere());
    let first = away.destination_id;

    // The disks change places.
    let other = home.path().join("other");
    std::fs::rename(&nightly, &other).unwrap();
    std::fs::rename(&drawer, &nightly).unwrap();
    let found = receipt(&store, id).await;
    assert_eq!(found.backups[0].destination_id, first);
    assert_eq!(found.backups[0].snapshots[0].id, snapshot);
    assert_eq!(found.backups[1].problem, Some("unusable"));

    // Neither is there: each of them is asked for.
    std::fs::rename(&nightly, &drawer).unwrap();
    let found = receipt(&store, id).await;
    assert!(found.backups.len() == 2 && found.backups.iter().all(|disk| disk.problem.is_some()));

    // The one that is there stays known, the one that was destroyed need not.
    std::fs::rename(&other, &nightly).unwrap();
    let refused = store.admin().forget_backups(&*nightly, here.destination_id).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(store.admin().forget_backups(&*nightly, first).await.unwrap(), 1);
    let found = receipt(&store, id).await;
    assert_eq!(found.backups.len(), 1);
    assert!(found.is_absent_everywhere());
    let none = store.admin().forget_backups(&*nightly, None).await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound);
    store.close().await;
}

/// Earlier versions noted a directory without an id.
#[tokio::test]
async fn a_directory_of_an_earlier_version_gets_its_id_with_the_next_snapshot() {
    let (home, clock, store) = fresh().await;
    let nightly = home.path().join("nightly");
    let id = store.upload(new(), &b"bytes"[..]).await.unwrap().file_id;
    back_up(&store, &clock).await;
    delete_and_purge(&store, &[id]).await;

    let marker = nightly.join("filestore-backup");
    std::fs::write(&marker, "format 1\n").unwrap();
    let name = format!("backup_marked:{}", nightly.display());
    let noted = [(name.clone(), "1".to_owned())].into();
    store.inner().metadata.put_settings(noted).await.unwrap();
    let found = receipt(&store, id).await;
    assert_eq!((found.backups.len(), found.backups[0].destination_id), (1, None));
    assert!(!found.backups[0].is_absent() && found.backups[0].problem.is_none());

    clock.advance(Duration::from_secs(1));
    back_up(&store, &clock).await;
    let found = receipt(&store, id).await;
    let given = found.backups[0].destination_id.unwrap().to_string();
    assert_eq!(std::fs::read_to_string(&marker).unwrap(), format!("format 1\nid {given}\n"));
    assert_eq!(store.inner().metadata.settings().await.unwrap()[&name], given);
    assert_eq!(found.backups.len(), 1);
    store.close().await;
}

#[tokio::test]
async fn a_file_that_is_older_than_the_stores_receipts_is_not_said_to_be_absent() {
    let (_home, clock, store) = fresh().await;
    let old = store.upload(new(), &b"old"[..]).await.unwrap().file_id;
    clock.advance(HOUR);
    let young = store.upload(new(), &b"young"[..]).await.unwrap().file_id;
    let from = store.scoped(&Scope::All).info(young).await.unwrap().created_at;
    let setting = ("receipts_from".to_owned(), from.as_millis().to_string());
    store.inner().metadata.put_settings([setting].into()).await.unwrap();

    delete_and_purge(&store, &[old, young]).await;
    let (old, young) = (receipt(&store, old).await, receipt(&store, young).await);
    assert_eq!((old.history_from, old.is_absent_everywhere()), (Some(from), false));
    assert_eq!((young.history_from, young.is_absent_everywhere()), (None, true));
    store.close().await;
}

/// Takes a snapshot whose run broke off before its manifest had its name.
async fn break_off(home: &Path, store: &FileStore, clock: &ManualClock) {
    let id = back_up(store, clock).await;
    let manifest = home.join("nightly/snapshots").join(id.to_string()).join("manifest.jsonl");
    std::fs::remove_file(manifest).unwrap();
}

#[tokio::test]
async fn loose_bytes_count_only_if_they_can_be_the_files_own() {
    let (home, clock, store) = fresh().await;
    let others = || NewUpload::new("8".parse().unwrap(), "docs".parse().unwrap());
    let own = store.upload(new(), &b"mine"[..]).await.unwrap();
    store.upload(others(), &b"a guess"[..]).await.unwrap();
    break_off(home.path(), &store, &clock).await;

    // What came while the file was there may be the file's.
    delete_and_purge(&store, &[own.file_id]).await;
    let purged = receipt(&store, own.file_id).await;
    assert_eq!(purged.backups[0].loose, [own.blob.sha256]);
    assert!(!purged.is_absent_everywhere());

    // A guess at what is there already learns nothing, whether it is right or wrong.
    clock.advance(Duration::from_secs(2));
    for guess in ["a guess", "a wrong guess"] {
        let id = store.upload(new(), guess.as_bytes()).await.unwrap().file_id;
        delete_and_purge(&store, &[id]).await;
        let purged = receipt(&store, id).await;
        assert_eq!((purged.backups[0].loose.len(), purged.backups[0].snapshots.len()), (0, 0));
        assert!(purged.is_absent_everywhere(), "{guess}");
    }
    store.close().await;
}

#[tokio::test]
async fn a_replacement_is_not_looked_for_in_snapshots_that_are_older() {
    let (_home, clock, store) = fresh().await;
    let others = NewUpload::new("8".parse().unwrap(), "docs".parse().unwrap());
    store.upload(others, &b"a guess"[..]).await.unwrap();
    let first = store.upload(new(), &b"anything"[..]).await.unwrap();
    let snapshot = back_up(&store, &clock).await;

    clock.advance(Duration::from_secs(1));
    store.scoped(&Scope::All).replace(first.file_id, &b"a guess"[..]).await.unwrap();
    clock.advance(HOUR);
    delete_and_purge(&store, &[first.file_id]).await;

    let purged = receipt(&store, first.file_id).await;
    let held = &purged.backups[0].snapshots;
    assert_eq!((held.len(), held[0].id), (1, snapshot));
    assert_eq!(held[0].sha256, [first.blob.sha256], "the guess is another's");
    store.close().await;
}
