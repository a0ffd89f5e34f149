//! Contact sheets in memory.
//!
//! # Purpose
//! A page of thumbnails that is viewed again needs no decoding. If one of its files is replaced or purged,
//! the cache removes the sheet, so that it never shows the old picture.
//!
//! # Locking
//! The cache's own.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::time::Instant;

use super::weighed::weighed;
use crate::domain::id::FileId;
use crate::variant::{Sheet, SheetKey};

/// The weight of a cell in addition to the sheet's bytes: its place in the key and in the sheet.
const CELL_BYTES: u64 = 192;

/// The sheets in memory.
pub(super) struct SheetCache(Cache<Arc<SheetKey>, Entry, ByBytes>);

/// The time for which a sheet is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// Until one of its files changes.
    AsLongAsItsFiles,
    /// At most this long, because a cell might be filled later.
    For(Duration),
}

#[derive(Clone)]
struct Entry {
    sheet: Arc<Sheet>,
    /// The time at which the sheet becomes invalid.
    ends: Option<Instant>,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<Arc<SheetKey>, Entry> for ByBytes {
    fn weight(&self, key: &Arc<SheetKey>, entry: &Entry) -> u64 {
        entry.sheet.webp.len() as u64 + CELL_BYTES * (1 + key.files.len() as u64)
    }
}

impl SheetCache {
    /// Creates a cache of at most `capacity_bytes`. 0 disables the cache.
    pub(super) fn new(capacity_bytes: u64) -> Self {
        Self(weighed(capacity_bytes, ByBytes))
    }

    /// Returns the sheet if it is in the cache and still valid.
    pub(super) fn get(&self, key: &SheetKey) -> Option<Arc<Sheet>> {
        let Entry { sheet, ends } = self.0.get(key)?;
        if ends.is_some_and(|end| Instant::now() >= end) {
            self.0.remove(key);
            return None;
        }
        Some(sheet)
    }

    /// Adds a sheet. The new sheet can displace other sheets.
    pub(super) fn insert(&self, key: Arc<SheetKey>, sheet: Arc<Sheet>, lasting: Lasting) {
        let ends = match lasting {
            Lasting::AsLongAsItsFiles => None,
            Lasting::For(time) => Some(Instant::now() + time),
        };
        self.0.insert(key, Entry { sheet, ends });
    }

    /// Removes all sheets with this file.
    pub(super) fn remove_file(&self, file_id: FileId) {
        let keys = self.0.iter().map(|(key, _)| key);
        let stale: Vec<_> =
            keys.filter(|key| key.files.iter().any(|(shown, _)| *shown == file_id)).collect();
        for key in stale {
            self.0.remove(&key);
        }
    }

    /// Removes everything. Returns the number of sheets.
    pub(super) fn clear(&self) -> u64 {
        let sheets = self.0.len() as u64;
        self.0.clear();
        sheets
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::time::{advance, pause};

    use super::*;
    use crate::domain::file::sheet::SheetGrid;
    use crate::variant::Fit;

    #[tokio::test]
    async fn a_sheet_with_a_cell_that_may_be_filled_later_ends_by_itself() {
        pause();
        let grid = SheetGrid::new(1, 200.try_into().unwrap()).unwrap();
        let sheet = Sheet { grid, cells: Vec::new(), webp: Bytes::new(), tag: String::new() };
        let sheet = Arc::new(sheet);
        let keys = [Fit::Cover, Fit::Inside]
            .map(|fit| Arc::new(SheetKey { grid, fit, files: Vec::new() }));
        let cache = SheetCache::new(1 << 20);
        cache.insert(Arc::clone(&keys[0]), Arc::clone(&sheet), Lasting::AsLongAsItsFiles);
        let (nearly, rest) = (Duration::from_secs(59), Duration::from_secs(1));
        cache.insert(Arc::clone(&keys[1]), Arc::clone(&sheet), Lasting::For(nearly + rest));

        advance(nearly).await;
        assert!(keys.iter().all(|key| cache.get(key).is_some()));
        advance(rest).await;
        assert!(cache.get(&keys[0]).is_some() && cache.get(&keys[1]).is_none());
        assert_eq!(cache.clear(), 1);
    }
}
