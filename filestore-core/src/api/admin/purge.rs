//! Purge runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::WorkFailure;
use crate::api::vocabulary::DryRun;

/// The body of POST `/admin/purge/run`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PurgeRunRequest {
    /// True to count only what would be purged.
    pub dry_run: bool,
}

impl PurgeRunRequest {
    /// Asks for a run, or for its figures only.
    pub fn new(dry_run: DryRun) -> Self {
        Self { dry_run: dry_run == DryRun::Yes }
    }
}

/// The result of a purge run, or of a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PurgeReport {
    /// True if nothing was touched.
    pub dry_run: bool,
    /// TEMP files that had expired and were marked for purge.
    pub expired: u64,
    /// Records removed (dry run: due to be removed).
    pub purged: u64,
    /// Bytes of the files whose records were removed.
    pub purged_bytes: u64,
    /// Dropped blobs removed: bytes that no record refers to any more (dry run: due to be removed).
    pub blobs_removed: u64,
    /// Blobs removed, files' and dropped ones, by the code of the provider that held them.
    #[serde(default)]
    pub removed_at: BTreeMap<String, u64>,
    /// Deleted files that are still within their grace period.
    pub waiting: u64,
    /// Files and blobs that are due and were left to later, by the code of the provider that holds
    /// them: one that does not answer, or is not configured.
    #[serde(default)]
    pub postponed: BTreeMap<String, u64>,
    /// True if nothing is removed now because the wall clock leapt forward and is not trusted yet.
    #[serde(default)]
    pub is_paused: bool,
    /// Files that could not be removed; a later run attempts them again.
    #[serde(default)]
    pub failed: u64,
    /// The first of these, 100 at most.
    pub failures: Vec<WorkFailure>,
}
