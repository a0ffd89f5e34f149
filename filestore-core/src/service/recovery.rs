//! Recovery at start: completes or discards what a crash left in staging.
//!
//! Only staging is looked at, so it takes as long as the crash left uploads, not as the store has
//! files. A staged blob with a record is renamed forward; one without never had an answer and goes.
//! Running it again, or crashing in it, changes nothing.

use crate::FileStore;
use crate::domain::clock::Timestamp;
use crate::domain::error::{ErrorKind, Result};

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

    withdraw_stale_writes(store, inner.now()).await;
    match inner.metadata.clear_leases().await {
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
