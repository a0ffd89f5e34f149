//! Decoded pictures in memory, reduced, so that a gallery that asks for a second size of a
//! photograph does not decode it again.
//!
//! # Purpose
//! Keyed by file and checked by digest: pixels of a replaced blob are never used, and go with the
//! file's variants.
//!
//! # Locking
//! The cache's own.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::weighed::weighed;
use crate::domain::id::{FileId, Sha256};
use crate::variant::VariantKey;
use crate::variant::pipeline::retained::Retained;

/// The weight of an entry besides its pixels, in bytes.
const ENTRY_BYTES: u64 = 512;
/// The part of the whole that one picture may take: one in so many.
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
    /// Makes a cache of at most `capacity_bytes`; 0 holds nothing.
    pub(super) fn new(capacity_bytes: u64) -> Self {
        Self { files: weighed(capacity_bytes, ByBytes), capacity_bytes }
    }

    /// Returns the most bytes that one picture may take.
    pub(super) fn max_bytes(&self) -> u64 {
        (self.capacity_bytes / SHARE).saturating_sub(ENTRY_BYTES)
    }

    /// Returns the pixels retained of the key's blob.
    pub(super) fn get(&self, key: &VariantKey) -> Option<Arc<Retained>> {
        let entry = self.files.get(&key.file_id)?;
        (entry.sha256 == key.sha256).then_some(entry.retained)
    }

    /// Retains pixels of the key's blob, perhaps at the cost of others.
    pub(super) fn insert(&self, key: &VariantKey, retained: Retained) {
        let entry = Entry { sha256: key.sha256, retained: Arc::new(retained) };
        self.files.insert(key.file_id, entry);
    }

    /// Forgets the pixels of a file.
    pub(super) fn remove_file(&self, file_id: FileId) {
        self.files.remove(&file_id);
    }

    /// Forgets the pixels of all files.
    pub(super) fn clear(&self) {
        self.files.clear();
    }

    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.files.weight()
    }
}
