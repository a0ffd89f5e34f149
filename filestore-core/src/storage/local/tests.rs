//! What the local disk promises beyond the contract of every blob store.

use std::fs;
use std::future::{Future, poll_fn};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use proptest::prelude::*;
use sha2::Digest;

use super::*;
use crate::domain::file::media::SNIFF_BYTES;
use crate::storage::BlobStore;
use crate::storage::contract::{content, fresh_key, get, keeps_the_contract, put};
use crate::tasks::HANG;

const OPTIONS: LocalOptions = LocalOptions {
    durability: Durability::Full,
    reserve_bytes: 0,
    concurrent_uploads: 16,
    memory_bytes: 0,
    open_files: 8,
};
const UNLIMITED: u64 = u64::MAX;

struct Home {
    path: tempfile::TempDir,
    store: LocalStore,
}

impl Home {
    fn new(options: LocalOptions) -> Self {
        Self::with_staging_sync(options, || Ok(()))
    }

    fn real() -> Self {
        let path = tempfile::tempdir().unwrap();
        let store = LocalStore::open(&DataDir::open(path.path()).unwrap(), OPTIONS).unwrap();
        Self { path, store }
    }

    fn with_staging_sync(
        options: LocalOptions,
        sync: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let path = tempfile::tempdir().unwrap();
        let dir = DataDir::open(path.path()).unwrap();
        let store =
            LocalStore::assemble(&dir, options, &Clock::system(), GroupSync::new(sync)).unwrap();
        Self { path, store }
    }

    fn staged_path(&self, id: BlobId) -> PathBuf {
        self.path.path().join("staging").join(id.to_string())
    }

    fn final_path(&self, key: &BlobKey) -> PathBuf {
        self.path.path().join("blobs").join(key.as_str())
    }

    fn staged_names(&self) -> usize {
        fs::read_dir(self.path.path().join("staging")).unwrap().count()
    }

    /// Returns when no work of the store runs or is queued any more.
    async fn is_idle(&self) {
        let idle = async {
            while Arc::strong_count(&self.store.shared) > 1 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(HANG, idle).await.expect("work of the store ends");
    }
}

async fn stage(store: &LocalStore, id: BlobId, content: &[u8]) -> Result<StagedBlob> {
    let mut writer = store.stage(id, UNLIMITED).await?;
    for chunk in content.chunks(100_000) {
        writer.write(Bytes::copy_from_slice(chunk)).await?;
    }
    writer.finish().await
}

/// As an upload leaves it whose commit succeeded and whose rename did not happen yet.
async fn stage_kept(store: &LocalStore, key: &BlobKey, content: &[u8]) {
    stage(store, key.blob_id(), content).await.unwrap().keep();
}

#[tokio::test]
async fn the_local_disk_keeps_the_contract_with_and_without_syncing() {
    let unsynced = Home::new(LocalOptions { durability: Durability::Process, ..OPTIONS });

    for home in [Home::real(), unsynced] {
        keeps_the_contract(&home.store, ErrorKind::Internal).await;
        home.is_idle().await;
        assert_eq!(home.staged_names(), 0, "no put that failed leaves a file");
    }
}

#[tokio::test]
async fn a_blob_of_another_length_is_an_error() {
    let home = Home::real();
    let (key, content) = (fresh_key(), content(1000));
    put(&home.store, &key, &content).await.unwrap();

    for (size, range) in
        [(999, 0..999), (1001, 0..1001), (0, 0..0), (999, 0..10), (1 << 20, 0..1 << 20)]
    {
        let error = get(&home.store, &key, size, range).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(!error.message().contains(key.as_str()), "{error}");
    }
}

#[tokio::test]
async fn a_staged_blob_knows_its_size_digest_and_head() {
    let home = Home::real();
    for length in [0, 100, SNIFF_BYTES, SNIFF_BYTES + 1, 300_000, 1 << 20] {
        let (id, content) = (fresh_key().blob_id(), content(length));
        let staged = stage(&home.store, id, &content).await.unwrap();

        assert_eq!((staged.blob_id, staged.size_bytes), (id, length as u64));
        assert_eq!(staged.sha256.0, <[u8; 32]>::from(sha2::Sha256::digest(&content)));
        assert_eq!(staged.head, content[..length.min(SNIFF_BYTES)]);
        assert_eq!(std::io::read_to_string(staged.open().unwrap()).is_ok(), length == 0);
        assert_eq!(fs::read(home.staged_path(id)).unwrap(), content);
        assert_eq!(fs::metadata(home.staged_path(id)).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_blob_is_read_under_either_name_and_published_after_a_crash() {
    let home = Home::real();
    let (key, content) = (fresh_key(), content(300_000));
    let size = content.len() as u64;
    stage_kept(&home.store, &key, &content).await;

    assert_eq!(get(&home.store, &key, size, 0..size).await.unwrap().unwrap(), content);

    // The process ends between commit and rename; the next one finds the staged name.
    let Home { path, store } = home;
    drop(store);
    let store = LocalStore::open(&DataDir::open(path.path()).unwrap(), OPTIONS).unwrap();
    assert_eq!(store.staged().await.unwrap(), [key.blob_id()]);

    store.publish(&key).await.unwrap();
    assert!(store.staged().await.unwrap().is_empty());
    assert_eq!(store.open_blob(&key, size).await.unwrap().unwrap().read().await.unwrap(), content);
    store.shared.sync_renamed().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn publishing_is_done_once_however_many_call() {
    let home = Home::real();
    let key = fresh_key();
    stage_kept(&home.store, &key, b"once").await;

    let calls = join_all((0..32).map(|_| home.store.publish(&key))).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");

    assert_eq!(fs::read(home.final_path(&key)).unwrap(), b"once");
    assert_eq!(home.staged_names(), 0);
}

#[tokio::test]
async fn publishing_several_answers_for_each() {
    let home = Home::real();
    let (first, missing, last) = (fresh_key(), fresh_key(), fresh_key());
    stage_kept(&home.store, &first, b"first").await;
    stage_kept(&home.store, &last, b"last").await;

    let outcomes = home.store.publish_all(vec![first.clone(), missing, last.clone()]).await;
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok(), "{outcomes:?}");
    assert_eq!(outcomes[1].as_ref().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(home.final_path(&first).exists() && home.final_path(&last).exists());
}

#[tokio::test]
async fn one_file_under_both_names_is_finished_and_two_files_are_left_alone() {
    let home = Home::real();
    let key = fresh_key();
    stage_kept(&home.store, &key, b"bytes").await;
    fs::create_dir_all(home.final_path(&key).parent().unwrap()).unwrap();
    fs::hard_link(home.staged_path(key.blob_id()), home.final_path(&key)).unwrap();

    home.store.publish(&key).await.unwrap();
    assert!(!home.staged_path(key.blob_id()).exists() && home.final_path(&key).exists());

    stage_kept(&home.store, &key, b"other").await;
    assert_eq!(home.store.publish(&key).await.unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(fs::read(home.staged_path(key.blob_id())).unwrap(), b"other");
    assert_eq!(fs::read(home.final_path(&key)).unwrap(), b"bytes");
}

#[tokio::test]
async fn removing_takes_both_names_and_the_directories_that_are_empty_then() {
    let home = Home::real();
    let (published, staged) = (fresh_key(), fresh_key());
    put(&home.store, &published, b"published").await.unwrap();
    stage_kept(&home.store, &staged, b"staged").await;

    let outcomes = home.store.remove(vec![published, staged]).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(home.staged_names(), 0);
    assert_eq!(fs::read_dir(home.path.path().join("blobs")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_small_blob_is_read_from_memory_until_it_is_removed() {
    let home = Home::new(LocalOptions { memory_bytes: 1 << 20, ..OPTIONS });
    let key = fresh_key();
    put(&home.store, &key, b"0123456789").await.unwrap();
    assert_eq!(get(&home.store, &key, 10, 0..10).await.unwrap().unwrap(), b"0123456789");

    fs::rename(home.final_path(&key), home.final_path(&key).with_extension("away")).unwrap();
    assert_eq!(get(&home.store, &key, 10, 0..10).await.unwrap().unwrap(), b"0123456789");
    assert_eq!(get(&home.store, &key, 10, 3..5).await.unwrap().unwrap(), b"34");

    for outcome in home.store.remove(vec![key.clone()]).await {
        outcome.unwrap();
    }
    assert!(get(&home.store, &key, 10, 0..10).await.unwrap().is_none());
}

#[tokio::test]
async fn a_reader_finishes_what_is_removed_meanwhile() {
    let home = Home::real();
    let (key, content) = (fresh_key(), content(2_000_000));
    put(&home.store, &key, &content).await.unwrap();
    let blob = home.store.open_blob(&key, 2_000_000).await.unwrap().unwrap();
    home.store.remove(vec![key.clone()]).await.pop().unwrap().unwrap();
    assert!(home.store.open_blob(&key, 2_000_000).await.unwrap().is_none());

    let blocks: Vec<Bytes> = blob.into_stream(0..2_000_000).try_collect().await.unwrap();
    assert!(blocks.concat() == content);
}

#[tokio::test]
async fn a_range_beyond_the_end_is_refused_before_a_byte_is_sent() {
    let home = Home::real();
    for size in [10_usize, 100_000] {
        let (key, content) = (fresh_key(), content(size));
        put(&home.store, &key, &content).await.unwrap();
        let read = home.store.read(&key, size as u64, 0..size as u64 + 1).await;
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Internal, "{size}");
    }
}

#[tokio::test]
async fn a_stream_of_a_file_that_ends_early_ends_in_an_error() {
    let home = Home::real();
    let (key, content) = (fresh_key(), content(1_000_000));
    put(&home.store, &key, &content).await.unwrap();
    let blob = home.store.open_blob(&key, 1_000_000).await.unwrap().unwrap();
    fs::File::options().write(true).open(home.final_path(&key)).unwrap().set_len(600_000).unwrap();

    let items: Vec<_> = blob.into_stream(0..1_000_000).collect().await;
    let (last, before) = items.split_last().unwrap();
    assert_eq!(last.as_ref().unwrap_err().kind(), ErrorKind::Internal);

    let arrived: Vec<_> = before.iter().map(|block| block.as_ref().unwrap().clone()).collect();
    let arrived = arrived.concat();
    assert!(content.starts_with(&arrived) && arrived.len() <= 600_000);
    assert!(arrived.len() as u64 > 600_000 - READ_BLOCK_BYTES, "{}", arrived.len());
}

#[tokio::test]
async fn the_kernel_sends_a_range_within_the_file_and_tells_where_the_file_ended_early() {
    let home = Home::real();
    let (key, bytes) = (fresh_key(), content(100_000));
    stage_kept(&home.store, &key, &bytes).await;
    let opened = async || home.store.open_blob(&key, 100_000).await.unwrap().unwrap();

    for (start, end) in [(5, 5), (0, 100_001), (100_000, 100_000)] {
        assert!(opened().await.into_send_file(start..end).is_err());
    }
    let Ok(mut sending) = opened().await.into_send_file(70_000..99_990) else {
        eprintln!("the kernel does not send files here: nothing is tested");
        return;
    };
    let (socket, mut client) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut received = vec![0; 29_990];
    for (asked, sent) in [(10_000, 10_000), (50_000, 19_990)] {
        poll_fn(|cx| sending.poll_in_memory(cx)).await.unwrap();
        assert_eq!(sending.send(&socket, asked).unwrap(), sent);
    }
    std::io::Read::read_exact(&mut client, &mut received).unwrap();
    assert_eq!((sending.remaining(), &received[..]), (0, &bytes[70_000..99_990]));

    // Cut before it is asked for, and after.
    let mut early = opened().await.into_send_file(0..100_000).unwrap();
    let mut late = opened().await.into_send_file(0..100_000).unwrap();
    poll_fn(|cx| late.poll_in_memory(cx)).await.unwrap();
    let file = fs::File::options().write(true).open(home.staged_path(key.blob_id())).unwrap();
    file.set_len(0).unwrap();
    let told = poll_fn(|cx| early.poll_in_memory(cx)).await.unwrap_err();
    assert_eq!(told.kind(), std::io::ErrorKind::UnexpectedEof);
    let told = late.send(&socket, 100).unwrap_err();
    assert_eq!(told.kind(), std::io::ErrorKind::UnexpectedEof);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn publishing_into_a_directory_that_purges_keep_emptying_succeeds() {
    let home = Home::new(LocalOptions { durability: Durability::Process, ..OPTIONS });
    let one = |store: LocalStore| async move {
        for _ in 0..100 {
            let key = fresh_key();
            put(&store, &key, b"x").await.unwrap();
            assert_eq!(get(&store, &key, 1, 0..1).await.unwrap().unwrap(), b"x");
            store.remove(vec![key]).await.pop().unwrap().unwrap();
        }
    };
    join_all((0..8).map(|_| tokio::spawn(one(home.store.clone()))))
        .await
        .into_iter()
        .for_each(Result::unwrap);
    assert_eq!(fs::read_dir(home.path.path().join("blobs")).unwrap().count(), 0);
}

#[tokio::test]
async fn an_upload_that_is_dropped_leaves_nothing() {
    let home = Home::real();
    let id = fresh_key().blob_id();
    let mut writer = home.store.stage(id, UNLIMITED).await.unwrap();
    writer.write(content(3_000_000).into()).await.unwrap();
    assert_eq!(writer.size_bytes(), 3_000_000);
    assert!(home.staged_path(id).exists(), "the test drops an upload that has a file");

    drop(writer);
    home.is_idle().await;
    assert_eq!(home.staged_names(), 0);
    assert_eq!(home.store.shared.turns.free(), OPTIONS.concurrent_uploads);
}

#[tokio::test]
async fn a_staged_blob_that_is_dropped_leaves_nothing_unless_it_is_kept() {
    let home = Home::real();
    let (dropped, kept) = (fresh_key().blob_id(), fresh_key().blob_id());
    drop(stage(&home.store, dropped, b"dropped").await.unwrap());
    assert_eq!(stage(&home.store, kept, b"kept").await.unwrap().keep(), kept);

    home.is_idle().await;
    assert_eq!(home.store.staged().await.unwrap(), [kept]);
    home.store.discard_staged(vec![kept, dropped]).await.unwrap();
    assert_eq!(home.staged_names(), 0);
}

#[tokio::test]
async fn an_upload_cancelled_while_it_finishes_leaves_nothing() {
    let home = Home::real();
    for length in [10, 1_000_000] {
        let mut writer = home.store.stage(fresh_key().blob_id(), UNLIMITED).await.unwrap();
        writer.write(content(length).into()).await.unwrap();
        assert!(writer.finish().now_or_never().is_none());
        home.is_idle().await;
        assert_eq!(home.staged_names(), 0);
    }
}

#[tokio::test]
async fn a_failed_sync_of_the_staging_directory_fails_the_upload_and_unlinks_it() {
    let home = Home::with_staging_sync(OPTIONS, || Err(std::io::Error::from_raw_os_error(5)));
    let error = stage(&home.store, fresh_key().blob_id(), b"x").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!(home.staged_names(), 0, "the file is gone before the error is told");

    let full = Home::with_staging_sync(OPTIONS, || Err(std::io::ErrorKind::StorageFull.into()));
    let error = stage(&full.store, fresh_key().blob_id(), b"x").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
}

#[test]
fn an_fsync_that_ends_with_its_runtime_leaves_the_lead_to_the_next_upload() {
    let home = Home::real();
    let (begin, begun) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (synced, outcome) = tokio::sync::oneshot::channel();
    let shared = Arc::clone(&home.store.shared);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::task::spawn_blocking(move || {
            begin.send(()).unwrap();
            // Until the runtime has ended: it takes no more work then, and drops what it is given.
            let _ = released.recv();
            staging::sync_staging(&shared, synced);
        });
    });
    begun.recv().unwrap();
    runtime.shutdown_background();
    drop(release);

    block_on(async {
        let told = tokio::time::timeout(HANG, outcome).await.expect("nobody leads").unwrap();
        assert!(told.is_err(), "nothing was synced");

        let next = stage(&home.store, fresh_key().blob_id(), b"next");
        tokio::time::timeout(HANG, next).await.expect("nobody leads").unwrap();
    });
}

#[test]
fn renames_that_were_not_synced_at_the_end_of_a_runtime_are_synced_after_the_next_one() {
    let home = Home::real();
    let key = fresh_key();
    block_on(async {
        stage_kept(&home.store, &key, b"x").await;
        home.store.publish(&key).await.unwrap();
    });

    // The runtime ended before the half second in which renames gather.
    assert!(home.store.shared.directories.note_rename("another"), "nobody sees to a sync");
}

#[tokio::test]
async fn a_name_taken_in_staging_is_refused_and_not_followed() {
    let home = Home::real();
    let (linked, taken) = (fresh_key().blob_id(), fresh_key().blob_id());
    let target = home.path.path().join("target");
    fs::write(&target, b"precious").unwrap();
    std::os::unix::fs::symlink(&target, home.staged_path(linked)).unwrap();
    fs::write(home.staged_path(taken), b"another upload").unwrap();

    for id in [linked, taken] {
        let error = stage(&home.store, id, &content(600_000)).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }

    home.is_idle().await;
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    assert_eq!(fs::read(home.staged_path(taken)).unwrap(), b"another upload");
    assert!(home.staged_path(linked).is_symlink());
    assert_eq!(home.store.staged().await.unwrap(), [taken], "a link is no blob");
}

#[tokio::test]
async fn foreign_names_in_staging_are_left_alone() {
    let home = Home::real();
    let foreign = home.path.path().join("staging/notes.txt");
    fs::write(&foreign, b"mine").unwrap();
    assert!(home.store.staged().await.unwrap().is_empty());
    assert_eq!(fs::read(foreign).unwrap(), b"mine");
}

#[tokio::test]
async fn an_upload_over_its_limit_is_refused_as_soon_as_it_is() {
    let home = Home::real();
    let mut writer = home.store.stage(fresh_key().blob_id(), 10).await.unwrap();
    writer.write(Bytes::from_static(b"0123456789")).await.unwrap();

    let error = writer.write(Bytes::from_static(b"x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(error.details().field.as_deref(), Some("file"));
    assert_eq!(error.details().limit, Some(10));
    assert!(writer.finish().await.is_err(), "a refused upload cannot be finished");
    assert_eq!(home.staged_names(), 0);

    let mut exact = home.store.stage(fresh_key().blob_id(), 10).await.unwrap();
    exact.write(Bytes::from_static(b"0123456789")).await.unwrap();
    assert_eq!(exact.finish().await.unwrap().size_bytes, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_uploads_at_once_share_few_turns() {
    let options =
        LocalOptions { durability: Durability::Process, concurrent_uploads: 4, ..OPTIONS };
    let home = Home::new(options);
    let one = |store: LocalStore| async move {
        stage(&store, fresh_key().blob_id(), &content(40_000)).await.unwrap().keep();
    };
    let uploads = (0..1000).map(|_| tokio::spawn(one(home.store.clone())));
    join_all(uploads).await.into_iter().for_each(Result::unwrap);

    assert_eq!(home.store.staged().await.unwrap().len(), 1000);
    assert_eq!(home.store.shared.turns.free(), 4);
}

#[tokio::test]
async fn on_a_full_disk_uploads_are_refused_and_removals_work() {
    let home = Home::real();
    let key = fresh_key();
    put(&home.store, &key, b"x").await.unwrap();

    let Home { path, store } = home;
    drop(store);
    let full = LocalOptions { reserve_bytes: 1 << 60, ..OPTIONS };
    let store = LocalStore::open(&DataDir::open(path.path()).unwrap(), full).unwrap();

    let error = store.stage(fresh_key().blob_id(), 1).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(get(&store, &key, 1, 0..1).await.unwrap().unwrap(), b"x");
    store.remove(vec![key]).await.pop().unwrap().unwrap();
}

#[tokio::test]
async fn an_upload_under_way_takes_nothing_of_a_disk_that_became_full() {
    let home = Home::new(LocalOptions { reserve_bytes: 1 << 60, ..OPTIONS });
    let shared = &home.store.shared;
    for length in [10, 1_000_000] {
        // Begun before the disk was full.
        let id = fresh_key().blob_id();
        let mut writer = StagingWriter::new(Arc::clone(shared), id, UNLIMITED);

        let outcome = async {
            writer.write(content(length).into()).await?;
            writer.finish().await
        };
        assert_eq!(outcome.await.unwrap_err().kind(), ErrorKind::StorageFull, "{length}");
        home.is_idle().await;
        assert_eq!(home.staged_names(), 0);
    }
}

#[tokio::test]
async fn the_reserve_comes_and_goes() {
    let home = Home::new(LocalOptions { reserve_bytes: 1 << 20, ..OPTIONS });
    let reserve = home.path.path().join("reserve");
    assert_eq!(fs::metadata(&reserve).unwrap().len(), 1 << 20);
    assert!(home.store.free_reserve());
    assert!(!reserve.exists());
    home.store.refill_reserve().await;
    assert!(reserve.exists());
}

#[tokio::test]
async fn a_check_leaves_nothing_and_fails_where_nothing_can_be_written() {
    let home = Home::real();
    home.store.check().await.unwrap();
    assert_eq!(home.staged_names(), 0);

    fs::remove_dir(home.path.path().join("staging")).unwrap();
    assert_eq!(home.store.check().await.unwrap_err().kind(), ErrorKind::Internal);
}

#[tokio::test]
async fn a_store_that_is_dropped_releases_the_directory() {
    let home = Home::real();
    put(&home.store, &fresh_key(), b"x").await.unwrap();
    let Home { path, store } = home;
    assert_eq!(DataDir::open(path.path()).unwrap_err().kind(), ErrorKind::Locked);
    drop(store);
    DataDir::open(path.path()).unwrap();
}

/// Runs `future` on a runtime of its own, for property tests.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_range_reads_like_the_slice(ranges in prop::collection::vec((0u64..800_000, 0u64..800_000), 1..8)) {
        let content = content(800_000);
        let outcome: Result<(), TestCaseError> = block_on(async {
            let home = Home::new(LocalOptions { durability: Durability::Process, ..OPTIONS });
            let key = fresh_key();
            put(&home.store, &key, &content).await.unwrap();
            for (a, b) in ranges {
                let (start, end) = (a.min(b), a.max(b));
                let slice = &content[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()];
                let small = get(&home.store, &key, 800_000, start..end).await.unwrap().unwrap();
                prop_assert!(small == slice);
                let blob = home.store.open_blob(&key, 800_000).await.unwrap().unwrap();
                let blocks: Vec<Bytes> = blob.into_stream(start..end).try_collect().await.unwrap();
                prop_assert!(blocks.concat() == slice);
            }
            Ok(())
        });
        outcome?;
    }

    #[test]
    fn any_chunking_stages_the_same_bytes(chunks in prop::collection::vec(0usize..400_000, 0..8)) {
        let content = content(chunks.iter().sum());
        let outcome: Result<(), TestCaseError> = block_on(async {
            let home = Home::new(LocalOptions { durability: Durability::Process, ..OPTIONS });
            let id = fresh_key().blob_id();
            let mut writer = home.store.stage(id, content.len() as u64).await.unwrap();
            let mut rest = Bytes::from(content.clone());
            for length in chunks {
                writer.write(rest.split_to(length)).await.unwrap();
            }
            let staged = writer.finish().await.unwrap();
            prop_assert_eq!(staged.sha256.0, <[u8; 32]>::from(sha2::Sha256::digest(&content)));
            prop_assert!(fs::read(home.staged_path(id)).unwrap() == content);
            Ok(())
        });
        outcome?;
    }
}
