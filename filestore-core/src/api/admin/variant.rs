//! The variant cache, in JSON.

use serde::{Deserialize, Serialize};

/// The size of the variant cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct VariantCacheReport {
    /// Variants on disk.
    pub disk_entries: u64,
    /// Total size of the variants on disk, in bytes.
    pub disk_bytes: u64,
    /// Variants in memory.
    pub memory_entries: u64,
    /// Total size of the variants in memory, in bytes.
    pub memory_bytes: u64,
    /// Size of decoded pictures in memory, in bytes. filestore keeps them for further sizes.
    #[serde(default)]
    pub intermediate_bytes: u64,
    /// Files that wait for variants in advance (`variants.eager`).
    #[serde(default)]
    pub eager_waiting: u64,
    /// Variants made in advance since startup.
    #[serde(default)]
    pub eager_made: u64,
    /// Files dropped from the queue since startup, because requests have priority.
    #[serde(default)]
    pub eager_dropped: u64,
    /// Removed variants (only for `prune`).
    pub removed: u64,
}
