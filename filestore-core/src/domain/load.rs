//! The load of a store at one moment: its queues, caches and counters, for observers that ask often.

use super::clock::Timestamp;
use super::fsck::FsckSummary;
use super::overview::{DiskSpace, Unfinished};

/// The load of a store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Load {
    /// The instant that the numbers are of.
    pub at: Timestamp,
    /// The instant at which the store was opened; counters count from there.
    pub opened_at: Timestamp,
    /// The disk of the data directory; `None` if it cannot be looked at.
    pub disk: Option<DiskSpace>,
    /// Files that are staged without a commit.
    pub unfinished: Unfinished,
    /// The changes that wait for the database's writer.
    pub writes: QueueLoad,
    /// The variants and their caches.
    pub variants: VariantLoad,
    /// Files that were copied to or between providers.
    pub copied_files: u64,
    /// Bytes that were read for such copies.
    pub copied_bytes: u64,
    /// Stored rows that were found damaged.
    pub damaged_rows: u64,
    /// Files that were found without their bytes.
    pub missing_blobs: u64,
    /// The last scrub of the background, if there was one.
    pub scrub: Option<FsckSummary>,
}

/// A queue of bounded length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueLoad {
    /// Entries that wait in the queue.
    pub waiting: u64,
    /// The most that may wait.
    pub max: u64,
}

impl QueueLoad {
    pub(crate) fn new(waiting: usize, max: usize) -> Self {
        Self { waiting: waiting as u64, max: max as u64 }
    }
}

/// The work of making variants, and the caches of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariantLoad {
    /// The tasks that wait for a thread.
    pub tasks: QueueLoad,
    /// The threads that work.
    pub busy_threads: u64,
    /// The threads.
    pub threads: u64,
    /// Variants that were found in memory.
    pub from_memory: u64,
    /// Variants that were found on the disk.
    pub from_disk: u64,
    /// Variants that were made.
    pub made: u64,
    /// Variants that could not be made, or were refused because too many wait.
    pub failed: u64,
    /// Entries of the disk cache, as far as they were counted.
    pub disk_entries: u64,
    /// Bytes of the disk cache, as far as they were counted.
    pub disk_bytes: u64,
    /// Entries of the memory cache.
    pub memory_entries: u64,
    /// Bytes of the memory cache.
    pub memory_bytes: u64,
    /// Bytes of decoded pictures retained for further sizes.
    pub retained_bytes: u64,
    /// Files whose variants wait to be made in advance.
    pub eager_waiting: u64,
}
