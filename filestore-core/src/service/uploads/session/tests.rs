use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::ReadBuf;

use super::*;
use crate::domain::access::signed_url::UploadPermit;
use crate::domain::config::StoreConfig;
#[cfg(feature = "pictures")]
use crate::domain::file::record::Dimensions;
use crate::service::uploads::idempotency::IdempotencyKey;
use crate::service::{BatchItem, IfMatch, NewBatch, NewUpload, Replacement, Uploaded};
use crate::tasks;

/// A store with a quota of ten bytes for each organization.
struct Home {
    _dir: tempfile::TempDir,
    store: FileStore,
}

impl Home {
    async fn new() -> Self {
        Self::of(StoreConfig { quota_bytes: Some(10), ..StoreConfig::default() }).await
    }

    async fn of(config: StoreConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
        Self { _dir: dir, store }
    }

    async fn begin(&self, claims: UploadClaims) -> Result<UploadSession> {
        self.store.uploads().begin(claims).await
    }

    /// A session that has received `text`.
    async fn received(&self, claims: UploadClaims, text: &'static str) -> UploadSession {
        let mut session = self.begin(claims).await.unwrap();
        session.write(text.into()).await.unwrap();
        session
    }

    fn staged_names(&self) -> usize {
        std::fs::read_dir(self.store.data_dir().path().join("staging")).unwrap().count()
    }

    /// Puts a directory in the place of each staged file. A directory opens, and a read of it fails.
    #[cfg(feature = "pictures")]
    fn let_reads_fail(&self) {
        let staging = self.store.data_dir().path().join("staging");
        for entry in std::fs::read_dir(staging).unwrap() {
            let path = entry.unwrap().path();
            std::fs::remove_file(&path).unwrap();
            std::fs::create_dir(path).unwrap();
        }
    }

    /// Removes the directories that [`let_reads_fail`](Self::let_reads_fail) made.
    #[cfg(feature = "pictures")]
    fn let_reads_work(&self) {
        let staging = self.store.data_dir().path().join("staging");
        for entry in std::fs::read_dir(staging).unwrap() {
            std::fs::remove_dir(entry.unwrap().path()).unwrap();
        }
    }

    /// Waits until nothing is staged. A task of its own unlinks dropped bytes and stops counting them.
    async fn nothing_staged(&self) {
        let emptied = async {
            while self.staged_names() > 0 || self.store.inner.uploads.staged.staged().files > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(tasks::HANG, emptied).await.unwrap();
    }
}

fn claims() -> UploadClaims {
    UploadClaims::new("42".parse().unwrap())
}

fn key() -> IdempotencyKey {
    IdempotencyKey::new("", "key").unwrap()
}

fn permit(store: &FileStore) -> UploadPermit {
    UploadPermit::new("nonce", store.now().plus(Duration::from_mins(1))).unwrap()
}

fn new() -> NewUpload {
    NewUpload::new("42".parse().unwrap(), "docs".parse().unwrap())
}

fn batch() -> NewBatch {
    NewBatch::new("42".parse().unwrap(), "docs".parse().unwrap())
}

fn kind<T>(refused: Result<T>) -> ErrorKind {
    refused.err().expect("a refusal").kind()
}

fn made<T>(uploaded: Uploaded<T>) -> T {
    match uploaded {
        Uploaded::New(made) => made,
        Uploaded::Replayed(_) => panic!("a replay"),
    }
}

#[tokio::test]
async fn claims_are_taken_in_the_order_of_key_permit_and_quota() {
    let home = Home::new().await;
    let all = claims().with_idempotency(key()).with_permit(permit(&home.store)).with_bytes(11);

    let other_key = home.begin(claims().with_idempotency(key())).await.unwrap();
    let other_permit = home.begin(claims().with_permit(permit(&home.store))).await.unwrap();
    assert_eq!(kind(home.begin(all.clone()).await), ErrorKind::IdempotencyInProgress);
    drop(other_key);
    assert_eq!(kind(home.begin(all.clone()).await), ErrorKind::SignatureUsed);
    drop(other_permit);
    assert_eq!(kind(home.begin(all.clone()).await), ErrorKind::QuotaExceeded);

    // A refused session has no claims, and you can take the values again.
    let fits = UploadClaims { bytes: 10, ..all };
    for _ in 0..2 {
        drop(home.begin(fits.clone()).await.unwrap());
    }
}

#[tokio::test]
async fn a_repeat_takes_neither_permit_nor_room_and_answers_with_the_first_reply() {
    let home = Home::new().await;
    let all = claims().with_idempotency(key()).with_permit(permit(&home.store)).with_bytes(10);
    let first = home.received(all.clone(), "0123456789").await;
    let record = made(first.commit(new()).await.unwrap());
    let without_key = UploadClaims { idempotency: None, ..all.clone() };
    assert_eq!(kind(home.begin(without_key).await), ErrorKind::SignatureUsed, "it is spent");
    assert_eq!(kind(home.begin(claims().with_bytes(1)).await), ErrorKind::QuotaExceeded);

    let again = home.received(all.clone(), "0123456789").await;
    let Uploaded::Replayed(reply) = again.commit(new()).await.unwrap() else { panic!("a file") };
    assert_eq!(reply.file_ids(), [record.file_id]);
    let other = home.received(all, "other").await;
    assert_eq!(kind(other.commit(new()).await), ErrorKind::IdempotencyMismatch);
    home.nothing_staged().await;
}

#[tokio::test]
async fn a_session_that_is_dropped_gives_everything_back() {
    let home = Home::new().await;
    let all = claims().with_idempotency(key()).with_permit(permit(&home.store)).with_bytes(10);
    let mut session = home.received(all.clone(), "01234").await;
    session.finish_files().await.unwrap();
    assert_eq!((home.staged_names(), session.received_bytes()), (1, 5));
    assert_eq!(kind(home.begin(claims().with_bytes(1)).await), ErrorKind::QuotaExceeded);
    drop(session);
    home.nothing_staged().await;

    let session = home.received(all, "0123456789").await;
    made(session.commit(new()).await.unwrap());
}

#[tokio::test]
async fn a_commit_gives_its_claims_back_whether_it_is_made_or_not() {
    let home = Home::new().await;
    let keyed = claims().with_idempotency(key()).with_bytes(4);
    let session = home.received(keyed.clone(), "four").await;
    let wrong = new().with_sha256(crate::domain::id::Sha256([0; 32]));
    assert_eq!(kind(session.commit(wrong).await), ErrorKind::DigestMismatch);
    home.nothing_staged().await;

    made(home.received(keyed, "four").await.commit(new()).await.unwrap());
    home.store.inner.uploads.publishing.idle().await;
    home.nothing_staged().await;
    drop(home.begin(claims().with_bytes(6)).await.unwrap());
    assert_eq!(kind(home.begin(claims().with_bytes(7)).await), ErrorKind::QuotaExceeded);
}

#[tokio::test]
async fn a_session_goes_on_in_another_task_than_the_one_that_began_it() {
    fn outlives<T: Send + 'static>(session: T) -> T {
        session
    }
    let home = Home::new().await;
    let session = outlives(home.received(claims(), "one ").await);
    let going_on = tasks::spawn(async move {
        let mut session = session;
        session.write("two".into()).await.unwrap();
        session
    });
    let session = going_on.await.unwrap();
    let record = made(session.commit(new()).await.unwrap());
    assert_eq!(record.blob.size_bytes, 7);
}

#[tokio::test]
async fn the_room_of_what_was_not_announced_grows_with_the_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let config = StoreConfig { quota_bytes: Some(200_000), ..StoreConfig::default() };
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
    let chunk = || Bytes::from(vec![b'x'; 100_000]);

    let mut one = store.uploads().begin(claims()).await.unwrap();
    one.write(chunk()).await.unwrap();
    let mut other = store.uploads().begin(claims()).await.unwrap();
    other.write(chunk()).await.unwrap();
    let mut third = store.uploads().begin(claims()).await.unwrap();
    assert_eq!(kind(third.write(chunk()).await), ErrorKind::QuotaExceeded);
    drop(other);
    let mut fourth = store.uploads().begin_unclaimed();
    fourth.write(chunk()).await.unwrap();
    fourth.write(chunk()).await.unwrap();
    assert_eq!(kind(fourth.claim(claims()).await), ErrorKind::QuotaExceeded, "it counts at once");
}

#[tokio::test]
async fn bytes_may_arrive_before_the_claims_and_are_claimed_in_the_commit_at_last() {
    let home = Home::new().await;
    let mut session = home.store.uploads().begin_unclaimed();
    session.write("0123456789a".into()).await.unwrap();
    assert_eq!(kind(session.commit(new()).await), ErrorKind::QuotaExceeded);

    let mut session = home.store.uploads().begin_unclaimed();
    session.write("0123456789".into()).await.unwrap();
    session.claim(claims()).await.unwrap();
    assert_eq!(kind(session.claim(claims()).await), ErrorKind::Conflict, "once");
    made(session.commit(new()).await.unwrap());
}

#[tokio::test]
async fn a_commit_for_another_organization_than_was_claimed_is_refused() {
    let home = Home::new().await;
    let other = NewUpload::new("43".parse().unwrap(), "docs".parse().unwrap());
    let session = home.received(claims(), "x").await;
    assert_eq!(kind(session.commit(other).await), ErrorKind::InvalidField);

    let session = home.received(claims(), "x").await;
    let replaced = session.commit_replacement(Replacement::new(), &Scope::All).await;
    assert_eq!(kind(replaced), ErrorKind::MissingField);
    let session = home.begin(claims()).await.unwrap();
    assert_eq!(kind(session.commit(new()).await), ErrorKind::MissingField, "no file came");
}

#[tokio::test]
async fn no_file_is_longer_than_its_claims_allow() {
    let home = Home::new().await;
    let mut session = home.begin(UploadClaims { max_bytes: Some(3), ..claims() }).await.unwrap();
    session.write("123".into()).await.unwrap();
    let over = session.write("4".into()).await.unwrap_err();
    assert_eq!((over.kind(), over.details().limit), (ErrorKind::TooLarge, Some(3)));
}

#[tokio::test]
async fn the_items_of_a_batch_are_committed_with_their_files_or_not_at_all() {
    let home = Home::new().await;
    let received = async || {
        let mut session = home.begin(claims()).await.unwrap();
        for (item, text) in [(7, "seven"), (3, "three")] {
            session.begin_item(item).await.unwrap();
            session.write(text.into()).await.unwrap();
        }
        session
    };
    let items = |numbers: &[u32]| numbers.iter().copied().map(BatchItem::new).collect::<Vec<_>>();
    let refused = async |numbers: &[u32]| {
        let refused = received().await.commit_batch(batch(), items(numbers)).await.unwrap_err();
        (refused.kind(), refused.details().item)
    };

    assert_eq!(refused(&[]).await, (ErrorKind::MissingField, None));
    assert_eq!(refused(&[3]).await, (ErrorKind::MissingField, Some(7)));
    assert_eq!(refused(&[3, 7, 9]).await, (ErrorKind::MissingField, Some(9)));
    let mut twice = received().await;
    assert_eq!(kind(twice.begin_item(7).await), ErrorKind::InvalidField);
    drop(twice);
    home.nothing_staged().await;

    let session = received().await;
    let records = made(session.commit_batch(batch(), items(&[7, 3])).await.unwrap());
    let mut texts = Vec::new();
    for record in &records {
        texts.push(home.store.scoped(&Scope::All).read(record.file_id).await.unwrap());
    }
    assert_eq!(texts, ["three", "seven"]);
}

#[tokio::test]
async fn a_replacement_takes_room_for_what_is_more_and_checks_its_conditions_twice() {
    let home = Home::new().await;
    let record = made(home.received(claims(), "12345678").await.commit(new()).await.unwrap());
    let seen = IfMatch::OneOf(vec![record.blob.sha256]);
    let of = |bytes| {
        ReplacementClaims::new(record.file_id).with_conditions(seen.clone()).with_bytes(bytes)
    };
    let begin = async |claims| home.store.uploads().begin_replacement(claims, &Scope::All).await;
    assert_eq!(kind(begin(of(11)).await), ErrorKind::QuotaExceeded);

    let (mut first, mut late) = (begin(of(10)).await.unwrap(), begin(of(8)).await.unwrap());
    first.write("0123456789".into()).await.unwrap();
    late.write("late".into()).await.unwrap();
    let ready = Replacement::new().make_ready();
    let changed = first.commit_replacement(ready, &Scope::All).await.unwrap();
    assert_eq!((changed.record.version, changed.record.blob.size_bytes), (2, 10));

    let refused = late.commit_replacement(Replacement::new(), &Scope::All).await;
    assert_eq!(kind(refused), ErrorKind::PreconditionFailed);
    assert_eq!(kind(begin(of(1)).await), ErrorKind::PreconditionFailed);
    home.store.inner.uploads.publishing.idle().await;
    home.nothing_staged().await;
}

#[tokio::test]
async fn what_is_too_much_for_a_batch_is_not_blamed_on_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = StoreConfig::default();
    (config.limits.max_batch_size, config.limits.max_file_size) = (6, 5);
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
    let over = async |texts: [&'static str; 2]| {
        let mut session = store.uploads().begin(claims()).await.unwrap();
        session.begin_item(0).await.unwrap();
        session.write(texts[0].into()).await?;
        session.begin_item(1).await.unwrap();
        session.write(texts[1].into()).await
    };
    over(["123", "123"]).await.unwrap();
    assert_eq!(over(["123456", ""]).await.unwrap_err().details().limit, Some(5));
    let error = over(["123", "1234"]).await.unwrap_err();
    assert_eq!((error.kind(), error.details().limit), (ErrorKind::TooLarge, Some(6)));
}

/// A source that fails.
struct Failing;

impl AsyncRead for Failing {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::Error::other("the line broke")))
    }
}

#[tokio::test]
async fn the_part_of_a_file_whose_source_fails_is_never_committed() {
    let home = Home::new().await;
    let mut session = home.begin(claims()).await.unwrap();
    let half = session.write_all((&b"half"[..]).chain(Failing)).await;
    assert_eq!(kind(half), ErrorKind::MalformedBody);
    home.nothing_staged().await;
    assert_eq!(kind(session.write("rest".into()).await), ErrorKind::InvalidField);
    assert_eq!(kind(session.commit(new()).await), ErrorKind::MissingField);
}

#[tokio::test]
async fn a_file_whose_write_failed_or_was_dropped_is_never_committed() {
    let mut config = StoreConfig::default();
    config.limits.max_file_size = 4;
    let home = Home::of(config).await;
    let failed = async || {
        let mut session = home.received(claims(), "abc").await;
        assert_eq!(kind(session.write("de".into()).await), ErrorKind::TooLarge);
        session
    };
    assert_eq!(kind(failed().await.commit(new()).await), ErrorKind::MissingField);
    assert_eq!(kind(failed().await.write("d".into()).await), ErrorKind::MissingField);

    let mut dropped = home.received(claims(), "ab").await;
    dropped.incoming.as_mut().unwrap().is_sound = false;
    assert_eq!(kind(dropped.commit(new()).await), ErrorKind::MissingField);
    home.nothing_staged().await;
}

#[tokio::test]
async fn a_session_has_one_file_or_a_batch_and_no_commit_leaves_a_file_out() {
    let home = Home::new().await;
    let items = async || {
        let mut session = home.begin(claims()).await.unwrap();
        for index in [0, 1] {
            session.begin_item(index).await.unwrap();
            session.write("item".into()).await.unwrap();
        }
        session
    };
    assert_eq!(kind(items().await.commit(new()).await), ErrorKind::InvalidField);
    let mut batch_s = items().await;
    batch_s.end_file().await.unwrap();
    assert_eq!(kind(batch_s.write("one".into()).await), ErrorKind::InvalidField);

    let one = home.received(claims(), "one").await;
    let committed = one.commit_batch(batch(), vec![BatchItem::new(0)]).await;
    assert_eq!(kind(committed), ErrorKind::InvalidField);
}

#[tokio::test]
async fn a_permit_buys_one_file_of_its_size() {
    let home = Home::new().await;
    let signed = || claims().with_permit(permit(&home.store));
    let mut session = home.begin(signed()).await.unwrap();
    session.begin_item(0).await.unwrap();
    let committed = session.commit_batch(batch(), vec![BatchItem::new(0)]).await;
    assert_eq!(kind(committed), ErrorKind::InvalidField);

    let mut small = claims();
    small.max_bytes = Some(2);
    let mut late = home.store.uploads().begin_unclaimed();
    late.write("three".into()).await.unwrap();
    let refused = late.claim(small.clone()).await.unwrap_err();
    assert_eq!((refused.kind(), refused.details().limit), (ErrorKind::TooLarge, Some(2)));
    let mut item = home.begin(small).await.unwrap();
    item.begin_item(0).await.unwrap();
    assert_eq!(kind(item.write("three".into()).await), ErrorKind::TooLarge);
}

/// A GIF with 2×1 pixels.
#[cfg(feature = "pictures")]
const GIF: &str = "GIF89a\x02\0\x01\0\0\0\0\x3B";

#[cfg(feature = "pictures")]
#[tokio::test]
async fn a_picture_whose_header_cannot_be_read_is_refused_and_never_stored_without_its_size() {
    let home = Home::of(StoreConfig::default()).await;
    let size = Some(Dimensions { width: 2, height: 1 });
    let of_one = async || {
        let mut session = home.received(claims().with_idempotency(key()), GIF).await;
        session.finish_files().await.unwrap();
        session
    };
    let refused = of_one().await;
    home.let_reads_fail();
    let refused = kind(refused.commit(new()).await);
    assert_eq!((refused, refused.http_status().is_server_error()), (ErrorKind::Internal, true));
    home.let_reads_work();

    // The client tries again, with the same key.
    let record = made(of_one().await.commit(new()).await.unwrap());
    assert_eq!(record.blob.dimensions, size);

    let of_two = async || {
        let mut session = home.begin(claims()).await.unwrap();
        session.begin_item(0).await.unwrap();
        session.write("text".into()).await.unwrap();
        session.begin_item(1).await.unwrap();
        session.write(GIF.into()).await.unwrap();
        session.finish_files().await.unwrap();
        session
    };
    let items = || vec![BatchItem::new(0), BatchItem::new(1)];
    home.store.inner.uploads.publishing.idle().await;
    let refused = of_two().await;
    home.let_reads_fail();
    assert_eq!(kind(refused.commit_batch(batch(), items()).await), ErrorKind::Internal);
    home.let_reads_work();
    let records = made(of_two().await.commit_batch(batch(), items()).await.unwrap());
    assert_eq!((records[0].blob.dimensions, records[1].blob.dimensions), (None, size));
}

#[cfg(feature = "pictures")]
#[tokio::test]
async fn a_new_picture_whose_header_cannot_be_read_replaces_nothing() {
    let home = Home::of(StoreConfig::default()).await;
    let record = made(home.received(claims(), "text").await.commit(new()).await.unwrap());
    home.store.inner.uploads.publishing.idle().await;
    let of_gif = async || {
        let claims = ReplacementClaims::new(record.file_id);
        let mut session =
            home.store.uploads().begin_replacement(claims, &Scope::All).await.unwrap();
        session.write(GIF.into()).await.unwrap();
        session.finish_files().await.unwrap();
        session
    };
    let refused = of_gif().await;
    home.let_reads_fail();
    let refused = refused.commit_replacement(Replacement::new(), &Scope::All).await;
    assert_eq!(kind(refused), ErrorKind::Internal);
    home.let_reads_work();
    let kept = home.store.scoped(&Scope::All).record(record.file_id).await.unwrap();
    assert_eq!(kept.version, record.version);

    let replaced = of_gif().await.commit_replacement(Replacement::new(), &Scope::All).await;
    let size = Some(Dimensions { width: 2, height: 1 });
    assert_eq!(replaced.unwrap().record.blob.dimensions, size);
}
