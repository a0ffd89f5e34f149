//! The load of a store at one moment: queues, caches and counters, for monitoring.

use std::time::Duration;

use super::fsck::FsckSummary;
use super::overview::{DiskSpace, Unfinished};
use crate::domain::time::clock::Timestamp;

/// The store's load.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Load {
    /// Time at which the figures were taken.
    pub at: Timestamp,
    /// Time at which the store was opened. Counters begin at 0 then.
    pub opened_at: Timestamp,
    /// The data directory's disk. `None` if its size is unknown.
    pub disk: Option<DiskSpace>,
    /// Staged files without a commit.
    pub unfinished: Unfinished,
    /// Resumable uploads.
    pub resumable: ResumableLoad,
    /// The log of events. `None` while the database does not answer.
    pub events: Option<EventLogLoad>,
    /// Changes that wait for the database writer.
    pub writes: QueueLoad,
    /// Variants and their caches.
    pub variants: VariantLoad,
    /// Files copied to or between providers.
    pub copied_files: u64,
    /// Bytes read for these copies.
    pub copied_bytes: u64,
    /// Damaged rows.
    pub damaged_rows: u64,
    /// Files without their bytes.
    pub missing_blobs: u64,
    /// The last scrub, if there was one.
    pub scrub: Option<FsckSummary>,
}

/// A store's resumable uploads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResumableLoad {
    /// Open uploads on all servers. `None` if the database does not answer.
    pub open: Option<u64>,
    /// Bytes that these uploads hold: announced or received.
    pub open_bytes: Option<u64>,
    /// Resumable uploads to which a request sends bytes now.
    pub transfers: u64,
    /// Uploads that became files.
    pub finished: u64,
    /// Uploads that failed.
    pub failed: u64,
    /// Uploads whose lifetime ended.
    pub expired: u64,
    /// Uploads that a caller cancelled.
    pub cancelled: u64,
}

/// A queue with a maximum length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueLoad {
    /// Waiting entries.
    pub waiting: u64,
    /// Maximum waiting entries.
    pub max: u64,
}

impl QueueLoad {
    pub(crate) fn new(waiting: usize, max: usize) -> Self {
        Self { waiting: waiting as u64, max: max as u64 }
    }
}

/// The log of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventLogLoad {
    /// True if changes write events.
    pub is_on: bool,
    /// Number of events that are kept. With PostgreSQL, changes that failed count as well.
    pub kept: u64,
    /// Time of the oldest event. `None` if there is none.
    pub oldest_at: Option<Timestamp>,
    /// Time of the newest gap, if the log still has its event `log.gap`.
    pub gap_at: Option<Timestamp>,
    /// Number of events that readers cannot see yet, because an earlier write is open. 0 with SQLite.
    pub held_back: u64,
    /// Time for which an open write has held them back.
    pub held_back_for: Duration,
}

/// Variant work and variant caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariantLoad {
    /// Tasks that wait for a thread.
    pub tasks: QueueLoad,
    /// Busy threads.
    pub busy_threads: u64,
    /// All threads.
    pub threads: u64,
    /// Variants from the memory cache.
    pub from_memory: u64,
    /// Variants from the disk cache.
    pub from_disk: u64,
    /// Variants made.
    pub made: u64,
    /// Variants that could not be made, or were refused because the queue was full.
    pub failed: u64,
    /// Entries in the disk cache, as far as counted.
    pub disk_entries: u64,
    /// Bytes in the disk cache, as far as counted.
    pub disk_bytes: u64,
    /// Entries in the memory cache.
    pub memory_entries: u64,
    /// Bytes in the memory cache.
    pub memory_bytes: u64,
    /// Decoded picture bytes in memory, for further sizes.
    pub retained_bytes: u64,
    /// Files that wait for variants in advance.
    pub eager_waiting: u64,
}
