//! The totals of the store. Their cost grows with the number of organizations, so they are counted at most once in a
//! minute, however often somebody scrapes.

use std::time::Duration;

use filestore_core::{FileStore, Usage};
use tokio::time::Instant;

/// The age from which on totals are counted again.
const MAX_AGE: Duration = Duration::from_mins(1);

/// The totals of the last count.
#[derive(Debug, Default)]
pub(super) struct CachedTotals(Option<(Instant, Usage)>);

impl CachedTotals {
    /// Returns the files and bytes of all organizations, at most a minute old; `None` if the database does not
    /// answer.
    pub(super) async fn of(&mut self, store: &FileStore) -> Option<Usage> {
        if let Some((counted_at, usage)) = self.0
            && counted_at.elapsed() < MAX_AGE
        {
            return Some(usage);
        }

        self.0 = store.admin().usage().await.ok().map(|usage| (Instant::now(), usage));
        self.0.map(|(_, usage)| usage)
    }
}
