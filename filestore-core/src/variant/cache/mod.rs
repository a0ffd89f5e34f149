//! What has been made, kept: the hottest in memory, the rest on disk.

mod disk;
mod memory;
mod stock;

pub(super) use disk::{DiskCache, Recipe};
pub(super) use memory::MemoryCache;
pub(super) use stock::StockCache;

/// How much the variant cache holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// Entries on disk.
    pub disk_entries: u64,
    /// Their bytes, as the file system counts them.
    pub disk_bytes: u64,
    /// Entries in memory.
    pub memory_entries: u64,
    /// Their bytes.
    pub memory_bytes: u64,
    /// Bytes of decoded pictures kept for further sizes.
    pub intermediate_bytes: u64,
    /// Files whose variants wait to be made in advance.
    pub eager_waiting: u64,
    /// Variants made in advance since the start.
    pub eager_made: u64,
    /// Files given up since the start because requests came first.
    pub eager_dropped: u64,
    /// Entries this call removed from disk and memory (prune only).
    pub removed: u64,
}
