//! Lengths, quotas and bounds.

use super::*;

#[tokio::test]
async fn more_bytes_than_the_length_leave_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 5).await;
    let announced = Append { content_length: Some(6), ..Append::at(0) };
    let outcome = append(&store, &upload, announced, b"hello!").await;
    assert_eq!(kind(outcome), ErrorKind::UploadLengthExceeded);
    assert_eq!(status(&store, &upload).await.unwrap().offset, 0, "nothing was read");

    let outcome = append(&store, &upload, Append::at(0), b"hello!").await;
    assert_eq!(kind(outcome), ErrorKind::UploadLengthExceeded);
    assert_eq!(kind(status(&store, &upload).await), ErrorKind::UploadGone);
    assert_eq!(staged(&store).len(), 0);
}

#[tokio::test]
async fn a_length_comes_once_and_ends_the_upload_without_a_byte() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = created(&store, NewResumable::new(new())).await;
    append(&store, &upload, Append::at(0), b"hello").await.unwrap();
    let too_short = Append::at(5).with_length(4);
    let outcome = append(&store, &upload, too_short, b"").await;
    assert_eq!(kind(outcome), ErrorKind::UploadLengthInconsistent);

    let later = append(&store, &upload, Append::at(5).with_length(8), b"").await.unwrap();
    assert_eq!((later.offset, later.length), (5, Some(8)));
    let outcome = append(&store, &upload, Append::at(5).with_length(9), b"").await;
    assert_eq!(kind(outcome), ErrorKind::UploadLengthInconsistent);
    let upload = append(&store, &upload, Append::at(5).with_length(8), b"you").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "helloyou");

    let upload = created(&store, NewResumable::new(new())).await;
    append(&store, &upload, Append::at(0), b"hello").await.unwrap();
    let upload = append(&store, &upload, Append::at(5).with_length(5), b"").await.unwrap();
    assert_eq!((upload.is_finished(), upload.length), (true, Some(5)));
}

#[tokio::test]
async fn an_empty_file_finishes_with_an_empty_request() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 0).await;
    let upload = append(&store, &upload, Append::at(0), b"").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "");
}

#[tokio::test]
async fn an_offset_that_equals_the_length_is_open_until_the_last_request() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let upload = of_length(&store, 5).await;
    let upload = append(&store, &upload, Append::at(0).ending(Ends::Later), b"hello").await;
    let upload = upload.unwrap();
    assert_eq!((upload.stage, upload.offset), (UploadStage::Open, 5));
    let last = Append::at(5).ending(Ends::WithThisRequest);
    let upload = append(&store, &upload, last, b"").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "hello");
}

#[tokio::test]
async fn open_uploads_hold_room_in_the_quota_until_they_end() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::builder(dir.path()).quota_bytes(10).open().await.unwrap();
    let upload = of_length(&store, 8).await;
    let more = || NewResumable::new(new()).with_length(3);
    assert_eq!(kind(store.resumable().create(more()).await), ErrorKind::QuotaExceeded);
    let keyed = || {
        let key = IdempotencyKey::new("", "k").unwrap();
        NewResumable::new(new()).with_length(2).with_idempotency(key)
    };
    created(&store, keyed()).await;
    assert!(store.resumable().create(keyed()).await.unwrap().is_replay, "a repeat needs no room");
    store.close().await;
    drop(store);

    let store = FileStore::builder(dir.path()).quota_bytes(10).open().await.unwrap();
    assert_eq!(kind(store.resumable().create(more()).await), ErrorKind::QuotaExceeded);
    store.resumable().cancel(&upload.address, &Scope::All).await.unwrap();
    created(&store, more()).await;
}

#[tokio::test]
async fn an_upload_of_unknown_length_holds_what_it_has_in_the_quota() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::builder(dir.path()).quota_bytes(10).open().await.unwrap();
    let upload = created(&store, NewResumable::new(new())).await;
    append(&store, &upload, Append::at(0), b"hello").await.unwrap();
    let more = |length| NewResumable::new(new()).with_length(length);
    assert_eq!(kind(store.resumable().create(more(6)).await), ErrorKind::QuotaExceeded);
    created(&store, more(5)).await;
    let outcome = append(&store, &upload, Append::at(5), b"!").await;
    assert_eq!(kind(outcome), ErrorKind::QuotaExceeded);
    assert_eq!(status(&store, &upload).await.unwrap().offset, 5);
}

#[tokio::test]
async fn a_quota_that_is_full_at_the_end_is_asked_again_with_the_last_byte() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::builder(dir.path()).quota_files(1).open().await.unwrap();
    let upload = of_length(&store, 5).await;
    let other = store.upload(new(), &b"x"[..]).await.unwrap();
    let outcome = append(&store, &upload, Append::at(0), b"hello").await;
    assert_eq!(kind(outcome), ErrorKind::QuotaExceeded);
    assert_eq!(status(&store, &upload).await.unwrap().offset, 4);

    store.scoped(&Scope::All).delete(other.file_id).await.unwrap();
    let now = crate::domain::report::PurgeOptions {
        when: crate::domain::report::PurgeWhen::Now,
        organization: None,
    };
    store.admin().purge_with(&now, &|| false, &crate::worker::NoProgress).await.unwrap();
    let upload = append(&store, &upload, Append::at(4), b"o").await.unwrap();
    assert_eq!(read(&store, upload.file_id).await, "hello");
}

#[tokio::test]
async fn too_many_open_uploads_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = crate::StoreConfig::default();
    config.uploads.max_open_per_organization = 2;
    config.uploads.max_size = 100;
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
    let large = NewResumable::new(new()).with_length(101);
    assert_eq!(kind(store.resumable().create(large).await), ErrorKind::TooLarge);
    for _ in 0..2 {
        of_length(&store, 100).await;
    }
    let more = NewResumable::new(new()).with_length(1);
    let refused = store.resumable().create(more).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooManyUploads);
    assert!(refused.details().retry_after_secs.is_some());
    assert_eq!(staged(&store).len(), 2);
}
