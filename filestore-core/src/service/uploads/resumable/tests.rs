//! Transfers, restarts and races. The rooms below have the ends, the bounds and the terms.

mod bounds;
mod ends;
mod terms;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, stream};
use sha2::{Digest, Sha256 as Hasher};
use tokio::sync::mpsc;

use super::request::{Append, BodyCheck, Ends, NewResumable, ResumableTarget};
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::policy::FilePolicy;
use crate::domain::file::resumable::{ResumableUpload, UploadStage, UploadTotals};
use crate::domain::id::{FileId, Sha256};
use crate::domain::time::clock::{ManualClock, Timestamp};
use crate::metadata::UploadChange;
use crate::service::request::GivenName;
use crate::service::uploads::idempotency::IdempotencyKey;
use crate::service::{FileStore, IfMatch, NewUpload, Preconditions, Replacement};
use crate::tasks;

/// Bytes that tell a hole or a shift.
fn content(length: u32) -> Vec<u8> {
    (0..length).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect()
}

type Bodies = Result<Bytes, Error>;

async fn open(dir: &Path) -> FileStore {
    FileStore::open(dir).await.unwrap()
}

fn new() -> NewUpload {
    NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap()).with_name("big.bin")
}

async fn created(store: &FileStore, new: NewResumable) -> ResumableUpload {
    store.resumable().create(new).await.unwrap().upload
}

async fn of_length(store: &FileStore, length: u64) -> ResumableUpload {
    created(store, NewResumable::new(new()).with_length(length)).await
}

fn body(bytes: &[u8]) -> impl futures_util::Stream<Item = Bodies> + Send + Unpin + use<> {
    let chunks: Vec<_> = bytes.chunks(70_000).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
    stream::iter(chunks)
}

async fn append(
    store: &FileStore,
    upload: &ResumableUpload,
    append: Append,
    bytes: &[u8],
) -> Result<ResumableUpload> {
    store.resumable().append(&upload.address, append, body(bytes)).await
}

async fn status(store: &FileStore, upload: &ResumableUpload) -> Result<ResumableUpload> {
    store.resumable().status(&upload.address, &Scope::All).await
}

async fn read(store: &FileStore, id: Option<FileId>) -> Bytes {
    store.scoped(&Scope::All).read(id.unwrap()).await.unwrap()
}

fn staged(store: &FileStore) -> Vec<std::path::PathBuf> {
    let dir = std::fs::read_dir(store.data_dir().path().join("staging")).unwrap();
    dir.map(|entry| entry.unwrap().path()).collect()
}

fn kind<T: std::fmt::Debug>(outcome: Result<T>) -> ErrorKind {
    outcome.unwrap_err().kind()
}

#[tokio::test]
async fn pieces_of_many_requests_become_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let bytes = content(500_000);
    let mut upload = of_length(&store, 500_000).await;
    for end in [0, 1, 100_000, 499_999, 500_000] {
        let from = usize::try_from(upload.offset).unwrap();
        let more = append(&store, &upload, Append::at(upload.offset), &bytes[from..end]).await;
        upload = more.unwrap();
        assert_eq!(upload.offset, end as u64);
        assert_eq!(upload.is_finished(), end == 500_000);
        assert_eq!(status(&store, &upload).await.unwrap().offset, upload.offset);
    }

    assert_eq!(read(&store, upload.file_id).await, bytes);
    let record = store.scoped(&Scope::All).record(upload.file_id.unwrap()).await.unwrap();
    assert_eq!(record.blob.sha256, Sha256(Hasher::digest(&bytes).into()));
    assert_eq!(record.original_name, "big.bin");
    store.inner.uploads.publishing.idle().await;
    assert_eq!(staged(&store).len(), 0);
    assert_eq!(store.inner.metadata.upload_totals().await.unwrap(), UploadTotals::default());
}

#[tokio::test]
async fn a_body_that_is_cut_keeps_what_has_arrived() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 10).await;
    let broken = Error::new(ErrorKind::MalformedBody, "cut");
    let cut = stream::iter([Ok(Bytes::from("hell")), Err(broken)]);
    let outcome = store.resumable().append(&upload.address, Append::at(0), cut).await;
    assert_eq!(kind(outcome), ErrorKind::MalformedBody);
    assert_eq!(status(&store, &upload).await.unwrap().offset, 4);

    // A body that ends before its announced length is one that was cut.
    let announced = Append { content_length: Some(6), ..Append::at(4) };
    assert_eq!(kind(append(&store, &upload, announced, b"o ").await), ErrorKind::MalformedBody);
    let upload = append(&store, &upload, Append::at(6), b"all!").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "hello all!");
}

#[tokio::test]
async fn a_newer_request_ends_the_older_one_and_hears_what_it_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 10).await;
    let (sender, chunks) = mpsc::channel::<Bodies>(1);
    let chunks = stream::unfold(chunks, |mut chunks| async move {
        chunks.recv().await.map(|chunk| (chunk, chunks))
    });
    let chunks = Box::pin(chunks);
    let (old, address) = (store.clone(), upload.address.clone());
    let transfer =
        tasks::spawn(async move { old.resumable().append(&address, Append::at(0), chunks).await });
    // The channel has room for one: once the third is in it, the second was taken, and the first written.
    for chunk in ["hello", "", ""] {
        sender.send(Ok(chunk.into())).await.unwrap();
    }
    let offset = status(&store, &upload).await.unwrap().offset;
    assert_eq!(offset, 5);
    assert_eq!(kind(transfer.await.unwrap()), ErrorKind::UploadSuperseded);
    let rest = &b"hello all!"[usize::try_from(offset).unwrap()..];
    let upload = append(&store, &upload, Append::at(offset), rest).await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "hello all!");
}

#[tokio::test]
async fn a_wrong_offset_hears_the_right_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 10).await;
    append(&store, &upload, Append::at(0), b"hello").await.unwrap();
    for wrong in [0, 4, 6, u64::MAX] {
        let error = append(&store, &upload, Append::at(wrong), b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UploadOffsetMismatch);
        assert_eq!(error.details().offset, Some(5));
    }
}

#[tokio::test]
async fn two_requests_at_one_offset_make_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    for _ in 0..10 {
        let upload = of_length(&store, 4).await;
        let one = append(&store, &upload, Append::at(0), b"same");
        let other = append(&store, &upload, Append::at(0), b"same");
        let (one, other) = tokio::join!(one, other);
        let (done, refused) = if one.is_ok() { (one, other) } else { (other, one) };
        assert_eq!(read(&store, done.unwrap().file_id).await, "same");
        let refused = kind(refused);
        let (ended, late) = (ErrorKind::UploadSuperseded, ErrorKind::UploadOffsetMismatch);
        assert!(refused == ended || refused == late, "{refused:?}");
    }
    let usage = store.scoped(&Scope::All).usage(&"acme".parse().unwrap()).await.unwrap();
    assert_eq!(usage.total().files, 10);
}

/// A right that is refused with an error of the kind.
fn refused(kind: ErrorKind) -> Append {
    let recheck = move |_| async move { Err(Error::new(kind, "refused")) }.boxed();
    Append { recheck: Some(Box::new(recheck)), ..Append::at(0) }
}

#[tokio::test]
async fn an_upload_goes_on_after_a_restart_and_forgets_what_nobody_was_told() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 10).await;
    append(&store, &upload, Append::at(0), b"hello").await.unwrap();
    let path = staged(&store).remove(0);
    store.close().await;
    drop(store);
    // As a crash leaves it between the write and the commit of its offset.
    std::fs::write(&path, b"hello and what nobody was told").unwrap();

    let store = open(dir.path()).await;
    assert_eq!(status(&store, &upload).await.unwrap().offset, 5);
    let upload = append(&store, &upload, Append::at(5), b" all!").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "hello all!");
}

#[tokio::test]
async fn an_upload_that_was_completing_is_open_again_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 5).await;
    append(&store, &upload, Append::at(0), b"hell").await.unwrap();
    let row = store.inner.metadata.upload(upload.address.upload_id).await.unwrap().unwrap();
    let change = UploadChange::of(&row, |next| next.stage = UploadStage::Completing);
    store.inner.metadata.change_upload(change).await.unwrap();
    std::fs::write(staged(&store).remove(0), b"hello").unwrap();
    store.close().await;
    drop(store);

    let store = open(dir.path()).await;
    let open = status(&store, &upload).await.unwrap();
    assert_eq!((open.stage, open.offset), (UploadStage::Open, 4));
    let upload = append(&store, &upload, Append::at(4), b"o").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "hello");
}
