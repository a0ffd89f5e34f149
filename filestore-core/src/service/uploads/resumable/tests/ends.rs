//! The ends of uploads: failed, cancelled, expired, erased.

use tokio::task::JoinHandle;

use super::*;
use crate::metadata::{UploadChanged, UploadRow};

#[tokio::test]
async fn a_stop_ends_transfers_and_keeps_what_has_arrived() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 10).await;
    let (_open, transfer) = begun(&store, &upload).await;
    store.resumable().stop();
    assert_eq!(kind(transfer.await.unwrap()), ErrorKind::Busy);
    assert_eq!(status(&store, &upload).await.unwrap().offset, 5);
}

/// Begins to append, and returns after the first bytes have been taken.
async fn begun(
    store: &FileStore,
    upload: &ResumableUpload,
) -> (mpsc::Sender<Bodies>, JoinHandle<Result<ResumableUpload>>) {
    let (sender, chunks) = mpsc::channel::<Bodies>(1);
    let chunks = Box::pin(stream::unfold(chunks, |mut chunks| async move {
        chunks.recv().await.map(|chunk| (chunk, chunks))
    }));
    let (store, address) = (store.clone(), upload.address.clone());
    let transfer =
        tasks::spawn(
            async move { store.resumable().append(&address, Append::at(0), chunks).await },
        );
    for chunk in ["hello", "", ""] {
        sender.send(Ok(chunk.into())).await.unwrap();
    }
    (sender, transfer)
}

#[tokio::test]
async fn a_request_of_a_broken_connection_ends_no_upload() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 10).await;
    let (_open, transfer) = begun(&store, &upload).await;

    let broken = Error::new(ErrorKind::MalformedBody, "reset");
    let broken = stream::iter([Ok(Bytes::from("hel")), Err(broken)]);
    let cut = store.resumable().append(&upload.address, Append::at(0), broken).await;
    assert_eq!(kind(cut), ErrorKind::MalformedBody);
    let error = transfer.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UploadOffsetMismatch, "{error}");
    assert_eq!(error.details().offset, Some(3));

    let upload = append(&store, &upload, Append::at(3), b"loworld").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "helloworld");
}

#[tokio::test]
async fn a_request_that_is_refused_ends_no_upload_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 10).await;
    let (_open, transfer) = begun(&store, &upload).await;
    let too_long = Append { content_length: Some(11), ..Append::at(0) };
    assert_eq!(
        kind(append(&store, &upload, too_long, b"hello world").await),
        ErrorKind::UploadLengthExceeded
    );
    let error = transfer.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UploadOffsetMismatch, "{error}");
}

#[tokio::test]
async fn a_request_that_the_server_took_long_to_check_ends_no_newer_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 10).await;
    // The head of a request on a line that breaks, and of its repetition.
    let delayed = store.resumable().arrive();
    let (sender, transfer) = begun(&store, &upload).await;

    let late = store.resumable().with_arrival(delayed);
    let refused = late.append(&upload.address, Append::at(0), body(b"hello world")).await;
    assert_eq!(kind(refused), ErrorKind::UploadSuperseded);
    assert_eq!(late.status(&upload.address, &Scope::All).await.unwrap().offset, 0, "not yet told");

    let key = IdempotencyKey::new("caller", "k").unwrap();
    let new = || NewResumable::new(new()).with_length(10).with_idempotency(key.clone());
    let keyed = store.resumable().create(new()).await.unwrap().upload;
    let (_keyed_body, keyed_transfer) = begun(&store, &keyed).await;
    let again = late.create(new()).await.unwrap();
    assert!(again.is_replay && !keyed_transfer.is_finished());

    sender.send(Ok("world".into())).await.unwrap();
    drop(sender);
    let upload = transfer.await.unwrap().unwrap();
    assert_eq!(read(&store, upload.file_id).await, "helloworld");
}

#[tokio::test]
async fn an_end_that_fails_for_now_is_not_told_as_complete() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 5).await;
    let outcome = append(&store, &upload, refused(ErrorKind::Busy), b"hello").await;
    assert_eq!(kind(outcome), ErrorKind::Busy);
    let open = status(&store, &upload).await.unwrap();
    assert_eq!((open.stage, open.offset), (UploadStage::Open, 4));
    let upload = append(&store, &upload, Append::at(4), b"o").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "hello");
}

#[tokio::test]
async fn an_end_that_another_request_superseded_fails_no_upload() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 5).await;
    let outcome = append(&store, &upload, refused(ErrorKind::UploadSuperseded), b"hello").await;
    assert_eq!(kind(outcome), ErrorKind::UploadSuperseded);
    let upload = append(&store, &upload, Append::at(4), b"o").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "hello");
}

async fn row(store: &FileStore, upload: &ResumableUpload) -> UploadRow {
    store.inner.metadata.upload(upload.address.upload_id).await.unwrap().unwrap()
}

async fn make_completing(store: &FileStore, upload: &ResumableUpload) -> UploadRow {
    let before = row(store, upload).await;
    let change = UploadChange::of(&before, |next| next.stage = UploadStage::Completing);
    assert_eq!(store.inner.metadata.change_upload(change).await.unwrap(), UploadChanged::Done);
    row(store, upload).await
}

#[tokio::test]
async fn upkeep_opens_an_upload_again_that_no_commit_ends() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 5).await;
    append(&store, &upload, Append::at(0), b"hell").await.unwrap();
    let running = store.inner.uploads.resumable.begin_finish(upload.address.upload_id);
    let completing = make_completing(&store, &upload).await;
    store.admin().upkeep().await.unwrap();
    assert_eq!(row(&store, &upload).await, completing, "its commit runs");

    drop(running);
    store.admin().upkeep().await.unwrap();
    let opened = row(&store, &upload).await;
    assert_eq!((opened.stage, opened.epoch), (UploadStage::Open, completing.epoch + 1));
    let upload = append(&store, &upload, Append::at(4), b"o").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "hello");
}

#[tokio::test]
async fn a_wait_for_a_commit_also_waits_for_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 5).await;
    let id = upload.address.upload_id;
    let state = &store.inner.uploads.resumable;
    let first = state.begin_finish(id);
    let completing = make_completing(&store, &upload).await;
    let waiting = store.clone();
    let waiting = tasks::spawn(async move { waiting.resumable().until_finished(id).await });
    let second = state.begin_finish(id);
    drop(first);
    store.admin().upkeep().await.unwrap();

    // Had the wait opened the upload again, the change would be lost.
    let change = UploadChange::of(&completing, |next| next.stage = UploadStage::Open);
    assert_eq!(store.inner.metadata.change_upload(change).await.unwrap(), UploadChanged::Done);
    drop(second);
    waiting.await.unwrap().unwrap();
    assert_eq!(row(&store, &upload).await.epoch, completing.epoch);
}

#[tokio::test]
async fn a_right_that_was_taken_away_fails_the_upload() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 5).await;
    let outcome = append(&store, &upload, refused(ErrorKind::Forbidden), b"hello").await;
    assert_eq!(kind(outcome), ErrorKind::Forbidden);
    let gone = status(&store, &upload).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::UploadGone);
    assert!(gone.message().contains("forbidden"), "{gone}");
    assert_eq!(staged(&store).len(), 0);

    // An organization that the caller may not write to any more.
    let upload = of_length(&store, 5).await;
    let elsewhere = Scope::Organizations(vec!["other".parse().unwrap()]);
    let recheck = move |_| async move { Ok(elsewhere) }.boxed();
    let narrowed = Append { recheck: Some(Box::new(recheck)), ..Append::at(0) };
    assert_eq!(kind(append(&store, &upload, narrowed, b"hello").await), ErrorKind::Forbidden);
}

#[tokio::test]
async fn bytes_with_another_digest_fail_the_upload_and_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let sum = Sha256(Hasher::digest(b"other").into());
    let new = NewResumable::new(new().with_sha256(sum)).with_length(5);
    let upload = created(&store, new).await;
    let outcome = append(&store, &upload, Append::at(0), b"hello").await;
    assert_eq!(kind(outcome), ErrorKind::DigestMismatch);
    assert_eq!(kind(status(&store, &upload).await), ErrorKind::UploadGone);
    assert_eq!(staged(&store).len(), 0);
}

#[tokio::test]
async fn an_upload_whose_bytes_are_gone_fails_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let [short, whole] = [of_length(&store, 10).await, of_length(&store, 10).await];
    append(&store, &short, Append::at(0), b"hello").await.unwrap();
    std::fs::write(staged_of(&store, &short).await, b"hell").unwrap();
    std::fs::remove_file(staged_of(&store, &whole).await).unwrap();
    store.close().await;
    drop(store);

    let store = open(dir.path()).await;
    assert_eq!(kind(status(&store, &short).await), ErrorKind::UploadGone);
    let whole = append(&store, &whole, Append::at(0), b"hello all!").await.unwrap();
    assert_eq!(read(&store, whole.file_id).await, "hello all!", "it had no bytes to lose");
}

async fn staged_of(store: &FileStore, upload: &ResumableUpload) -> std::path::PathBuf {
    let row = store.inner.metadata.upload(upload.address.upload_id).await.unwrap().unwrap();
    store.data_dir().path().join("staging").join(row.blob_id.to_string())
}

#[tokio::test]
async fn a_finished_upload_answers_its_last_request_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 5).await;
    let first = append(&store, &upload, Append::at(0), b"hello").await.unwrap();
    let again = append(&store, &upload, Append::at(5), b"").await.unwrap();
    assert_eq!((again.file_id, again.is_finished()), (first.file_id, true));
    assert_eq!(
        kind(append(&store, &upload, Append::at(4), b"o").await),
        ErrorKind::UploadOffsetMismatch
    );

    store.scoped(&Scope::All).delete(first.file_id.unwrap()).await.unwrap();
    assert_eq!(kind(status(&store, &upload).await), ErrorKind::UploadGone);
}

#[tokio::test]
async fn a_cancelled_upload_is_unknown_and_its_file_stays() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 5).await;
    append(&store, &upload, Append::at(0), b"he").await.unwrap();
    store.resumable().cancel(&upload.address, &Scope::All).await.unwrap();
    assert_eq!(kind(status(&store, &upload).await), ErrorKind::NotFound);
    assert_eq!(staged(&store).len(), 0);

    let upload = of_length(&store, 5).await;
    let done = append(&store, &upload, Append::at(0), b"hello").await.unwrap();
    store.resumable().cancel(&upload.address, &Scope::All).await.unwrap();
    assert_eq!(kind(status(&store, &upload).await), ErrorKind::NotFound);
    assert_eq!(read(&store, done.file_id).await, "hello");
}

#[tokio::test]
async fn an_upload_expires_after_its_lifetime_and_is_forgotten_later() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
    let store = FileStore::builder(dir.path()).clock(clock.clock()).open().await.unwrap();
    let [idle, busy] = [of_length(&store, 5).await, of_length(&store, 5).await];
    clock.advance(Duration::from_hours(23));
    let told = append(&store, &busy, Append::at(0), b"he").await.unwrap().expires_at;
    assert_eq!(told, store.now().plus(Duration::from_hours(24)));
    clock.advance(Duration::from_hours(2));
    super::super::end::upkeep(&store).await.unwrap();
    assert_eq!(kind(status(&store, &idle).await), ErrorKind::UploadGone);
    assert_eq!(staged(&store).len(), 1);
    append(&store, &busy, Append::at(2), b"llo").await.unwrap();

    clock.advance(Duration::from_hours(25));
    super::super::end::upkeep(&store).await.unwrap();
    assert_eq!(kind(status(&store, &idle).await), ErrorKind::NotFound);
}

#[tokio::test]
async fn progress_moves_the_expiry_up_to_the_greatest_age() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
    let store = FileStore::builder(dir.path()).clock(clock.clock()).open().await.unwrap();
    let mut upload = of_length(&store, 1000).await;
    let (created_at, mut told) = (upload.created_at, upload.expires_at);
    for _ in 0..8 {
        clock.advance(Duration::from_hours(22));
        let Ok(next) = append(&store, &upload, Append::at(upload.offset), b"x").await else {
            break;
        };
        assert!(next.expires_at >= told, "never earlier than told before");
        (told, upload) = (next.expires_at, next);
    }
    assert_eq!(told, created_at.plus(Duration::from_hours(7 * 24)));
}

#[tokio::test]
async fn an_erasure_ends_uploads_and_removes_their_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 5).await;
    append(&store, &upload, Append::at(0), b"he").await.unwrap();
    let (acme, quiet) = ("acme".parse().unwrap(), crate::worker::NoProgress);
    let receipt = store.admin().erase_organization(&acme, &|| false, &quiet).await;
    assert!(receipt.unwrap().is_complete);
    assert_eq!(staged(&store).len(), 0);
    assert_eq!(kind(append(&store, &upload, Append::at(2), b"llo").await), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_transfer_that_never_ends_ends_at_the_greatest_age() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
    let store = FileStore::builder(dir.path()).clock(clock.clock()).open().await.unwrap();
    let upload = of_length(&store, 10).await;
    let (sender, chunks) = mpsc::channel::<Bodies>(1);
    let chunks = Box::pin(stream::unfold(chunks, |mut chunks| async move {
        chunks.recv().await.map(|chunk| (chunk, chunks))
    }));
    let (old, address) = (store.clone(), upload.address.clone());
    let transfer =
        tasks::spawn(async move { old.resumable().append(&address, Append::at(0), chunks).await });
    for chunk in ["hello", "", ""] {
        sender.send(Ok(chunk.into())).await.unwrap();
    }

    clock.advance(Duration::from_hours(25));
    super::super::end::upkeep(&store).await.unwrap();
    clock.advance(Duration::from_hours(7 * 24));
    super::super::end::upkeep(&store).await.unwrap();
    drop(sender);
    assert_eq!(kind(transfer.await.unwrap()), ErrorKind::UploadGone);
    assert_eq!(kind(status(&store, &upload).await), ErrorKind::UploadGone);
    assert_eq!(staged(&store).len(), 0);
}
