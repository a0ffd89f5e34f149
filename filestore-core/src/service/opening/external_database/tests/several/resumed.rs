//! Resumable uploads that other servers continue.

use bytes::Bytes;
use futures_util::{FutureExt, Stream, stream};
use tokio::sync::mpsc;

use crate::domain::file::resumable::UploadStage;
use crate::metadata::{UploadChange, UploadRow};
use crate::service::opening::external_database::tests::several::*;
use crate::tasks;
use crate::uploads::{Append, BodyCheck, Ends, NewResumable, ResumableTarget, ResumableUpload};

/// Bytes that tell a hole or a shift.
fn content(length: u32) -> Vec<u8> {
    (0..length).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect()
}

fn body(bytes: &[u8]) -> impl Stream<Item = Result<Bytes, Error>> + Send + Unpin + use<> {
    let chunks: Vec<_> = bytes.chunks(70_000).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
    stream::iter(chunks)
}

async fn begun(store: &FileStore, length: u64) -> ResumableUpload {
    let new = NewResumable::new(new().with_name("big.bin")).with_length(length);
    store.resumable().create(new).await.unwrap().upload
}

async fn send(store: &FileStore, upload: &ResumableUpload, at: usize, bytes: &[u8]) -> Sent {
    let append = Append::at(at as u64);
    store.resumable().append(&upload.address, append, body(bytes)).await
}

type Sent = Result<ResumableUpload>;

/// A checksum that is right.
struct Right;

impl BodyCheck for Right {
    fn update(&mut self, _bytes: &[u8]) {}

    fn holds(&self) -> bool {
        true
    }
}

async fn status(store: &FileStore, upload: &ResumableUpload) -> Sent {
    store.resumable().status(&upload.address, &Scope::All).await
}

async fn stored(store: &FileStore, upload: &ResumableUpload) -> UploadRow {
    store.inner.metadata.upload(upload.address.upload_id).await.unwrap().unwrap()
}

impl Cluster {
    /// Counts the objects of the organization at the backend.
    fn objects(&self) -> usize {
        fn count(dir: &Path) -> usize {
            let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
            let count_one = |entry: std::fs::DirEntry| {
                if entry.file_type().unwrap().is_dir() { count(&entry.path()) } else { 1 }
            };
            entries.map(Result::unwrap).map(count_one).sum()
        }
        count(&self.shared.path().join("house/42"))
    }

    /// Counts the staged files of all servers.
    fn staged(&self) -> usize {
        let dirs = self.own.iter().map(|own| std::fs::read_dir(own.path().join("staging")));
        dirs.map(|dir| dir.unwrap().count()).sum()
    }

    /// Lets every server do its upkeep, and one of them the purge.
    async fn tidy_up(&self) {
        for store in &self.stores {
            store.admin().upkeep().await.unwrap();
        }
        self.stores[0].admin().purge(&NoProgress).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn the_pieces_of_an_upload_go_to_any_server() {
    let cluster = Cluster::of(3).await;
    let bytes = content(500_000);
    let mut upload = begun(&cluster.stores[2], 500_000).await;
    let mut from = 0;
    for (turn, to) in [1, 100_000, 100_001, 300_000, 300_000, 499_999, 500_000].iter().enumerate() {
        let store = &cluster.stores[turn % 3];
        upload = send(store, &upload, from, &bytes[from..*to]).await.unwrap();
        from = *to;
        for store in &cluster.stores {
            let shown = status(store, &upload).await.unwrap();
            assert_eq!((shown.offset, shown.file_id), (from as u64, upload.file_id));
        }
    }

    let file_id = upload.file_id.expect("it is whole");
    for store in &cluster.stores {
        assert_eq!(read(store, file_id).await.unwrap(), bytes);
    }
    cluster.tidy_up().await;
    assert_eq!((cluster.schema.count("upload_parts"), cluster.staged()), (0, 0));
    assert_eq!(cluster.objects(), 1, "the file, and no part");
    cluster.assert_sound().await;
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_whole_body_makes_no_part() {
    let cluster = Cluster::of(2).await;
    let bytes = content(300_000);
    let upload = begun(&cluster.stores[0], 300_000).await;
    let upload = send(&cluster.stores[1], &upload, 0, &bytes).await.unwrap();
    assert_eq!(read(&cluster.stores[0], upload.file_id.unwrap()).await.unwrap(), bytes);
    assert_eq!((cluster.schema.count("blob_gc"), cluster.objects()), (0, 1));
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn an_upload_outlives_the_server_that_began_it() {
    let mut cluster = Cluster::of(2).await;
    let bytes = content(300_000);
    let upload = begun(&cluster.stores[0], 300_000).await;
    send(&cluster.stores[0], &upload, 0, &bytes[..200_000]).await.unwrap();
    // Without a word, and its disk with it.
    drop((cluster.stores.remove(0), cluster.own.remove(0)));

    let left = &cluster.stores[0];
    assert_eq!(status(left, &upload).await.unwrap().offset, 200_000);
    send(left, &upload, 200_000, &bytes[200_000..250_000]).await.unwrap();
    cluster.add(|_| {}).await.unwrap();
    let new = &cluster.stores[1];
    let upload = send(new, &upload, 250_000, &bytes[250_000..]).await.unwrap();
    assert_eq!(read(&cluster.stores[0], upload.file_id.unwrap()).await.unwrap(), bytes);
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn an_upload_that_a_lost_server_was_storing_is_open_again() {
    let mut cluster = Cluster::of(2).await;
    let bytes = content(1000);
    let upload = begun(&cluster.stores[0], 1000).await;
    send(&cluster.stores[0], &upload, 0, &bytes[..600]).await.unwrap();
    let metadata = &cluster.stores[0].inner.metadata;
    let row = metadata.upload(upload.address.upload_id).await.unwrap().unwrap();
    let completing = UploadChange::of(&row, |next| next.stage = UploadStage::Completing);
    metadata.change_upload(completing).await.unwrap();
    drop((cluster.stores.remove(0), cluster.own.remove(0)));
    cluster.end_others().await;

    let upload = send(&cluster.stores[0], &upload, 600, &bytes[600..]).await.unwrap();
    assert_eq!(read(&cluster.stores[0], upload.file_id.unwrap()).await.unwrap(), bytes);
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_server_that_wakes_up_adds_nothing_to_an_upload_that_was_taken() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let bytes = content(100_000);
    let upload = begun(one, 100_000).await;
    send(one, &upload, 0, &bytes[..50_000]).await.unwrap();

    let (sender, chunks) = mpsc::channel::<Result<Bytes, Error>>(1);
    let chunks = stream::unfold(chunks, |mut chunks| async move {
        chunks.recv().await.map(|chunk| (chunk, chunks))
    });
    let (asleep, address) = (one.clone(), upload.address.clone());
    // With a checksum, a transfer commits nothing before its end.
    let mut append = Append::at(50_000);
    append.check = Some(Box::new(Right));
    let transfer =
        tasks::spawn(
            async move { asleep.resumable().append(&address, append, Box::pin(chunks)).await },
        );
    // The channel has room for one: once the third is in it, the first was taken.
    for _ in 0..3 {
        sender.send(Ok(Bytes::from_static(b"what nobody was told of"))).await.unwrap();
    }
    let taken = send(other, &upload, 50_000, &bytes[50_000..70_000]).await.unwrap();
    assert_eq!(taken.offset, 70_000);
    drop(sender);
    assert_eq!(kind(transfer.await.unwrap()), ErrorKind::Busy);

    // It has the upload back, and no byte of the transfer that it lost.
    let upload = send(one, &upload, 70_000, &bytes[70_000..]).await.unwrap();
    assert_eq!(read(other, upload.file_id.unwrap()).await.unwrap(), bytes);
    cluster.tidy_up().await;
    assert_eq!((cluster.objects(), cluster.schema.count("write_intents")), (1, 0));
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn of_two_servers_with_one_piece_one_succeeds() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    for _ in 0..5 {
        let upload = begun(one, 8).await;
        send(one, &upload, 0, b"same").await.unwrap();
        let (first, second) =
            tokio::join!(send(one, &upload, 4, b"same"), send(other, &upload, 4, b"same"));
        let (done, refused) = if first.is_ok() { (first, second) } else { (second, first) };
        assert!(refused.is_err(), "{refused:?}");
        // If each has ended the other, the client sends the piece again.
        let done = match done {
            Ok(done) => done,
            Err(_) => send(other, &upload, 4, b"same").await.unwrap(),
        };
        assert_eq!(read(one, done.file_id.unwrap()).await.unwrap(), "samesame");
    }
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_file_that_cannot_be_made_now_needs_its_last_byte_at_any_server() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let bytes = content(100_000);
    let upload = begun(one, 100_000).await;
    let mut append = Append::at(0);
    append.recheck =
        Some(Box::new(|_| async { Err(Error::new(ErrorKind::Busy, "not now")) }.boxed()));
    let refused = one.resumable().append(&upload.address, append, body(&bytes)).await;
    assert_eq!(kind(refused), ErrorKind::Busy);
    assert_eq!(status(other, &upload).await.unwrap().offset, 99_999);
    let upload = send(other, &upload, 99_999, &bytes[99_999..]).await.unwrap();
    assert_eq!(read(one, upload.file_id.unwrap()).await.unwrap(), bytes);
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn an_upload_that_ends_without_a_file_leaves_no_part() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let cancelled = begun(one, 100).await;
    send(one, &cancelled, 0, b"some").await.unwrap();
    one.resumable().cancel(&cancelled.address, &Scope::All).await.unwrap();
    let elsewhere = begun(one, 100).await;
    send(one, &elsewhere, 0, b"some").await.unwrap();
    other.resumable().cancel(&elsewhere.address, &Scope::All).await.unwrap();
    assert_eq!(kind(send(one, &elsewhere, 4, b"more").await), ErrorKind::UploadGone);

    let erased = begun(one, 100).await;
    send(other, &erased, 0, b"some").await.unwrap();
    assert_eq!(cluster.objects(), 3);
    let moved = begun(other, 100).await;
    send(other, &moved, 0, b"some").await.unwrap();
    send(one, &moved, 4, b"more").await.unwrap();
    let organization = "42".parse().unwrap();
    let receipt =
        other.admin().erase_organization(&organization, &|| false, &NoProgress).await.unwrap();
    let named: Vec<_> = receipt.may_return.iter().map(|one| one.place.as_str()).collect();
    assert!(named.contains(&"staging of other servers"), "{named:?}");
    let left = std::fs::read_dir(cluster.own[1].path().join("staging")).unwrap().count();
    assert_eq!(left, 0, "its own copies are gone at once");
    cluster.tidy_up().await;
    assert_eq!((cluster.objects(), cluster.staged()), (0, 0));
    assert_eq!(cluster.schema.count("upload_parts"), 0);
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn partial_uploads_of_several_servers_are_joined() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let mut partials = Vec::new();
    for (store, text) in [(one, &b"hello "[..]), (other, b"world")] {
        let partial = ResumableTarget::Partial { organization_id: "42".parse().unwrap() };
        let partial = NewResumable::of(partial).with_length(text.len() as u64);
        let partial = store.resumable().create(partial).await.unwrap().upload;
        let append = Append::at(0).ending(Ends::Later);
        store.resumable().append(&partial.address, append, body(text)).await.unwrap();
        partials.push(partial.address);
    }
    let joined = other
        .resumable()
        .concatenate(NewResumable::new(new()), &partials, "caller", &Scope::All, None)
        .await
        .unwrap();
    let file_id = joined.upload.file_id.unwrap();
    assert_eq!(read(one, file_id).await.unwrap(), "hello world");
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn bytes_that_no_part_has_stay_at_their_server() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let upload = begun(one, 10).await;
    send(one, &upload, 0, b"hello").await.unwrap();
    // As a server of an earlier version leaves it.
    cluster.schema.run("DELETE FROM upload_parts");
    assert_eq!(kind(send(other, &upload, 5, b" all!").await), ErrorKind::UploadElsewhere);

    // The next piece takes them along.
    send(one, &upload, 5, b" all").await.unwrap();
    let upload = send(other, &upload, 9, b"!").await.unwrap();
    assert_eq!(read(one, upload.file_id.unwrap()).await.unwrap(), "hello all!");
    cluster.close().await;
}

/// Damages the only part of an upload.
async fn damage_part(cluster: &Cluster, upload: &ResumableUpload) {
    let metadata = &cluster.stores[0].inner.metadata;
    let parts = metadata.upload_parts(upload.address.upload_id, 0, 9).await.unwrap();
    let [part] = &parts[..] else { panic!("{parts:?}") };
    std::fs::write(cluster.shared.path().join("house").join(part.key.as_str()), "jello").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_damaged_part_ends_no_upload_whose_server_lives() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.stores[..] else { panic!("two") };
    let upload = begun(one, 10).await;
    send(one, &upload, 0, b"hello").await.unwrap();
    damage_part(&cluster, &upload).await;

    assert_eq!(kind(send(other, &upload, 5, b" all!").await), ErrorKind::UploadElsewhere);
    let upload = send(one, &upload, 5, b" all!").await.unwrap();
    assert_eq!(read(other, upload.file_id.unwrap()).await.unwrap(), "hello all!");
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_damaged_part_makes_no_file() {
    let mut cluster = Cluster::of(2).await;
    let upload = begun(&cluster.stores[0], 10).await;
    send(&cluster.stores[0], &upload, 0, b"hello").await.unwrap();
    damage_part(&cluster, &upload).await;
    drop((cluster.stores.remove(0), cluster.own.remove(0)));
    cluster.end_others().await;

    let left = &cluster.stores[0];
    let refused = send(left, &upload, 5, b" all!").await;
    assert_eq!(kind(refused), ErrorKind::RecordDamaged);
    assert_eq!(kind(status(left, &upload).await), ErrorKind::UploadGone);
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn upkeep_opens_uploads_again_that_a_lost_server_was_storing() {
    let mut cluster = Cluster::of(2).await;
    let upload = begun(&cluster.stores[0], 10).await;
    send(&cluster.stores[0], &upload, 0, b"hello").await.unwrap();
    let row = stored(&cluster.stores[0], &upload).await;
    let completing = UploadChange::of(&row, |next| next.stage = UploadStage::Completing);
    cluster.stores[0].inner.metadata.change_upload(completing).await.unwrap();

    // The server lives, so its commit may run.
    cluster.stores[1].admin().upkeep().await.unwrap();
    assert_eq!(stored(&cluster.stores[1], &upload).await.stage, UploadStage::Completing);
    drop((cluster.stores.remove(0), cluster.own.remove(0)));
    cluster.end_others().await;
    let left = &cluster.stores[0];
    let opened = loop {
        left.admin().upkeep().await.unwrap();
        let row = stored(left, &upload).await;
        if row.stage == UploadStage::Open {
            break row;
        }
    };
    assert!(opened.epoch > row.epoch, "a late commit finishes nothing");
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn many_small_pieces_make_few_parts_and_leave_none() {
    let cluster = Cluster::of(2).await;
    let bytes = content(300);
    let mut upload = begun(&cluster.stores[0], 300).await;
    for (at, byte) in bytes.chunks(1).enumerate() {
        upload = send(&cluster.stores[at / 7 % 2], &upload, at, byte).await.unwrap();
        let parts = cluster.schema.count("upload_parts");
        assert!(parts <= 9, "{parts} parts of {at} bytes");
    }
    assert_eq!(read(&cluster.stores[1], upload.file_id.unwrap()).await.unwrap(), bytes);
    cluster.tidy_up().await;
    assert_eq!((cluster.objects(), cluster.schema.count("upload_parts")), (1, 0));
    cluster.assert_sound().await;
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_server_without_room_takes_no_upload() {
    let mut cluster = Cluster::of(1).await;
    cluster.add(|config| config.reserve_bytes = 1 << 60).await.unwrap();
    let [one, full] = &cluster.stores[..] else { panic!("two") };
    let upload = begun(one, 10).await;
    send(one, &upload, 0, b"hello").await.unwrap();
    let staged = cluster.staged();

    assert_eq!(kind(send(full, &upload, 5, b" all!").await), ErrorKind::StorageFull);
    assert_eq!(cluster.staged(), staged, "nothing was copied");
    assert_eq!(stored(one, &upload).await.epoch, 1, "its server was not disturbed");
    send(one, &upload, 5, b" all!").await.unwrap();
    cluster.close().await;
}
