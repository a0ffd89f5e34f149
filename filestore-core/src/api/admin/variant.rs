//! The variant cache.

use serde::{Deserialize, Serialize};

/// The contents of the variant cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct VariantCacheReport {
    /// Number of entries on disk.
    pub disk_entries: u64,
    /// Bytes of the entries on disk.
    pub disk_bytes: u64,
    /// Number of entries in memory.
    pub memory_entries: u64,
    /// Bytes of the entries in memory.
    pub memory_bytes: u64,
    /// Bytes of decoded pictures kept in memory for further sizes.
    #[serde(default)]
    pub intermediate_bytes: u64,
    /// Files whose variants wait to be made in advance (`variants.eager`).
    #[serde(default)]
    pub eager_waiting: u64,
    /// Variants made in advance since the server started.
    #[serde(default)]
    pub eager_made: u64,
    /// Files dropped from the queue since the server started, because requests came first.
    #[serde(default)]
    pub eager_dropped: u64,
    /// Entries removed by this call (prune only).
    pub removed: u64,
}
