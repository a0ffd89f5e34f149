//! The store as an application embeds it: no server, no network.

use std::path::Path;

use filestore_core::domain::config::StoreConfig;
use filestore_core::domain::scope::Scope;
use filestore_core::domain::status::{PurgeStatus, Status, SyncStatus};
use filestore_core::service::{
    BatchItem, Change, GivenName, ListRequest, NewBatch, NewUpload, Replacement, Uploaded,
};
use filestore_core::worker::NoProgress;
use filestore_core::{ErrorKind, FileStore};

fn new(name: &str) -> NewUpload {
    NewUpload::new("acme".parse().unwrap(), "gallery".parse().unwrap()).with_name(name)
}

async fn store(dir: &Path) -> FileStore {
    FileStore::open(dir).await.unwrap()
}

fn files_below(dir: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_below(&path)
            } else {
                usize::from(!path.ends_with(".store-id"))
            }
        })
        .sum()
}

async fn replacement(store: &FileStore, bytes: &'static [u8]) -> Replacement {
    Replacement::new(store.uploads().stage_bytes(bytes.into()).await.unwrap())
}

#[tokio::test]
async fn an_upload_is_there_after_the_store_was_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path()).await;
    let record = first.upload(new("hello.txt"), &b"hello"[..]).await.unwrap();
    assert_eq!(record.state.status(), Status::Ready);
    assert_eq!(record.state.sync(), SyncStatus::Pending);
    assert_eq!((record.mime_type.as_str(), record.ext.as_str()), ("text/plain", "txt"));
    first.close().await;
    drop(first);
    let again = store(dir.path()).await;
    assert_eq!(*again.record(record.file_id, &Scope::All).await.unwrap(), record);
    assert_eq!(again.read(record.file_id, &Scope::All).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_batch_is_all_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path()).await;
    let mut items = Vec::new();
    for index in [7, 3] {
        let staged = store.uploads().stage_bytes(format!("item {index}").into()).await.unwrap();
        items.push((BatchItem::new(index), staged));
    }
    let batch = || NewBatch::new("acme".parse().unwrap(), "docs".parse().unwrap());
    let Uploaded::New(records) = store.uploads().commit_batch(batch(), items).await.unwrap() else {
        panic!("nothing to replay")
    };
    let mut texts = Vec::new();
    for record in &records {
        texts.push(store.read(record.file_id, &Scope::All).await.unwrap());
    }
    assert_eq!(texts, ["item 3", "item 7"], "answered in ascending order of the index");

    let staged = store.uploads().stage_bytes("x".into()).await.unwrap();
    let bad = BatchItem::new(9).with_given(GivenName::named("a\nb"));
    let error = store.uploads().commit_batch(batch(), vec![(bad, staged)]).await.unwrap_err();
    assert_eq!(error.details().item, Some(9));
    assert_eq!(error.details().field.as_deref(), Some("original_name"));
    let shown = filestore_core::api::field_name(&error);
    assert_eq!(shown.as_deref(), Some("items[9].original_name"));
    store.close().await;
    assert_eq!(files_below(&dir.path().join("blobs")), 2);
}

#[tokio::test]
async fn a_replace_swaps_the_blob_and_the_old_one_goes_after_its_grace() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = StoreConfig::default();
    config.blob_grace = std::time::Duration::ZERO;
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
    let record = store.upload(new("a.txt"), &b"old"[..]).await.unwrap();
    let change = Change::Replace(replacement(&store, b"new bytes").await);
    let changed = store.change(record.file_id, &Scope::All, change, None).await.unwrap();
    assert_eq!(changed.record.version, 2);
    assert_ne!(changed.record.blob.key, record.blob.key);
    assert_eq!(changed.record.original_name, "a.txt");
    assert_eq!(store.read(record.file_id, &Scope::All).await.unwrap(), "new bytes");
    let report = store.admin().purge(&NoProgress).await.unwrap();
    assert_eq!((report.blobs_removed, report.purged), (1, 0));
    store.close().await;
    assert_eq!(files_below(&dir.path().join("blobs")), 1);
}

#[tokio::test]
async fn a_deleted_file_is_gone_at_once_and_its_bytes_after_the_purge() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path()).await;
    let id = store.upload(new("a.txt"), &b"bytes"[..]).await.unwrap().file_id;
    store.delete(id, &Scope::All).await.unwrap();
    let deleted = store.delete(id, &Scope::All).await.unwrap();
    assert_eq!(deleted.state.purge(), Some(PurgeStatus::SystemPurge));
    assert_eq!(store.read(id, &Scope::All).await.unwrap_err().kind(), ErrorKind::NotFound);
    let plan = store.admin().purge_plan().await.unwrap();
    assert_eq!((plan.purged, plan.purged_bytes), (1, 5));
    let report = store.admin().purge(&NoProgress).await.unwrap();
    assert_eq!((report.purged, report.failures.len()), (1, 0));
    assert_eq!(store.info(id, &Scope::All).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(files_below(&dir.path().join("blobs")), 0);
}

#[tokio::test]
async fn a_temp_file_expires_into_a_purge() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = StoreConfig::default();
    config.temp_ttl = std::time::Duration::ZERO;
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
    let id = store.upload(new("a.txt").temp(), &b"bytes"[..]).await.unwrap().file_id;
    let report = store.admin().purge(&NoProgress).await.unwrap();
    assert_eq!((report.expired, report.purged), (1, 1));
    assert_eq!(store.info(id, &Scope::All).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn restore_brings_a_file_back_until_the_purge_claims_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path()).await;
    let record = store.upload(new("a.txt"), &b"bytes"[..]).await.unwrap();
    store.delete(record.file_id, &Scope::All).await.unwrap();
    let restored = store.restore(record.file_id, &Scope::All).await.unwrap();
    assert_eq!(restored.state, record.state);
    assert_eq!(store.read(record.file_id, &Scope::All).await.unwrap(), "bytes");
    let again = store.restore(record.file_id, &Scope::All).await.unwrap();
    assert_eq!(again, restored, "a second call changes nothing");
}

#[tokio::test]
async fn waiting_files_settle_when_there_is_nowhere_to_go() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path()).await;
    let record = store.upload(new("a.txt"), &b"bytes"[..]).await.unwrap();
    assert_eq!(store.admin().sync(std::sync::Arc::new(NoProgress)).await.unwrap().settled, 1);
    let settled = store.record(record.file_id, &Scope::All).await.unwrap();
    assert_eq!(settled.state.sync(), SyncStatus::None);
    assert_eq!(settled.updated_at, record.updated_at);
}

#[tokio::test]
async fn an_idempotent_upload_is_done_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path()).await;
    let keyed = async |name| {
        let mut upload = new(name);
        upload.idempotency = Some(
            store.uploads().begin_idempotent(&"acme".parse().unwrap(), "", "key-1").await.unwrap(),
        );
        upload
    };
    let first = store.upload(keyed("a.txt").await, &b"bytes"[..]).await.unwrap();
    let again = store.upload(keyed("a.txt").await, &b"bytes"[..]).await.unwrap();
    assert_eq!(first.file_id, again.file_id);
    let other = store.upload(keyed("a.txt").await, &b"other"[..]).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::IdempotencyMismatch);
    let held = keyed("b.txt").await;
    let refused =
        store.uploads().begin_idempotent(&"acme".parse().unwrap(), "", "key-1").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::IdempotencyInProgress);
    drop(held);
}

#[tokio::test]
async fn the_quota_is_settled_in_the_commit() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = StoreConfig::default();
    config.quota_bytes = Some(10);
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
    store.upload(new("a.txt"), &b"123456"[..]).await.unwrap();
    let over = store.upload(new("b.txt"), &b"12345"[..]).await.unwrap_err();
    assert_eq!(over.kind(), ErrorKind::QuotaExceeded);
    let organization = "acme".parse().unwrap();
    let held = store.uploads().reserve_quota(&organization, 4).await.unwrap();
    assert!(
        store.uploads().reserve_quota(&organization, 1).await.is_err(),
        "reserved room is not given twice"
    );
    drop(held);
    assert!(store.uploads().reserve_quota(&organization, 4).await.is_ok());
    store.close().await;
    assert_eq!(files_below(&dir.path().join("staging")), 0);
}

#[tokio::test]
async fn a_reservation_grows_up_to_the_quota_and_no_further() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = StoreConfig::default();
    config.quota_bytes = Some(10);
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
    let organization = "acme".parse().unwrap();
    store.upload(new("a.txt"), &b"123"[..]).await.unwrap();

    let mut held = store.uploads().reserve_quota(&organization, 0).await.unwrap().unwrap();
    store.uploads().extend_quota(&mut held, 6).await.unwrap();
    store.uploads().extend_quota(&mut held, 2).await.unwrap();
    let over = store.uploads().extend_quota(&mut held, 8).await.unwrap_err();
    assert_eq!((over.kind(), over.details().limit), (ErrorKind::QuotaExceeded, Some(10)));

    let mut other = store.uploads().reserve_quota(&organization, 1).await.unwrap().unwrap();
    assert!(
        store.uploads().extend_quota(&mut held, 7).await.is_err(),
        "the last byte is the other's"
    );
    store.uploads().extend_quota(&mut other, 1).await.unwrap();
    drop(other);
    store.uploads().extend_quota(&mut held, 7).await.unwrap();
    drop(held);
    assert!(store.uploads().reserve_quota(&organization, 7).await.is_ok());
}

#[tokio::test]
async fn a_wrong_digest_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path()).await;
    let mut upload = new("a.txt");
    upload.sha256 = Some(filestore_core::domain::id::Sha256([0; 32]));
    let error = store.upload(upload, &b"bytes"[..]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DigestMismatch);
    assert_eq!(store.list(&ListRequest::default(), &Scope::All).await.unwrap().items, []);
}
