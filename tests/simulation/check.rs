//! The end of a simulation: after a calm everything must be in its place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use filestore_core::{
    Clock, ErrorKind, FileRecord, FileStore, ListRequest, OrganizationId, ProviderCode, Scope,
};
use filestore_workspace::sha256_hex;
use tokio::time::sleep;

use super::client::organizations;
use super::content::Content;
use super::events;
use super::explaining;
use super::model::Fate;
use super::uploads;
use super::world::{PROVIDERS, World};

/// The most time for the workers to finish: longer than every grace period and lease, and three times as
/// long as the longest pause after a failure.
const CALM: Duration = Duration::from_hours(3);

/// Time between two looks at what waits: longer than the grace period of dropped blobs, which are not
/// counted before it is over.
const LOOK: Duration = Duration::from_mins(20);

/// Lets time pass until nothing waits, at two looks in turn, or there was more than enough of it.
pub(crate) async fn calm(store: &FileStore) {
    let (mut passed, mut idle_looks) = (Duration::ZERO, 0);
    while passed < CALM && idle_looks < 2 {
        sleep(LOOK).await;
        passed += LOOK;
        idle_looks = if is_idle(store).await { idle_looks + 1 } else { 0 };
    }
}

async fn is_idle(store: &FileStore) -> bool {
    let plan = store.admin().purge_plan().await.unwrap();
    store.admin().backlog().await.unwrap().is_empty() && plan.waiting + plan.expired == 0
}

/// Checks all promises that can be seen from outside.
pub(crate) async fn everything(world: &World, store: &FileStore, clock: &Clock) {
    every_known_file_is_as_acknowledged(world, store, clock).await;
    let records = all_records(store, ListRequest::default()).await;
    every_unknown_file_is_whole(world, store, &records).await;
    every_resumable_upload_is_over(world, store, &records).await;
    let is_erased = |one: &OrganizationId| world.model.borrow().has_erased(one);
    events::the_log_tells_every_file(store, &records, is_erased).await;
    // A life ends with a kill, and the calm is one more.
    world.receiver.expect_every_event(store, world.lives + 1, is_erased).await;
    nothing_waits(store).await;
    explaining::nothing_is_left_to_come(store, &world.model).await;
    bytes_are_where_records_say_and_nowhere_else(world, &records).await;
}

async fn every_known_file_is_as_acknowledged(world: &World, store: &FileStore, clock: &Clock) {
    let files = world.model.borrow().files.clone();
    let (now, moment) = (clock.now(), world.model.borrow_mut().next_moment());

    for (id, file) in files {
        let fate = world.model.borrow().fate(file.origin, moment);
        match store.scoped(&Scope::All).read(id).await {
            Ok(bytes) => {
                assert_ne!(fate, Fate::Erased, "{id} is back after an erasure: {file:?}");
                assert!(
                    file.live_with(&bytes).is_some(),
                    "{id} has {} bytes that it never had; it may be {file:?}",
                    bytes.len()
                );
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{id}: {}", error.chain());
                let may_be_gone = world.model.borrow().may_be_gone(&file, now);
                assert!(may_be_gone, "{id} is lost; it may be {file:?}");
                // Deleted, expired: the purge has had the time to take the record too.
                let info = store.scoped(&Scope::All).info(id).await;
                assert!(info.is_err(), "{id} is deleted and was not purged");
            }
        }
    }
}

/// Checks the files whose upload was never acknowledged: each whole and not erased, each batch complete.
async fn every_unknown_file_is_whole(world: &World, store: &FileStore, records: &[FileRecord]) {
    let known: BTreeSet<_> = world.model.borrow().files.keys().copied().collect();
    let mut batches: BTreeMap<String, usize> = BTreeMap::new();
    let moment = world.model.borrow_mut().next_moment();

    for record in records.iter().filter(|record| !known.contains(&record.file_id)) {
        let number = record.original_name.rsplit('-').next().unwrap().parse().unwrap();
        let bytes = store.scoped(&Scope::All).read(record.file_id).await.unwrap();
        assert_eq!(bytes, Content(number).bytes(), "{} is not whole", record.original_name);
        assert_eq!(record.blob.sha256.to_hex(), sha256_hex(&bytes), "{record:?}");
        let model = world.model.borrow();
        let fate = model.fate(model.origin_of(&record.original_name), moment);
        assert_ne!(fate, Fate::Erased, "{record:?} was erased");

        if let Some((batch, _)) = record.original_name.split_once("-content-") {
            *batches.entry(batch.to_owned()).or_default() += 1;
        }
    }

    for (batch, found) in batches {
        let items: usize = batch.rsplit('-').next().unwrap().parse().unwrap();
        assert_eq!(found, items, "{batch} is there in part");
    }
}

/// Checks that each resumable upload has become one file at most, the right one, and that nothing else is left
/// of it: the time of all is over.
async fn every_resumable_upload_is_over(world: &World, store: &FileStore, records: &[FileRecord]) {
    let mut files: BTreeMap<&str, &FileRecord> = BTreeMap::new();
    for record in records.iter().filter(|record| record.original_name.starts_with(uploads::NAME)) {
        let twice = files.insert(&record.original_name, record);
        assert!(twice.is_none(), "finished twice: {record:?} and {twice:?}");
    }

    for own in &world.own {
        let known = own.uploads.borrow().clone();
        for upload in known {
            let file = files.get(format!("{}-{}", uploads::NAME, upload.content.0).as_str());
            let may_be = file.is_none_or(|file| {
                upload.may_be_finished && upload.file.is_none_or(|id| id == file.file_id)
            });
            assert!(may_be, "{file:?} is not the file {:?}", upload.file);
            let status = store.resumable().status(&upload.address, &Scope::All).await;
            let kind = status.map_err(|error| error.kind());
            let is_over = matches!(kind, Err(ErrorKind::NotFound | ErrorKind::UploadGone));
            assert!(is_over, "the time is over of {:?}: {kind:?}", upload.address);
        }
    }
    for organization in organizations() {
        let left = store.resumable().list(&organization.into(), None, 1000).await.unwrap();
        assert!(left.is_empty(), "uploads are left: {left:?}");
    }
}

async fn nothing_waits(store: &FileStore) {
    let status = store.admin().sync_status().await.unwrap();
    assert_eq!((status.pending, status.syncing, status.failed), (0, 0, 0), "{status:?}");

    let plan = store.admin().purge_plan().await.unwrap();
    assert_eq!((plan.purged, plan.expired), (0, 0), "{plan:?}");
}

async fn bytes_are_where_records_say_and_nowhere_else(world: &World, records: &[FileRecord]) {
    for code in PROVIDERS {
        let code: ProviderCode = code.parse().unwrap();
        let objects = world.providers.objects(&code).await;
        let objects = objects.into_iter().filter(|path| !path.starts_with('.')).collect();
        assert_same(&keys_at(records, &code), &objects, code.as_str());
    }

    let data = world.data_dir();
    let blobs = files_below(&data.join("blobs"), "");
    let staged = files_below(&data.join("staging"), "");
    assert_same(&keys_at(records, &ProviderCode::local()), &blobs, "the disk");
    assert!(staged.is_empty(), "left in staging: {staged:?}");
}

fn keys_at(records: &[FileRecord], holder: &ProviderCode) -> BTreeSet<String> {
    let held = records.iter().filter(|record| record.blob.provider == *holder);
    held.map(|record| record.blob.key.as_str().to_owned()).collect()
}

fn assert_same(wanted: &BTreeSet<String>, found: &BTreeSet<String>, at: &str) {
    let missing: Vec<_> = wanted.difference(found).collect();
    let orphans: Vec<_> = found.difference(wanted).collect();
    assert!(missing.is_empty(), "records at {at} without bytes: {missing:?}");
    assert!(orphans.is_empty(), "bytes at {at} without a record: {orphans:?}");
}

pub(crate) fn files_below(dir: &Path, prefix: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path(), &format!("{name}/")));
        } else if !name.starts_with('.') {
            // The marker of the store is no blob.
            found.insert(name);
        }
    }
    found
}

/// Lists all records of a request.
pub(crate) async fn all_records(store: &FileStore, mut request: ListRequest) -> Vec<FileRecord> {
    request.limit = Some(1000);
    let mut records = Vec::new();

    loop {
        let page = store.scoped(&Scope::All).list(&request).await.unwrap();
        records.extend(page.items);
        request.cursor = page.next_cursor;
        if request.cursor.is_none() {
            return records;
        }
    }
}
