//! Small blobs in memory.
//!
//! # Purpose
//! Answers the hottest small files without a call of the kernel: what opening, reading and closing a
//! file costs, even one that the kernel has in memory, is a good part of a small reply.
//!
//! Keyed by the blob's id. A blob is written once and an id is never used again, so an entry cannot be
//! stale: a replaced file has another blob. A removed blob is forgotten when its names are gone; a
//! read that was under way may put it back, where no record leads to it, until others take its room.
//!
//! # Locking
//! The cache's own shards.

use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::domain::id::BlobId;

/// The largest blob that is kept.
const LARGEST_BYTES: u64 = 64 << 10;
/// The weight of an entry besides its bytes.
const ENTRY_BYTES: u64 = 128;
/// The weight below which a shard would hold too few blobs, in bytes.
const SHARD_BYTES: u64 = 4 << 20;

/// The blobs in memory.
pub(super) struct InMemory {
    blobs: Cache<BlobId, Bytes, ByBytes>,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<BlobId, Bytes> for ByBytes {
    fn weight(&self, _: &BlobId, bytes: &Bytes) -> u64 {
        ENTRY_BYTES + bytes.len() as u64
    }
}

impl InMemory {
    /// Makes a cache of at most `capacity_bytes`; 0 holds nothing.
    pub(super) fn new(capacity_bytes: u64) -> Self {
        let shards = usize::try_from(capacity_bytes / SHARD_BYTES).unwrap_or(1).clamp(1, 16);
        let items = usize::try_from(capacity_bytes / (16 << 10)).unwrap_or(0).max(32);
        let options = OptionsBuilder::new()
            .weight_capacity(capacity_bytes)
            .estimated_items_capacity(items)
            .shards(shards)
            .build()
            .expect("the two required options are set");

        let blobs = Cache::with_options(
            options,
            ByBytes,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        );
        Self { blobs }
    }

    /// Returns the whole blob, if it is here.
    pub(super) fn get(&self, id: BlobId, size_bytes: u64) -> Option<Bytes> {
        if size_bytes > LARGEST_BYTES {
            return None;
        }
        self.blobs.get(&id).filter(|bytes| bytes.len() as u64 == size_bytes)
    }

    /// Keeps the whole blob, if it is small, perhaps at the cost of others.
    pub(super) fn insert(&self, id: BlobId, bytes: &Bytes) {
        if bytes.len() as u64 <= LARGEST_BYTES {
            self.blobs.insert(id, bytes.clone());
        }
    }

    /// Forgets the blob.
    pub(super) fn forget(&self, id: BlobId) {
        self.blobs.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::Timestamp;

    fn id() -> BlobId {
        BlobId::generate(Timestamp::now())
    }

    #[test]
    fn small_blobs_are_kept_within_the_capacity() {
        let cache = InMemory::new(100 << 10);
        let ids: Vec<_> = (0..100).map(|_| id()).collect();
        for id in &ids {
            cache.insert(*id, &Bytes::from(vec![7; 10 << 10]));
        }

        let held = ids.iter().filter(|id| cache.get(**id, 10 << 10).is_some()).count();
        assert!((1..=10).contains(&held), "{held} of 10 KiB in 100 KiB");
    }

    #[test]
    fn large_ones_and_other_lengths_are_not_here() {
        let cache = InMemory::new(1 << 20);
        let (large, small) = (id(), id());
        cache.insert(large, &Bytes::from(vec![7; (64 << 10) + 1]));
        cache.insert(small, &Bytes::from_static(b"12345"));
        assert_eq!(cache.get(large, (64 << 10) + 1), None);
        assert_eq!(cache.get(small, 4), None);
        assert_eq!(cache.get(small, 5).unwrap(), "12345");

        cache.forget(small);
        assert_eq!(cache.get(small, 5), None);
    }

    #[test]
    fn no_capacity_holds_nothing() {
        let (cache, id) = (InMemory::new(0), id());
        cache.insert(id, &Bytes::from_static(b"1"));
        assert_eq!(cache.get(id, 1), None);
    }
}
