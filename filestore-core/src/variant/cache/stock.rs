//! Decoded pictures in memory, reduced, so that a gallery that asks for a second size of a photograph
//! does not decode it again.
//!
//! Purpose: keyed by file and checked by digest; what is kept of a replaced blob is never used and goes with
//! the file's variants. Locking: the cache's own.

use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::super::VariantKey;
use super::super::stock::Stock;
use crate::domain::id::{FileId, Sha256};

/// What an entry weighs besides its pixels.
const ENTRY_BYTES: u64 = 512;
/// One picture takes at most this share of the whole.
const SHARE: u64 = 4;

/// The cache.
pub(in crate::variant) struct StockCache {
    stocks: Cache<FileId, Kept, ByBytes>,
    capacity_bytes: u64,
}

#[derive(Clone)]
struct Kept {
    sha256: Sha256,
    stock: Arc<Stock>,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<FileId, Kept> for ByBytes {
    fn weight(&self, _: &FileId, kept: &Kept) -> u64 {
        ENTRY_BYTES + kept.stock.bytes()
    }
}

impl StockCache {
    /// Holds at most `capacity_bytes`; 0 holds nothing.
    pub(in crate::variant) fn new(capacity_bytes: u64) -> Self {
        let options = OptionsBuilder::new()
            .weight_capacity(capacity_bytes)
            .estimated_items_capacity(64)
            .shards(1)
            .build()
            .expect("the two required options are set");
        let stocks = Cache::with_options(
            options,
            ByBytes,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        );
        Self { stocks, capacity_bytes }
    }

    /// The most that one picture may take.
    pub(in crate::variant) fn max_bytes(&self) -> u64 {
        (self.capacity_bytes / SHARE).saturating_sub(ENTRY_BYTES)
    }

    /// What is kept of the key's blob.
    pub(in crate::variant) fn get(&self, key: &VariantKey) -> Option<Arc<Stock>> {
        self.stocks
            .get(&key.file_id)
            .filter(|kept| kept.sha256 == key.sha256)
            .map(|kept| kept.stock)
    }

    /// Keeps it, perhaps at the cost of others.
    pub(in crate::variant) fn insert(&self, key: &VariantKey, stock: Stock) {
        self.stocks.insert(key.file_id, Kept { sha256: key.sha256, stock: Arc::new(stock) });
    }

    /// Forgets a file.
    pub(in crate::variant) fn remove_file(&self, file_id: FileId) {
        self.stocks.remove(&file_id);
    }

    /// Forgets everything.
    pub(in crate::variant) fn clear(&self) {
        self.stocks.clear();
    }

    /// The bytes held.
    pub(in crate::variant) fn bytes(&self) -> u64 {
        self.stocks.weight()
    }
}
