//! Sync runs and the sync queue.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::WorkFailure;

/// The result of a sync run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SyncReport {
    /// Files that had nowhere to go, or were there already: PENDING became NONE.
    pub settled: u64,
    /// Files copied to their provider: SYNCED.
    #[serde(default)]
    pub synced: u64,
    /// Bytes of the files that were copied.
    #[serde(default)]
    pub synced_bytes: u64,
    /// Files that still wait: for another run, for the pause after a failed attempt, or for a
    /// provider that takes no files.
    #[serde(default)]
    pub waiting: u64,
    /// Files that wait for a provider that does not answer, or is not configured, by its code.
    #[serde(default)]
    pub postponed: BTreeMap<String, u64>,
    /// Files that could not be copied; attempted again later, unless they are FAILED now.
    #[serde(default)]
    pub failed: u64,
    /// The first of these, 100 at most.
    pub failures: Vec<WorkFailure>,
}

/// The body of POST `/admin/sync/enqueue` and `/admin/sync/retry`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SyncQueueRequest {
    /// Number of the organization; absent for all organizations (retry only).
    #[serde(rename = "organizationId", skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<i64>,
}

impl SyncQueueRequest {
    /// Names one organization, or all of them.
    pub fn new(organization_id: impl Into<Option<i64>>) -> Self {
        Self { organization_id: organization_id.into() }
    }
}

/// The result of queueing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SyncQueueReport {
    /// Files that are PENDING now.
    pub queued: u64,
}

impl SyncQueueReport {
    /// Reports that many files as queued.
    pub fn new(queued: u64) -> Self {
        Self { queued }
    }
}

/// The numbers of files in each sync status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SyncStatusReport {
    /// Files with nothing to do.
    pub none: u64,
    /// Files that wait for the sync worker.
    pub pending: u64,
    /// Files that are being copied.
    pub syncing: u64,
    /// Files that are at their provider.
    pub synced: u64,
    /// Files whose last attempt failed.
    pub failed: u64,
    /// Files moved to or between providers since the server started.
    #[serde(default)]
    pub files_moved: u64,
    /// Bytes read for such moves since the server started, failed ones included.
    #[serde(default)]
    pub bytes_copied: u64,
}
