use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::files::LOCAL_CLAIMS;
use super::*;
use crate::domain::clock::ManualClock;
use crate::domain::config::{Durability, StoreConfig};
use crate::domain::id::FileId;
use crate::domain::scope::Scope;
use crate::service::NewUpload;
use crate::worker::NoProgress;

/// Counts what advances.
#[derive(Default)]
struct Done(AtomicU64);

impl Progress for Done {
    fn start(&self, _total: Option<u64>) {}

    fn advance(&self, units: u64) {
        self.0.fetch_add(units, Ordering::SeqCst);
    }
}

async fn deleted(store: &FileStore) -> FileId {
    let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
    let id = store.upload(new, &b"bytes"[..]).await.unwrap().file_id;
    store.delete(id, &Scope::All).await.unwrap();
    id
}

#[tokio::test]
async fn a_run_that_is_stopped_leaves_the_rest_to_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let config = StoreConfig { durability: Durability::Process, ..StoreConfig::default() };
    let store = FileStore::builder(dir.path()).config(config).open().await.unwrap();
    for _ in 0..=LOCAL_CLAIMS {
        deleted(&store).await;
    }

    let done = Done::default();
    let after_one_claim = || done.0.load(Ordering::SeqCst) > 0;
    let stopped = store.purge_until(&after_one_claim, &done).await.unwrap();
    assert_eq!((stopped.purged, stopped.waiting), (LOCAL_CLAIMS as u64, 0));
    assert_eq!(store.purge_run(&NoProgress).await.unwrap().purged, 1);
}

#[tokio::test]
async fn a_record_stays_until_its_variants_are_gone_too() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::now());
    let store = FileStore::builder(dir.path()).clock(clock.clock()).open().await.unwrap();
    let id = deleted(&store).await;
    // Where the directory of its variants would be: nothing can be listed there.
    let text = id.to_string();
    let in_the_way = store.data_dir().variants().join(&text[24..]).join(&text);
    std::fs::create_dir_all(in_the_way.parent().unwrap()).unwrap();
    std::fs::write(&in_the_way, b"x").unwrap();

    let report = store.purge_run(&NoProgress).await.unwrap();
    assert_eq!((report.purged, report.failed), (0, 1));
    assert_eq!(report.failures[0].file_id, id);
    assert!(store.info(id, &Scope::All).await.is_ok());

    std::fs::remove_file(&in_the_way).unwrap();
    clock.advance(Duration::from_secs(2));
    assert_eq!(store.purge_run(&NoProgress).await.unwrap().purged, 1);
}

fn year() -> Duration {
    Duration::from_hours(24 * 365)
}

async fn with_clock(clock: &ManualClock, dir: &std::path::Path) -> FileStore {
    FileStore::builder(dir)
        .clock(clock.clock())
        .durability(Durability::Process)
        .purge_grace(Duration::from_hours(1))
        .open()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_clock_that_leaps_forward_takes_no_file_before_it_has_settled() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::now());
    let store = with_clock(&clock, dir.path()).await;
    let temp = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap()).temp();
    let temp = store.upload(temp, &b"bytes"[..]).await.unwrap().file_id;
    let dead = deleted(&store).await;
    let right = clock.clock().now();

    clock.set(right.plus(year()));
    let report = store.purge_run(&NoProgress).await.unwrap();
    assert_eq!((report.expired, report.purged, report.is_paused), (0, 0, true));
    assert!(store.read(temp, &Scope::All).await.is_ok());
    store.restore(dead, &Scope::All).await.unwrap();

    clock.set(right);
    let report = store.purge_run(&NoProgress).await.unwrap();
    assert_eq!((report.expired, report.is_paused), (0, false), "it is back");

    clock.set(right.plus(year()));
    assert_eq!(store.purge_run(&NoProgress).await.unwrap().expired, 0);
    clock.advance(store.config().clock_settle);
    assert_eq!(store.purge_run(&NoProgress).await.unwrap().expired, 1, "it has settled");
}

#[tokio::test]
async fn a_file_touched_while_the_clock_was_ahead_is_purged_when_it_is_due() {
    let dir = tempfile::tempdir().unwrap();
    let right = Timestamp::now();
    let clock = ManualClock::at(right.plus(year()));
    let store = with_clock(&clock, dir.path()).await;
    let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
    let touched = store.upload(new, &b"bytes"[..]).await.unwrap().file_id;

    clock.set(right);
    store.delete(touched, &Scope::All).await.unwrap();
    clock.advance(Duration::from_hours(1));
    assert_eq!(store.purge_run(&NoProgress).await.unwrap().purged, 1);
    assert!(store.info(touched, &Scope::All).await.is_err());
}
