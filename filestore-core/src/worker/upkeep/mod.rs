//! Upkeep, which repeats or removes:
//! - failed renames after a commit, and the reserve file
//! - abandoned writes to providers, and leftovers of servers that are gone
//! - cached variants of files that other servers removed
//! - expired idempotency keys, used permits and retired secrets of signed URLs, old receipts, old events, and old
//!   events that webhooks refused
//! - files that no upload flushed
//! - expired resumable uploads, and commits of resumable uploads that nobody ends

pub(super) mod expiry;
pub(super) mod outage;
pub(super) mod part_uploads;
pub(crate) mod removed_elsewhere;

use std::time::Duration;

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::metadata::LogBounds;
use crate::service::opening::recovery::{end_gone, withdraw_stale_writes};
use crate::service::opening::unflushed;
use crate::service::{reopen_stalled_uploads, upkeep_of_uploads};
use crate::tasks::step::{Step, reached};

/// The age at which a write counts as abandoned.
const WRITE_AGE: Duration = Duration::from_hours(24);

/// The number of events that are removed in one transaction.
const EVENTS_AT_ONCE: usize = 2000;

/// The age from which failed events of webhooks are forgotten.
const KEEP_FAILURES: Duration = Duration::from_hours(14 * 24);

/// Runs one round of upkeep. A failing part does not stop the others. Returns the first failure. The next
/// round tries its part again.
pub(super) async fn run(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let mut outcome = publish_again(store).await;
    inner.stores.local().refill_reserve().await;

    if store.inner().background.may_remove() {
        withdraw_stale_writes(store, inner.now().minus(WRITE_AGE)).await;
        outcome = outcome.and(store.inner().access.forget_signatures().await);
        outcome = outcome.and(store.inner().forget_receipts().await);
        outcome = outcome.and(forget_events(store).await);
        outcome = outcome.and(forget_failures(store).await);
        outcome = outcome.and(upkeep_of_uploads(store).await);
    }
    outcome = outcome.and(reopen_stalled_uploads(store).await);
    outcome = outcome.and(end_gone(store).await);
    outcome = outcome.and(removed_elsewhere::forget(store).await);
    outcome = outcome.and(forget_idempotency(store).await);
    outcome.and(unflushed::flush(store).await)
}

/// Removes the events that are too old or too many.
async fn forget_events(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let events = inner.config().events;
    let bounds = LogBounds { before: inner.now().minus(events.keep), most: events.keep_max };
    loop {
        let forgotten = inner.metadata.forget_events(bounds, EVENTS_AT_ONCE).await?;
        if forgotten > 0 {
            reached(Step::EventsForgotten);
        }
        if forgotten < EVENTS_AT_ONCE as u64 {
            return Ok(());
        }
    }
}

/// Removes events that webhooks refused too long ago.
async fn forget_failures(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let before = inner.now().minus(KEEP_FAILURES);
    while inner.metadata.forget_failures(before, 500).await? == 500 {}
    Ok(())
}

/// Removes expired idempotency keys.
async fn forget_idempotency(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    while inner.metadata.forget_idempotency(inner.now(), 500).await? == 500 {}
    Ok(())
}

/// Renames blobs after a failed rename. The list keeps a key until the database tells its blob's state.
async fn publish_again(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let waiting: Vec<_> = inner.uploads.publishing.failed.lock().iter().cloned().collect();

    let mut outcome = Ok(());
    inner.uploads.publishing.missing.lock().retain(|key| waiting.contains(key));
    for key in waiting {
        match inner.metadata.live_local_keys(&[key.blob_id()]).await {
            Ok(live) => {
                inner.uploads.publishing.forget(&[key]);
                for absent in inner.publish_each(live).await {
                    outcome = outcome.and(settle_absent(store, &absent).await);
                }
            }
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    outcome
}

/// Settles a blob without a file on the disk. A purge may have removed it in the meantime. If a live record
/// still names it, its bytes are missing.
async fn settle_absent(store: &FileStore, key: &BlobKey) -> Result<()> {
    let inner = store.inner();
    if inner.metadata.live_local_keys(&[key.blob_id()]).await?.contains(key) {
        inner.uploads.publishing.note_missing(key);
    } else {
        inner.uploads.publishing.forget(std::slice::from_ref(key));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::domain::access::scope::Scope;
    use crate::domain::file::record::FileRecord;
    use crate::service::NewUpload;
    use crate::worker::NoProgress;

    async fn uploaded(store: &FileStore) -> FileRecord {
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        store.upload(new, &b"bytes"[..]).await.unwrap()
    }

    #[tokio::test]
    async fn a_rename_that_failed_is_tried_again_however_the_round_before_went() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let mut places = Vec::new();
        for _ in 0..2 {
            let key = uploaded(&store).await.blob.key;
            store.inner().uploads.publishing.idle().await;
            let stored = dir.path().join("blobs").join(key.as_str());
            std::fs::rename(&stored, dir.path().join("staging").join(key.blob_id().to_string()))
                .unwrap();
            store.inner().uploads.publishing.failed.lock().insert(key.clone());
            places.push((key, stored));
        }
        let other = Connection::open(store.data_dir().database()).unwrap();
        let bad = &places[0].0;
        let set_key = |text: &str| {
            let sql = "UPDATE files SET blob_key = ?1 WHERE blob_id = ?2";
            assert_eq!(other.execute(sql, [text, &bad.blob_id().to_string()]).unwrap(), 1);
        };

        set_key(&format!("broken/{}", bad.blob_id()));
        assert!(run(&store).await.is_err());
        assert!(!places[0].1.exists() && places[1].1.exists(), "one does not keep the other");
        set_key(bad.as_str());
        run(&store).await.unwrap();
        assert!(places[0].1.exists());
        assert!(store.inner().uploads.publishing.failed.lock().is_empty());
    }

    #[tokio::test]
    async fn a_live_record_without_bytes_is_counted_until_they_are_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let record = uploaded(&store).await;
        store.inner().uploads.publishing.idle().await;
        let stored = dir.path().join("blobs").join(record.blob.key.as_str());
        let elsewhere = dir.path().join("elsewhere");
        std::fs::rename(&stored, &elsewhere).unwrap();
        store.inner().uploads.publishing.failed.lock().insert(record.blob.key.clone());

        for _ in 0..2 {
            run(&store).await.unwrap();
            assert_eq!(store.damage().missing_blobs, 1);
        }

        std::fs::rename(&elsewhere, &stored).unwrap();
        run(&store).await.unwrap();
        assert!(!store.damage().is_any());
    }

    #[tokio::test]
    async fn a_blob_that_was_purged_before_its_rename_is_not_missing() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::builder(dir.path()).purge_grace(Duration::ZERO);
        let store = store.open().await.unwrap();
        let record = uploaded(&store).await;
        store.inner().uploads.publishing.idle().await;
        store.scoped(&Scope::All).delete(record.file_id).await.unwrap();
        store.admin().purge(&NoProgress).await.unwrap();
        store.inner().uploads.publishing.failed.lock().insert(record.blob.key);

        run(&store).await.unwrap();
        assert!(!store.damage().is_any());
        assert!(store.inner().uploads.publishing.failed.lock().is_empty());
    }
}
