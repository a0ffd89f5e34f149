//! Variants in memory, with one entry for all variants of a file.
//!
//! # Purpose
//! The cache answers frequent requests without touching the disk. The key is the file, because a replaced or
//! purged file loses all its variants in one step, and a file has few variants.
//!
//! # Locking
//! Look-ups use the cache's own shards. One mutex protects insertions, which read, extend and write back.

use std::fs::File;
use std::sync::Arc;

use parking_lot::Mutex;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::memory_files::{FilePlace, MemoryFiles};
use crate::domain::id::FileId;
use crate::variant::{Variant, VariantKey};

/// The weight of an entry in addition to its bytes.
const ENTRY_BYTES: u64 = 256;
/// The minimum weight of a shard, in bytes. Smaller shards could not hold a file's variants.
const SHARD_BYTES: u64 = 16 << 20;

type Variants = Arc<[Held]>;

/// One variant.
#[derive(Clone)]
struct Held {
    key: VariantKey,
    variant: Variant,
    place: Arc<FilePlace>,
}

/// The variants in memory.
pub(super) struct MemoryCache {
    files: Cache<FileId, Variants, ByBytes>,
    inserting: Mutex<()>,
    sendable: MemoryFiles,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<FileId, Variants> for ByBytes {
    fn weight(&self, _: &FileId, variants: &Variants) -> u64 {
        variants.iter().map(|held| ENTRY_BYTES + body_bytes(&held.variant)).sum()
    }
}

fn body_bytes(variant: &Variant) -> u64 {
    match variant {
        Variant::PassThrough { .. } => 0,
        Variant::WebP(bytes) => bytes.len() as u64,
    }
}

impl MemoryCache {
    /// Creates a cache of at most `capacity_bytes`. 0 disables the cache.
    pub(super) fn new(capacity_bytes: u64) -> Self {
        let shards = usize::try_from(capacity_bytes / SHARD_BYTES).unwrap_or(1).clamp(1, 16);
        let options = OptionsBuilder::new()
            .weight_capacity(capacity_bytes)
            .estimated_items_capacity(
                usize::try_from(capacity_bytes / (16 << 10)).unwrap_or(0).max(32),
            )
            .shards(shards)
            .build()
            .expect("the two required options are set");

        let files = Cache::with_options(
            options,
            ByBytes,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        );
        Self { files, inserting: Mutex::new(()), sendable: MemoryFiles::new() }
    }

    /// Returns the variant if it is in the cache.
    pub(super) fn get(&self, key: &VariantKey) -> Option<Variant> {
        let variants = self.files.get(&key.file_id)?;
        variants.iter().find(|held| held.key == *key).map(|held| held.variant.clone())
    }

    /// Returns a file with the variant and its length, if the variant is in the cache and requested often.
    pub(super) fn file(&self, key: &VariantKey) -> Option<(Arc<File>, u64)> {
        let variants = self.files.get(&key.file_id)?;
        let held = variants.iter().find(|held| held.key == *key)?;
        match &held.variant {
            Variant::WebP(bytes) => Some((held.place.file(bytes)?, bytes.len() as u64)),
            Variant::PassThrough { .. } => None,
        }
    }

    /// Adds the variant. The new variant can displace other variants.
    pub(super) fn insert(&self, key: &VariantKey, variant: &Variant) {
        let _inserting = self.inserting.lock();
        let held = self.files.peek(&key.file_id);
        let others =
            held.iter().flat_map(|held| held.iter()).filter(|other| other.key != *key).cloned();

        let place = Arc::new(self.sendable.place());
        let new = Held { key: key.clone(), variant: variant.clone(), place };
        let variants = others.chain([new]).collect();
        self.files.insert(key.file_id, variants);
    }

    /// Removes this variant.
    pub(super) fn remove(&self, key: &VariantKey) {
        let _inserting = self.inserting.lock();
        let Some(held) = self.files.peek(&key.file_id) else { return };
        let others: Variants = held.iter().filter(|other| other.key != *key).cloned().collect();
        if others.is_empty() {
            self.files.remove(&key.file_id);
        } else {
            self.files.insert(key.file_id, others);
        }
    }

    /// Removes all variants of a file.
    pub(super) fn remove_file(&self, file_id: FileId) {
        let _inserting = self.inserting.lock();
        self.files.remove(&file_id);
    }

    /// Removes everything. Returns the number of variants.
    pub(super) fn clear(&self) -> u64 {
        let _inserting = self.inserting.lock();
        let (entries, _) = self.size();
        self.files.clear();
        entries
    }

    /// Returns the number of variants and their bytes.
    pub(super) fn size(&self) -> (u64, u64) {
        self.files.iter().fold((0, 0), |(entries, bytes), (_, variants)| {
            let held: u64 = variants.iter().map(|held| body_bytes(&held.variant)).sum();
            (entries + variants.len() as u64, bytes + held)
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::variant::fixtures::{file_id, key};

    fn webp(bytes: usize) -> Variant {
        Variant::WebP(Bytes::from(vec![7; bytes]))
    }

    #[test]
    fn the_variants_of_a_file_go_together() {
        let cache = MemoryCache::new(1 << 20);
        let (one, other) = (file_id(), file_id());
        for size in ["200", "400"] {
            cache.insert(&key(one, size), &webp(10));
            cache.insert(&key(other, size), &webp(20));
        }
        assert_eq!(cache.size(), (4, 60));
        cache.remove_file(one);
        assert_eq!(cache.get(&key(one, "200")), None);
        assert_eq!(cache.get(&key(other, "400")), Some(webp(20)));
        cache.remove(&key(other, "400"));
        assert_eq!(cache.size(), (1, 20));
        assert_eq!((cache.clear(), cache.size()), (1, (0, 0)));
    }

    #[test]
    fn the_capacity_is_kept() {
        let cache = MemoryCache::new(100 << 10);
        for _ in 0..100 {
            cache.insert(&key(file_id(), "200"), &webp(10 << 10));
        }
        let (entries, bytes) = cache.size();
        assert!(entries > 0 && bytes <= 100 << 10, "{entries} entries, {bytes} bytes");
    }
}
