//! The store as an application embeds it: no server, no network.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use filestore_core::admin::{NoProgress, PurgeOptions, PurgeWhen};
use filestore_core::uploads::{GivenName, IdempotencyKey, UploadClaims, UploadSession, Uploaded};
use filestore_core::{
    BatchItem, ErrorKind, FilePolicy, FileStore, ListRequest, NewBatch, NewUpload, PurgeStatus,
    Scope, Status, StoreConfig, SyncStatus,
};
use futures_util::stream;
use tokio::io::AsyncReadExt as _;

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

async fn begin(store: &FileStore, bytes: u64) -> filestore_core::Result<UploadSession> {
    store.uploads().begin(UploadClaims::new("acme".parse().unwrap()).with_bytes(bytes)).await
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
    assert_eq!(*again.scoped(&Scope::All).record(record.file_id).await.unwrap(), record);
    assert_eq!(again.scoped(&Scope::All).read(record.file_id).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_batch_is_all_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path()).await;
    let mut session = begin(&store, 0).await.unwrap();
    for index in [7, 3] {
        session.begin_item(index).await.unwrap();
        session.write(format!("item {index}").into()).await.unwrap();
    }
    let batch = || NewBatch::new("acme".parse().unwrap(), "docs".parse().unwrap());
    let items = [7, 3].map(BatchItem::new).into();
    let Uploaded::New(records) = session.commit_batch(batch(), items).await.unwrap() else {
        panic!("nothing to replay")
    };
    let mut texts = Vec::new();
    for record in &records {
        texts.push(store.scoped(&Scope::All).read(record.file_id).await.unwrap());
    }
    assert_eq!(texts, ["item 3", "item 7"], "answered in ascending order of the index");

    let mut session = begin(&store, 0).await.unwrap();
    session.begin_item(9).await.unwrap();
    session.write("x".into()).await.unwrap();
    let bad = BatchItem::new(9).with_given(GivenName::named("a\nb"));
    let error = session.commit_batch(batch(), vec![bad]).await.unwrap_err();
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
    let changed =
        store.scoped(&Scope::All).replace(record.file_id, &b"new bytes"[..]).await.unwrap();
    assert_eq!(changed.record.version, 2);
    assert_ne!(changed.record.blob.key, record.blob.key);
    assert_eq!(changed.record.original_name, "a.txt");
    assert_eq!(store.scoped(&Scope::All).read(record.file_id).await.unwrap(), "new bytes");
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
    store.scoped(&Scope::All).delete(id).await.unwrap();
    let deleted = store.scoped(&Scope::All).delete(id).await.unwrap();
    assert_eq!(deleted.state.purge(), Some(PurgeStatus::SystemPurge));
    assert_eq!(store.scoped(&Scope::All).read(id).await.unwrap_err().kind(), ErrorKind::NotFound);
    let plan = store.admin().purge_plan().await.unwrap();
    assert_eq!((plan.purged, plan.waiting_bytes), (0, 5), "it can be restored for a day");
    let mut options = PurgeOptions::default();
    options.when = PurgeWhen::Now;
    let report = store.admin().purge_with(&options, &|| false, &NoProgress).await.unwrap();
    assert_eq!((report.purged, report.failures.len()), (1, 0));
    assert_eq!(store.scoped(&Scope::All).info(id).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(files_below(&dir.path().join("blobs")), 0);
}

#[tokio::test]
async fn a_temp_file_expires_into_a_purge() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = StoreConfig::default();
    config.temp_ttl = std::time::Duration::ZERO;
    config.purge_grace = std::time::Duration::ZERO;
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
    let id = store.upload(new("a.txt").temp(), &b"bytes"[..]).await.unwrap().file_id;
    let report = store.admin().purge(&NoProgress).await.unwrap();
    assert_eq!((report.expired, report.purged), (1, 1));
    assert_eq!(store.scoped(&Scope::All).info(id).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn restore_brings_a_file_back_until_the_purge_claims_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path()).await;
    let record = store.upload(new("a.txt"), &b"bytes"[..]).await.unwrap();
    store.scoped(&Scope::All).delete(record.file_id).await.unwrap();
    let restored = store.scoped(&Scope::All).restore(record.file_id).await.unwrap();
    assert_eq!(restored.state, record.state);
    assert_eq!(store.scoped(&Scope::All).read(record.file_id).await.unwrap(), "bytes");
    let again = store.scoped(&Scope::All).restore(record.file_id).await.unwrap();
    assert_eq!(again, restored, "a second call changes nothing");
}

#[tokio::test]
async fn waiting_files_settle_when_there_is_nowhere_to_go() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path()).await;
    let record = store.upload(new("a.txt"), &b"bytes"[..]).await.unwrap();
    assert_eq!(store.admin().sync(std::sync::Arc::new(NoProgress)).await.unwrap().settled, 1);
    let settled = store.scoped(&Scope::All).record(record.file_id).await.unwrap();
    assert_eq!(settled.state.sync(), SyncStatus::None);
    assert_eq!(settled.updated_at, record.updated_at);
}

#[tokio::test]
async fn an_idempotent_upload_is_done_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path()).await;
    let begin = async || {
        let key = IdempotencyKey::new("", "key-1").unwrap();
        let claims = UploadClaims::new("acme".parse().unwrap()).with_idempotency(key);
        store.uploads().begin(claims).await
    };
    let upload = async |bytes: &'static str| {
        let mut session = begin().await.unwrap();
        session.write(bytes.into()).await.unwrap();
        session.commit(new("a.txt")).await
    };
    let Uploaded::New(first) = upload("bytes").await.unwrap() else { panic!("nothing to replay") };
    let Uploaded::Replayed(again) = upload("bytes").await.unwrap() else { panic!("a second file") };
    assert_eq!(again.file_ids(), [first.file_id]);
    let other = upload("other").await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::IdempotencyMismatch);
    let held = begin().await.unwrap();
    let refused = begin().await.unwrap_err();
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
    let held = begin(&store, 4).await.unwrap();
    assert!(begin(&store, 1).await.is_err(), "reserved room is not given twice");
    drop(held);
    assert!(begin(&store, 4).await.is_ok());
    store.close().await;
    assert_eq!(files_below(&dir.path().join("staging")), 0);
}

#[tokio::test]
async fn a_reservation_grows_up_to_the_quota_and_no_further() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = StoreConfig::default();
    config.quota_bytes = Some(1_000_000);
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
    let bytes = |count: usize| vec![b'x'; count].into();
    store.upload(new("a.txt"), &vec![b'x'; 300_000][..]).await.unwrap();

    let mut held = begin(&store, 0).await.unwrap();
    held.write(bytes(600_000)).await.unwrap();
    assert!(begin(&store, 100_001).await.is_err(), "what has arrived is reserved");

    let other = begin(&store, 100_000).await.unwrap();
    // The room grows in steps, and the commit decides.
    let over = held.write(bytes(1_100_000)).await.unwrap_err();
    assert_eq!((over.kind(), over.details().limit), (ErrorKind::QuotaExceeded, Some(1_000_000)));
    drop(other);
    assert!(begin(&store, 100_001).await.is_err(), "what is reserved stays reserved");
    drop(held);
    assert!(begin(&store, 700_000).await.is_ok());
}

#[tokio::test]
async fn a_wrong_digest_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path()).await;
    let mut upload = new("a.txt");
    upload.sha256 = Some(filestore_core::Sha256([0; 32]));
    let error = store.upload(upload, &b"bytes"[..]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DigestMismatch);
    assert_eq!(store.scoped(&Scope::All).list(&ListRequest::default()).await.unwrap().items, []);
}

#[tokio::test]
async fn a_temporary_store_leaves_nothing_and_is_one_of_its_own() {
    let (one, other) =
        (FileStore::temporary().await.unwrap(), FileStore::temporary().await.unwrap());
    let path = one.data_dir().path().to_owned();
    assert_ne!(path, other.data_dir().path());
    let id = one.upload(new("a.txt"), &b"bytes"[..]).await.unwrap().file_id;
    assert_eq!(one.scoped(&Scope::All).read(id).await.unwrap(), "bytes");
    assert!(other.scoped(&Scope::All).read(id).await.is_err());

    one.close().await;
    drop(one);
    assert!(!path.exists(), "the directory goes with the last handle");
}

#[tokio::test]
async fn chunks_go_in_and_come_out_as_a_reader() {
    let store = FileStore::temporary().await.unwrap();
    let chunks = || ["hello, ", "", "world"].map(|chunk| Ok::<_, std::io::Error>(chunk.into()));
    let record = store.upload_stream(new("a.txt"), stream::iter(chunks())).await.unwrap();
    let files = store.scoped(&Scope::All);
    let (_, mut reader) = files.reader(record.file_id, Some(7..100)).await.unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "world", "a range beyond the end is cut");

    let new_bytes = [Ok::<_, std::io::Error>(Bytes::from("new"))];
    files.replace_stream(record.file_id, stream::iter(new_bytes)).await.unwrap();
    assert_eq!(files.read(record.file_id).await.unwrap(), "new");

    let broken = [Ok(Bytes::from("half")), Err(std::io::Error::other("cut"))];
    let error = store.upload_stream(new("b.txt"), stream::iter(broken)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MalformedBody);
    assert_eq!(files.list(&ListRequest::default()).await.unwrap().items.len(), 1);
}

/// A source that must not be read.
struct Unread;
impl tokio::io::AsyncRead for Unread {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        panic!("the bytes are read")
    }
}

#[tokio::test]
async fn a_policy_refuses_before_bytes_are_kept() {
    let store = FileStore::temporary().await.unwrap();
    let policy = FilePolicy::new().max_bytes(100).types(["text/plain"]).extensions(["txt"]);
    let upload = async |name: &str, bytes: &[u8]| {
        store.upload(new(name).with_policy(policy.clone()), bytes).await
    };
    upload("a.txt", b"hello").await.unwrap();
    assert_eq!(upload("a.txt", &[b'x'; 101]).await.unwrap_err().kind(), ErrorKind::TooLarge);
    let refused = upload("a.txt", b"<!DOCTYPE html><html>").await.unwrap_err();
    assert_eq!(refused.details().field.as_deref(), Some("mime_type"));

    // The name alone is enough: no byte is read.
    let named = new("a.exe").with_policy(policy.clone());
    let refused = store.upload(named, Unread).await.unwrap_err();
    assert_eq!(refused.details().allowed, ["txt"]);

    let batch = NewBatch::new("acme".parse().unwrap(), "docs".parse().unwrap());
    let files = [("a.txt", "fine"), ("b.png", "not fine")];
    let files = files.map(|(name, bytes)| (GivenName::named(name), bytes.into()));
    let refused = store.batch(batch.with_policy(policy), files).await.unwrap_err();
    assert_eq!(refused.details().item, Some(1));

    let batch = NewBatch::new("acme".parse().unwrap(), "docs".parse().unwrap());
    let file = (GivenName::named("a.txt"), [b'x'; 101].to_vec().into());
    let policy = FilePolicy::new().max_bytes(100);
    let refused = store.batch(batch.with_policy(policy), [file]).await.unwrap_err();
    assert_eq!(refused.details().limit, Some(100), "of the file, not of the batch: {refused}");

    assert_eq!(
        store.scoped(&Scope::All).list(&ListRequest::default()).await.unwrap().items.len(),
        1
    );
    nothing_staged(&store).await;
}

/// Waits until no refused bytes are left. A task of the store removes them.
async fn nothing_staged(store: &FileStore) {
    let staging = store.data_dir().path().join("staging");
    let emptied = async {
        while files_below(&staging) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), emptied).await.expect("refused bytes stay");
}
