//! Counts the sources of served variants.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A counter that every request can increment.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn bump(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The sources of the variants served since the start.
#[derive(Debug, Default)]
pub(super) struct Served {
    pub(super) from_memory: Counter,
    pub(super) from_disk: Counter,
    pub(super) made: Counter,
    pub(super) failed: Counter,
}
