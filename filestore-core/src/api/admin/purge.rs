//! Purge runs in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::WorkFailure;
use crate::api::vocabulary::DryRun;

/// The body for POST `/admin/purge/run`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PurgeRunRequest {
    /// If true, only count the files to purge.
    pub dry_run: bool,
    /// If true, purge deleted files at once, without their grace period.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
    /// Purge only this organization's files. All if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
}

impl PurgeRunRequest {
    /// Creates a request for a run, or for a dry run.
    pub fn new(dry_run: DryRun) -> Self {
        Self { dry_run: dry_run == DryRun::Yes, ..Self::default() }
    }

    /// Purges deleted files at once, without their grace period.
    #[must_use]
    pub fn now(mut self) -> Self {
        self.now = true;
        self
    }

    /// Purges only files of one organization.
    #[must_use]
    pub fn organization_id(mut self, id: impl Into<String>) -> Self {
        self.organization_id = Some(id.into());
        self
    }
}

/// The purge run result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PurgeReport {
    /// True for a dry run: nothing was changed.
    pub dry_run: bool,
    /// Expired `TEMP` files that were marked as deleted.
    pub expired: u64,
    /// Removed records. In a dry run: records to remove.
    pub purged: u64,
    /// Their total size, in bytes.
    pub purged_bytes: u64,
    /// Removed replaced blobs. In a dry run: blobs to remove.
    pub blobs_removed: u64,
    /// Removed blobs, by the code of their provider. Includes replaced blobs.
    #[serde(default)]
    pub removed_at: BTreeMap<String, u64>,
    /// Deleted files within their grace period.
    pub waiting: u64,
    /// Their total size, in bytes.
    #[serde(default)]
    pub waiting_bytes: u64,
    /// Time at which the first grace period ends, in RFC 3339 (UTC, milliseconds). Null if no file
    /// waits.
    #[serde(default)]
    pub next_due_at: Option<String>,
    /// Files and blobs that wait for a provider, by its code. The provider does not
    /// answer or is not configured.
    #[serde(default)]
    pub postponed: BTreeMap<String, u64>,
    /// True if the purge waits because the clock jumped forward.
    #[serde(default)]
    pub is_paused: bool,
    /// Files that could not be removed. A later run retries.
    #[serde(default)]
    pub failed: u64,
    /// The first failures, at most 100.
    pub failures: Vec<WorkFailure>,
}
