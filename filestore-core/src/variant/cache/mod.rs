//! What has been made, kept: the hottest in memory, the rest on disk.

mod disk;
mod memory;

pub(super) use disk::{DiskCache, Recipe};
pub(super) use memory::MemoryCache;

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
    /// Entries this call removed from disk and memory (prune only).
    pub removed: u64,
}
