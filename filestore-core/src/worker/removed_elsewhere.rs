//! Cached variants of what other servers have removed.
//!
//! # Purpose
//! Whoever purges a file, or removes the blob that a replace has dropped, removes the variants that it has
//! itself. Each of several servers has a cache of its own: nobody is shown its entries, as every look-up begins
//! with the record, but bytes made of a deleted file are to go as well.
//!
//! # How
//! First all files in the cache are looked up, since some may have gone while this server was stopped. From then
//! on the database tells which contents were found absent since the last look.

use std::time::Duration;

use crate::FileStore;
use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::metadata::Company;

/// Files that are looked up at once.
const PAGE: usize = 500;

/// Time by which looks overlap: clocks are less apart, and no commit takes so long.
const OVERLAP: Duration = Duration::from_mins(2);

impl FileStore {
    /// Removes cached variants of contents that other servers have removed. Does nothing where there are no
    /// other servers.
    pub(super) async fn forget_removed_elsewhere(&self) -> Result<()> {
        let inner = self.inner();
        if inner.metadata.company() == Company::Alone {
            return Ok(());
        }

        // Held for the whole look: the next one goes on from its end.
        let mut looked_at = inner.removals_seen.lock().await;
        let now = inner.now();
        match *looked_at {
            None => self.forget_unknown_files().await?,
            Some(since) => self.forget_contents_removed_since(since).await?,
        }
        *looked_at = Some(now.minus(OVERLAP));
        Ok(())
    }

    /// Removes the variants of files that have no record any more.
    async fn forget_unknown_files(&self) -> Result<()> {
        let variants = &self.inner().variants;
        for shard in variants.cached_shards().await {
            for page in variants.cached_files(shard).await.chunks(PAGE) {
                let known = self.inner().metadata.known_files(page).await?;
                for (&file, _) in page.iter().zip(known).filter(|(_, is_known)| !is_known) {
                    variants.remove_file(file).await?;
                }
            }
        }
        Ok(())
    }

    async fn forget_contents_removed_since(&self, since: Timestamp) -> Result<()> {
        let mut next = Some(since);
        while let Some(after) = next {
            let (files, go_on) = self.inner().metadata.contents_removed(after, PAGE).await?;
            for file in files {
                self.inner().variants.remove_file(file).await?;
            }
            next = go_on;
        }
        Ok(())
    }
}
