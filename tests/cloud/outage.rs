//! An outage of a day: whatever waited for the provider is done minutes after its end, without hands.
//!
//! With as many files as a busy day brings, best in memory:
//!
//! ```text
//! TMPDIR=/dev/shm FILESTORE_OUTAGE_FILES=100000 cargo test --release --test cloud outage_of_a_day -- --nocapture
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use filestore_core::admin::NoProgress;
use filestore_core::bindings::NewBinding;
use filestore_core::{
    Durability, FileStore, ManualClock, NewUpload, ProviderCode, Scope, StoreConfig, Timestamp,
    Workers,
};
use filestore_workspace::{Remote, S3Server};
use futures_util::{StreamExt, stream};

/// Time after which nothing waits any more.
const RECOVERY: Duration = Duration::from_mins(5);

/// Files that wait: as many as the environment says, or few enough for every run of the tests.
fn waiting_files() -> usize {
    let files = std::env::var("FILESTORE_OUTAGE_FILES").ok();
    files.map_or(400, |files| files.parse().expect("FILESTORE_OUTAGE_FILES is a number"))
}

/// Tells whether the files take time to be copied, and not only to wait.
fn are_many() -> bool {
    waiting_files() > 1000
}

async fn open(home: &std::path::Path, remote: &Remote, clock: &ManualClock) -> FileStore {
    let mut config = StoreConfig::default();
    if !are_many() {
        config.durability = Durability::Process;
    }
    (config.blob_grace, config.purge_grace) = (Duration::ZERO, Duration::ZERO);
    config.providers = vec![remote.config.clone()];
    FileStore::builder(home).config(config).clock(clock.clock()).open().await.unwrap()
}

async fn bind(store: &FileStore, organization: i64, provider: &ProviderCode) {
    let number = organization.try_into().unwrap();
    let binding = NewBinding::new(number, "name", provider.clone()).with_sync();
    store.bindings().create(binding).await.unwrap();
}

async fn upload(store: &FileStore, organization: i64) -> filestore_core::FileId {
    let organization = organization.to_string().parse().unwrap();
    let new = NewUpload::new(organization, "docs".parse().unwrap());
    store.upload(new, &b"bytes"[..]).await.unwrap().file_id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_a_day_ends_without_hands_minutes_after_the_provider_is_back() {
    let s3 = S3Server::start().await;
    let remote = {
        let mut remote = Remote::at(&s3);
        remote.config.retries = 0;
        remote
    };
    let home = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::now());
    let store = open(home.path(), &remote, &clock).await;
    bind(&store, 7, &remote.config.code).await;
    bind(&store, 8, &remote.config.code).await;

    let mut deleted = Vec::new();
    for _ in 0..20 {
        deleted.push(upload(&store, 8).await);
    }
    let report = store.admin().sync(Arc::new(NoProgress)).await.unwrap();
    assert_eq!((report.synced, report.failed), (20, 0));

    s3.down().await;
    let workers = Workers::start(&store);
    let uploads = (0..waiting_files()).map(|_| upload(&store, 7));
    stream::iter(uploads).buffer_unordered(16).count().await;
    for &id in &deleted {
        store.scoped(&Scope::All).delete(id).await.unwrap();
    }

    // A day, in steps of ten minutes: in each the lanes may find that the provider is still out.
    for _ in 0..24 * 6 {
        clock.advance(Duration::from_mins(10));
        store.admin().sync(Arc::new(NoProgress)).await.unwrap();
        store.admin().purge(&NoProgress).await.unwrap();
    }
    let status = store.admin().sync_status().await.unwrap();
    assert_eq!((status.pending + status.syncing, status.failed), (waiting_files() as u64, 0));

    s3.up().await;
    let ended = clock.clock().now();
    let all_done = async || {
        let status = store.admin().sync_status().await.unwrap();
        let mut gone = true;
        for id in &deleted {
            gone &= store.scoped(&Scope::All).info(*id).await.is_err();
        }
        gone && status.pending + status.syncing == 0 && status.failed == 0
    };
    // Nothing but the background is at work. A few files wait for pauses alone: the clock is ahead of real
    // time, by as much as the machine has time to look. Many take time to be copied: it follows real time.
    let mut looked = Instant::now();
    let look = async || {
        let step = if are_many() { looked.elapsed() } else { Duration::from_millis(100) };
        looked = Instant::now();
        clock.advance(step);
        all_done().await.then_some(())
    };
    filestore_workspace::eventually("all is copied and purged", look).await;

    let took_ms = clock.clock().now().as_millis() - ended.as_millis();
    let took = Duration::from_millis(u64::try_from(took_ms).expect("the clock goes forward"));
    println!("{} files were copied {took:?} after the outage", waiting_files());
    assert!(took <= RECOVERY, "it took {took:?}");
    for waiting in store.admin().backlog().await.unwrap() {
        assert_eq!(waiting.purge.count + waiting.sync.count, 0, "{waiting:?}");
    }
    workers.stop(Duration::from_secs(30)).await;
}
