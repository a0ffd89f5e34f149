//! The record cache is never stale.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::cache::RecordCache;
use super::*;
use crate::domain::access::scope::Scope;
use crate::metadata::Updated;
use crate::metadata::contract::{at, temp};
use crate::metadata::contract::{change, get, put, ready, replaced};
use crate::metadata::prelude::*;

#[test]
fn a_row_read_before_a_change_is_not_kept_after_it() {
    let cache = RecordCache::new();
    let old = Arc::new(ready("acme"));
    let id = old.file_id;

    let before = cache.ticket(id);
    let changing = cache.changing(&[id]);
    cache.insert(before, &old);
    assert_eq!(cache.get(id), None, "between the change and its commit");

    let during = cache.ticket(id);
    cache.insert(during, &old);
    assert_eq!(cache.get(id), None, "read during the change");

    drop(changing);
    cache.insert(before, &old);
    cache.insert(during, &old);
    assert_eq!(cache.get(id), None, "the change is committed");

    cache.insert(cache.ticket(id), &old);
    assert_eq!(cache.get(id), Some(Arc::clone(&old)));

    drop(cache.changing(&[id]));
    assert_eq!(cache.get(id), None);
}

#[test]
fn the_cache_is_bounded() {
    let cache = RecordCache::new();
    for _ in 0..120_000 {
        let record = Arc::new(temp("acme"));
        cache.insert(cache.ticket(record.file_id), &record);
    }
    // The limit is split over shards, each rounded up.
    assert!((50_000..=101_000).contains(&cache.len()), "{}", cache.len());
}

#[tokio::test]
async fn a_read_file_is_in_memory_until_it_changes() {
    let (metadata, _directory) = fresh();
    let record = put(&metadata, ready("acme")).await;
    assert_eq!(metadata.cached_file(record.file_id, &Scope::All), None);
    get(&metadata, record.file_id).await;
    assert_eq!(metadata.cached_file(record.file_id, &Scope::All).as_deref(), Some(&record));
    let next = replaced(&record, 1, at(1));
    metadata.update_file(change(&record, next)).await.unwrap();
    assert_eq!(metadata.cached_file(record.file_id, &Scope::All), None);
}

/// Readers note the newest acknowledged version, read, and must not get an older one, nor ever one
/// older than they saw before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_load_no_reader_ever_sees_an_old_version() {
    let (metadata, _directory) = fresh();
    let metadata = Arc::new(metadata);
    let mut record = put(&*metadata, ready("acme")).await;
    let id = record.file_id;
    let acknowledged = Arc::new(AtomicU64::new(1));
    let done = Arc::new(AtomicBool::new(false));

    let readers: Vec<_> = (0..4)
        .map(|number| {
            let (metadata, acknowledged, done) =
                (Arc::clone(&metadata), Arc::clone(&acknowledged), Arc::clone(&done));
            tokio::spawn(async move {
                let (mut seen, mut hits) = (0, 0_u64);
                while !done.load(Ordering::Acquire) {
                    let floor = acknowledged.load(Ordering::Acquire).max(seen);
                    let cached =
                        if number % 2 == 0 { metadata.cached_file(id, &Scope::All) } else { None };
                    hits += u64::from(cached.is_some());
                    let read = match cached {
                        Some(record) => record,
                        None => get(&*metadata, id).await.unwrap(),
                    };
                    assert!(read.version >= floor, "version {} after {floor}", read.version);
                    seen = read.version;
                    tokio::task::yield_now().await;
                }
                hits
            })
        })
        .collect();

    for _ in 0..1500 {
        let next = replaced(&record, 1, at(1));
        assert_eq!(
            metadata.update_file(change(&record, next.clone())).await.unwrap(),
            Updated::Done
        );
        acknowledged.store(next.version, Ordering::Release);
        record = next;
    }

    done.store(true, Ordering::Release);
    let mut hits = 0;
    for reader in readers {
        hits += reader.await.unwrap();
    }

    assert!(hits > 0, "the cache was never used: this test proved nothing");
}
