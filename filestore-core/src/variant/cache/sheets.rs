//! Contact sheets in memory.
//!
//! # Purpose
//! A page of thumbnails that is looked at again is answered without a pixel. A sheet goes with any of
//! its files: a replaced or purged picture does not stay in a corner of one.
//!
//! # Locking
//! The cache's own.

use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::domain::id::FileId;
use crate::variant::{Sheet, SheetKey};

/// The weight of a cell besides the sheet's bytes: its place in the key and in the sheet.
const CELL_BYTES: u64 = 192;

/// The sheets in memory.
pub(super) struct SheetCache(Cache<Arc<SheetKey>, Arc<Sheet>, ByBytes>);

#[derive(Clone)]
struct ByBytes;

impl Weighter<Arc<SheetKey>, Arc<Sheet>> for ByBytes {
    fn weight(&self, key: &Arc<SheetKey>, sheet: &Arc<Sheet>) -> u64 {
        sheet.webp.len() as u64 + CELL_BYTES * (1 + key.files.len() as u64)
    }
}

impl SheetCache {
    /// Makes a cache of at most `capacity_bytes`; 0 holds nothing.
    pub(super) fn new(capacity_bytes: u64) -> Self {
        let options = OptionsBuilder::new()
            .weight_capacity(capacity_bytes)
            .estimated_items_capacity(64)
            .shards(1)
            .build()
            .expect("the two required options are set");

        Self(Cache::with_options(
            options,
            ByBytes,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        ))
    }

    /// Returns the sheet, if it is here.
    pub(super) fn get(&self, key: &SheetKey) -> Option<Arc<Sheet>> {
        self.0.get(key)
    }

    /// Keeps a sheet, perhaps at the cost of others.
    pub(super) fn insert(&self, key: Arc<SheetKey>, sheet: Arc<Sheet>) {
        self.0.insert(key, sheet);
    }

    /// Forgets all sheets that show the file.
    pub(super) fn remove_file(&self, file_id: FileId) {
        let shows = |key: &SheetKey| key.files.iter().any(|(shown, _)| *shown == file_id);
        let stale: Vec<_> = self.0.iter().map(|(key, _)| key).filter(|key| shows(key)).collect();
        for key in stale {
            self.0.remove(&key);
        }
    }

    /// Forgets everything; returns the number of sheets.
    pub(super) fn clear(&self) -> u64 {
        let sheets = self.0.len() as u64;
        self.0.clear();
        sheets
    }
}
