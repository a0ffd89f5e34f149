//! A cache of small blobs in memory.
//!
//! # Purpose
//! The cache answers the most requested small files without a system call. Opening, reading and closing a
//! file costs a large part of a small reply, even if the kernel has the file in memory.
//!
//! The key is the blob's id. A blob is written once and its id is never reused, so an entry cannot be stale.
//! A replaced file has another blob. When a blob's names are removed, the cache forgets it. A concurrent read
//! can add it again. No record then refers to it, and it stays until other blobs need its space.
//!
//! # Locking
//! The cache's own shards.

use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::domain::id::BlobId;

/// The size of the largest blob in the cache.
const LARGEST_BYTES: u64 = 64 << 10;
/// The weight of an entry in addition to its bytes.
const ENTRY_BYTES: u64 = 128;
/// The minimum weight of a shard, in bytes. Smaller shards would contain too few blobs.
const SHARD_BYTES: u64 = 4 << 20;

/// The blobs in memory.
pub(in crate::storage::local) struct InMemory {
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
    /// Creates a cache of at most `capacity_bytes`. 0 disables the cache.
    pub(in crate::storage::local) fn new(capacity_bytes: u64) -> Self {
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

    /// Returns the whole blob, if it is in the cache.
    pub(in crate::storage::local) fn get(&self, id: BlobId, size_bytes: u64) -> Option<Bytes> {
        if size_bytes > LARGEST_BYTES {
            return None;
        }
        self.blobs.get(&id).filter(|bytes| bytes.len() as u64 == size_bytes)
    }

    /// Adds the whole blob if it is small. The new blob can displace other blobs.
    pub(in crate::storage::local) fn insert(&self, id: BlobId, bytes: &Bytes) {
        if bytes.len() as u64 <= LARGEST_BYTES {
            self.blobs.insert(id, bytes.clone());
        }
    }

    /// Removes the blob.
    pub(in crate::storage::local) fn forget(&self, id: BlobId) {
        self.blobs.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::clock::Timestamp;

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
