//! Recovery at startup: completes or discards interrupted uploads.
//!
//! Recovery reads only the staging folder. The duration of recovery depends on the number of interrupted
//! uploads, not on the number of stored files. A staged blob with a record gets its final name. A staged blob
//! without a record was never acknowledged, and is removed. A second run, or a crash during the run, does no
//! harm.
//!
//! # Several servers
//! Each server has its own staging folder. Recovery ends only leases and write intents of this server's
//! earlier processes, and of servers that are gone ([`Company`]).

use std::time::Duration;

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::id::BlobId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Company, Servers};
use crate::tasks::step::{Step, reached};

use crate::service::Inner;
use crate::service::uploads::resumable;

/// The longest pause between two attempts of any work, and so the longest wait after startup.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// The number of blobs in one look-up.
const PAGE: usize = 500;

/// Aligns staging with the database. The caller holds the directory's lock, and does not serve requests yet.
pub(crate) async fn recover(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    // Read before anything is unlinked.
    let resumable = resumable::recovery::recover(store).await?;
    let mut staged = inner.stores.local().staged().await?;
    staged.retain(|id| !resumable.contains(id));
    let (mut forward, mut undone) = (0, 0);

    for page in staged.chunks(PAGE) {
        let (live, unknown) = look_up(inner, page).await?;
        let mut dead = page.to_vec();
        dead.retain(|id| !unknown.contains(id) && live.iter().all(|key| key.blob_id() != *id));
        forward += live.len();
        undone += dead.len();
        inner.publish_all(live).await;
        reached(Step::StagedForwarded);
        inner.stores.local().discard_staged(dead).await?;
        reached(Step::StagedUndone);
    }

    if forward + undone > 0 {
        tracing::info!(forward, undone, "recovered staged uploads");
    }

    match inner.metadata.servers() {
        Some(servers) if servers.company() == Company::Others => end_left(store, servers).await,
        _ => end_everything(store).await,
    }
}

/// Ends everything that an earlier process left, because no other server uses the store.
async fn end_everything(store: &FileStore) -> Result<()> {
    // All of them, also those of a clock that was ahead: nobody is left who writes.
    withdraw_stale_writes(store, Timestamp::from_millis(i64::MAX)).await;
    reached(Step::StaleWritesWithdrawn);
    match end_waits(store).await {
        // They end by themselves; what is stored can be read meanwhile.
        Err(error) if error.is_lack_of_room() => {
            tracing::warn!(
                "the disk is full: purges that were under way wait for their leases to end"
            );
            Ok(())
        }
        outcome => outcome,
    }
}

/// Ends the leftovers of this server's earlier processes, and of servers that are gone.
async fn end_left(store: &FileStore, servers: &dyn Servers) -> Result<()> {
    let inner = store.inner();
    servers.end_earlier(inner.now().plus(inner.late_write_grace(None))).await?;
    end_gone(store).await
}

/// Ends the leftovers of servers that are gone.
pub(crate) async fn end_gone(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let Some(servers) = inner.metadata.servers() else { return Ok(()) };
    let gone = servers.end_gone(inner.now().plus(inner.late_write_grace(None))).await?;
    if gone > 0 {
        tracing::info!(gone, "ended the unfinished work of servers that are gone");
    }
    Ok(())
}

/// Looks up a page of staged blobs. A blob with a damaged record counts as unknown. Such a blob stays in
/// staging, because the record can still be repaired.
async fn look_up(inner: &Inner, page: &[BlobId]) -> Result<(Vec<BlobKey>, Vec<BlobId>)> {
    if let Ok(live) = inner.metadata.live_local_keys(page).await {
        return Ok((live, Vec::new()));
    }

    let (mut live, mut unknown) = (Vec::new(), Vec::new());
    for &id in page {
        match inner.metadata.live_local_keys(&[id]).await {
            Ok(keys) => live.extend(keys),
            Err(error) => {
                // It is the record that cannot be read, and not the database.
                inner.metadata.ping().await?;
                tracing::error!(blob = %id, error = %error.chain(), "a staged blob stays: its record cannot be read");
                unknown.push(id);
            }
        }
    }
    Ok((live, unknown))
}

/// Ends all leases, and shortens waits that a fast clock made too long.
async fn end_waits(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let max_retry_at = inner.now().plus(LONGEST_WAIT);
    let max_blob_wait_until = inner.now().plus(LONGEST_WAIT.max(inner.config().blob_grace));

    inner.metadata.end_leases(max_retry_at, max_blob_wait_until).await?;
    reached(Step::LeasesEnded);
    Ok(())
}

/// Moves objects without a record to the dropped blobs if their writes began before `begun_before`. The
/// processes that wrote them are gone, but the provider can still receive their last requests.
pub(crate) async fn withdraw_stale_writes(store: &FileStore, begun_before: Timestamp) {
    let inner = store.inner();
    let not_before = inner.now().plus(inner.late_write_grace(None));

    loop {
        match inner.metadata.withdraw_old_writes(begun_before, not_before, PAGE).await {
            Ok(0) => return,
            Ok(count) => tracing::info!(count, "objects of writes that broke off will be removed"),
            Err(error) => {
                tracing::warn!(error = %error.chain(), "objects of writes that broke off stay noted");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::FileId;
    use crate::domain::time::clock::ManualClock;
    use crate::metadata::WriteIntent;
    use crate::service::NewUpload;

    #[tokio::test]
    async fn a_write_noted_by_a_clock_that_was_ahead_is_given_up_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
        let year_ahead = clock.clock().now().plus(Duration::from_hours(365 * 24));

        let store = FileStore::builder(dir.path()).clock(clock.clock()).open().await.unwrap();
        let blob = BlobId::generate(year_ahead);
        let intent = WriteIntent {
            file_id: FileId::generate(year_ahead),
            provider: "s3".parse().unwrap(),
            key: BlobKey::new(&"7".parse().unwrap(), &"docs".parse().unwrap(), year_ahead, blob),
            begun_at: year_ahead,
            owner: None,
        };
        let metadata = &store.inner().metadata;
        metadata.begin_writes(vec![intent.clone()]).await.unwrap();
        store.close().await;
        drop(store);

        let store = FileStore::builder(dir.path()).clock(clock.clock()).open().await.unwrap();
        let due_at = clock.clock().now().plus(store.config().blob_grace);
        let due = store.inner().metadata.due_blobs(&intent.provider, due_at, 9).await.unwrap();
        assert_eq!(due.len(), 1);
        assert_eq!(due[0].blob.key, intent.key);
    }

    #[tokio::test]
    async fn a_staged_blob_of_a_damaged_record_stays_and_the_store_opens() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        let key = store.upload(new, &b"bytes"[..]).await.unwrap().blob.key;
        store.close().await;
        drop(store);

        let staged = dir.path().join("staging").join(key.blob_id().to_string());
        std::fs::rename(dir.path().join("blobs").join(key.as_str()), &staged).unwrap();
        let vandal = rusqlite::Connection::open(dir.path().join("metadata.sqlite3")).unwrap();
        let set_key = |text: &str| {
            let sql = "UPDATE files SET blob_key = ?1 WHERE blob_id = ?2";
            vandal.execute(sql, [text, &key.blob_id().to_string()]).unwrap();
        };
        set_key(&format!("broken/{}", key.blob_id()));

        let store = FileStore::open(dir.path()).await.unwrap();
        assert!(staged.exists(), "the record may be repaired");
        assert_eq!(store.damage().damaged_rows, 1);
        store.close().await;
        drop(store);

        set_key(key.as_str());
        let store = FileStore::open(dir.path()).await.unwrap();
        assert!(!staged.exists() && !store.damage().is_any());
    }
}
