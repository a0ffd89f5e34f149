//! Counts the bytes and files copied to and between providers since the store was opened.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters for observers of a run.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Traffic {
    /// Adds `bytes` that were read for a copy.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a moved file.
    pub(crate) fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the numbers of moved files and of bytes read for copies.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}
