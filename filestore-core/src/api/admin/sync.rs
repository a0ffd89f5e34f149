//! Sync runs and the sync queue, in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::WorkFailure;
use crate::api::id::OrganizationNumber;

/// The sync run result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SyncReport {
    /// Files without work: their status changed from `PENDING` to `NONE`.
    pub settled: u64,
    /// Files copied to their provider (`SYNCED`).
    #[serde(default)]
    pub synced: u64,
    /// Their total size, in bytes.
    #[serde(default)]
    pub synced_bytes: u64,
    /// Files that still wait: for another run, for the pause after a failure, or for a
    /// provider that accepts no files.
    #[serde(default)]
    pub waiting: u64,
    /// Files that wait for a provider, by its code. The provider does not answer or is
    /// not configured.
    #[serde(default)]
    pub postponed: BTreeMap<String, u64>,
    /// Files that could not be copied. A later run retries, except for `FAILED` files.
    #[serde(default)]
    pub failed: u64,
    /// The first failures, at most 100.
    pub failures: Vec<WorkFailure>,
}

/// The body for POST `/admin/sync/enqueue` and `/admin/sync/retry`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SyncQueueRequest {
    /// Organization number. If absent, all organizations (only for retry).
    #[serde(rename = "organizationId", skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<OrganizationNumber>,
}

impl SyncQueueRequest {
    /// Names one organization. `None` means all.
    pub fn new(organization_id: impl Into<Option<OrganizationNumber>>) -> Self {
        Self { organization_id: organization_id.into() }
    }
}

/// The result of `sync enqueue` and `sync retry`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SyncQueueReport {
    /// Files that are now `PENDING`.
    pub queued: u64,
}

impl SyncQueueReport {
    /// Reports the number of queued files.
    pub fn new(queued: u64) -> Self {
        Self { queued }
    }
}

/// The sync queue of one organization. Deleted files do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OrganizationSyncStatus {
    /// Organization number.
    #[serde(rename = "organizationId")]
    pub organization_id: OrganizationNumber,
    /// Files that wait for the sync worker.
    pub pending: u64,
    /// Files that the sync worker is copying.
    pub syncing: u64,
    /// Files with no attempts left.
    pub failed: u64,
    /// All other files (`NONE` and `SYNCED`): they are where they stay.
    pub done: u64,
}

/// The number of files in each sync status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SyncStatusReport {
    /// Files without work.
    pub none: u64,
    /// Files that wait for the sync worker.
    pub pending: u64,
    /// Files that the sync worker is copying.
    pub syncing: u64,
    /// Files at their provider.
    pub synced: u64,
    /// Files with no attempts left.
    pub failed: u64,
    /// Files moved to or between providers since startup.
    #[serde(default)]
    pub files_moved: u64,
    /// Bytes read for these moves since startup, with failed moves.
    #[serde(default)]
    pub bytes_copied: u64,
}
