//! Decoded, reduced pictures in memory. If a gallery requests a second size of a photograph, it is not
//! decoded again.
//!
//! # Purpose
//! The key is the file, and each look-up compares the digest. Pixels of a replaced blob are therefore never
//! used, and are removed with the file's variants.
//!
//! # Locking
//! The cache's own.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::weighed::weighed;
use crate::domain::id::{FileId, Sha256};
use crate::variant::VariantKey;
use crate::variant::pictures::Retained;

/// The weight of an entry in addition to its pixels, in bytes.
const ENTRY_BYTES: u64 = 512;
/// The maximum share of one picture: one part in this many.
const SHARE: u64 = 4;

/// The cache of retained pictures.
pub(super) struct RetainedCache {
    files: Cache<FileId, Entry, ByBytes>,
    capacity_bytes: u64,
}

#[derive(Clone)]
struct Entry {
    /// The digest of the blob that was decoded.
    sha256: Sha256,
    retained: Arc<Retained>,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<FileId, Entry> for ByBytes {
    fn weight(&self, _: &FileId, entry: &Entry) -> u64 {
        ENTRY_BYTES + entry.retained.bytes()
    }
}

impl RetainedCache {
    /// Creates a cache of at most `capacity_bytes`. 0 disables the cache.
    pub(super) fn new(capacity_bytes: u64) -> Self {
        Self { files: weighed(capacity_bytes, ByBytes), capacity_bytes }
    }

    /// Returns the maximum size of one picture, in bytes.
    pub(super) fn max_bytes(&self) -> u64 {
        (self.capacity_bytes / SHARE).saturating_sub(ENTRY_BYTES)
    }

    /// Returns the retained pixels of the key's blob.
    pub(super) fn get(&self, key: &VariantKey) -> Option<Arc<Retained>> {
        let entry = self.files.get(&key.file_id)?;
        (entry.sha256 == key.sha256).then_some(entry.retained)
    }

    /// Retains pixels of the key's blob. The new pixels can displace other pixels.
    pub(super) fn insert(&self, key: &VariantKey, retained: Retained) {
        let entry = Entry { sha256: key.sha256, retained: Arc::new(retained) };
        self.files.insert(key.file_id, entry);
    }

    /// Removes a file's pixels.
    pub(super) fn remove_file(&self, file_id: FileId) {
        self.files.remove(&file_id);
    }

    /// Removes the pixels of all files.
    pub(super) fn clear(&self) {
        self.files.clear();
    }

    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.files.weight()
    }
}
