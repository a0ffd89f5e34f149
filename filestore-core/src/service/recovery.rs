//! Recovery at start: completes or discards what a crash left in staging.
//!
//! Only staging is looked at, so it takes as long as the crash left uploads, not as the store has
//! files. A staged blob with a record is renamed forward; one without never had an answer and goes.
//! Running it again, or crashing in it, changes nothing.

use std::time::Duration;

use crate::FileStore;
use crate::domain::clock::Timestamp;
use crate::domain::error::{ErrorKind, Result};

/// The longest pause between two tries of anything, and so the longest wait after a start.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// Blobs looked up at once.
const PAGE: usize = 500;

/// Brings staging and database together. The caller holds the directory's lock and serves nobody yet.
pub(crate) async fn recover(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let staged = inner.stores.local().staged().await?;
    let (mut forward, mut undone) = (0, 0);

    for page in staged.chunks(PAGE) {
        let live = inner.metadata.live_local_keys(page).await?;
        let dead: Vec<_> =
            page.iter().copied().filter(|id| live.iter().all(|key| key.blob_id() != *id)).collect();
        forward += live.len();
        undone += dead.len();
        inner.publish_all(live).await;
        inner.stores.local().discard_staged(dead).await?;
    }

    if forward + undone > 0 {
        tracing::info!(forward, undone, "recovered staged uploads");
    }

    // All of them, also those of a clock that was ahead: nobody is left who writes.
    withdraw_stale_writes(store, Timestamp::from_millis(i64::MAX)).await;
    match end_waits(store).await {
        // They end by themselves; what is stored can be read meanwhile.
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            tracing::warn!(
                "the disk is full: purges that were under way wait for their leases to end"
            );
            Ok(())
        }
        outcome => outcome,
    }
}

/// Ends all leases, and cuts waits short that a clock that was ahead has made long.
async fn end_waits(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let retries = inner.now().plus(LONGEST_WAIT);
    let blobs = inner.now().plus(LONGEST_WAIT.max(inner.config.blob_grace));

    inner.metadata.clear_leases().await?;
    inner.metadata.cap_waits(retries, blobs).await
}

/// Hands objects whose writes began before `begun_before`, and which no record refers to, over to the
/// dropped blobs. No process that wrote them is there any more; what it sent may still arrive.
pub(crate) async fn withdraw_stale_writes(store: &FileStore, begun_before: Timestamp) {
    let inner = store.inner();
    let not_before = inner.now().plus(inner.config.blob_grace);

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
    use crate::domain::clock::ManualClock;
    use crate::domain::id::{BlobId, FileId};
    use crate::domain::path::BlobKey;
    use crate::metadata::WriteIntent;

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
}
