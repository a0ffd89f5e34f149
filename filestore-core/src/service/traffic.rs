//! What has been copied to and between providers since the store was opened.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters, for whoever watches a run from outside.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Traffic {
    /// Some bytes were read for a copy.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A file was moved.
    pub(crate) fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// Files moved, and bytes read for copies.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}
