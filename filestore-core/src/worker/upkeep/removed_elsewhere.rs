//! Removes cached variants of files that other servers removed.
//!
//! # Purpose
//! A server that purges a file, or removes a replaced blob, also removes the variants in its own cache. If
//! there are several servers, each has its own cache. No caller can see stale entries, because every look-up
//! begins with the record. But bytes made from a deleted file must be removed too.
//!
//! # Method
//! First, the server looks up all files in its cache, because some may have been removed while it was
//! stopped. After that, the database tells which contents were confirmed absent since the last look.

use std::time::Duration;

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Company, Servers};

/// The number of files in one query.
const PAGE: usize = 500;

/// The overlap of two looks. The overlap exceeds the difference of the clocks and the duration of any commit.
const OVERLAP: Duration = Duration::from_mins(2);

/// Removes cached variants of contents that other servers removed. Does nothing if there are no other
/// servers.
pub(super) async fn forget(store: &FileStore) -> Result<()> {
    let inner = store.inner();
    let servers = inner.metadata.servers();
    let Some(servers) = servers.filter(|servers| servers.company() == Company::Others) else {
        return Ok(());
    };

    // Held for the whole look: the next one goes on from its end.
    let mut looked_at = inner.background.removals_seen.lock().await;
    let now = inner.now();
    match *looked_at {
        None => forget_unknown_files(store).await?,
        Some(since) => forget_contents_removed_since(store, servers, since).await?,
    }
    *looked_at = Some(now.minus(OVERLAP));
    Ok(())
}

/// Removes the variants of files without a record.
async fn forget_unknown_files(store: &FileStore) -> Result<()> {
    let variants = &store.inner().pictures.engine;
    for shard in variants.cached_shards().await {
        for page in variants.cached_files(shard).await.chunks(PAGE) {
            let known = store.inner().metadata.inspection().known_files(page).await?;
            for (&file, _) in page.iter().zip(known).filter(|(_, is_known)| !is_known) {
                variants.remove_file(file).await?;
            }
        }
    }
    Ok(())
}

async fn forget_contents_removed_since(
    store: &FileStore,
    servers: &dyn Servers,
    since: Timestamp,
) -> Result<()> {
    let mut next = Some(since);
    while let Some(after) = next {
        let (files, go_on) = servers.contents_removed(after, PAGE).await?;
        for file in files {
            store.inner().pictures.engine.remove_file(file).await?;
        }
        next = go_on;
    }
    Ok(())
}
