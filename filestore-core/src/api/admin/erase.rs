//! The erasure of an organization, in JSON.

use serde::{Deserialize, Serialize};

/// The body for POST `/admin/organizations/{organizationId}/erase`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EraseRequest {
    /// The organization id again, as in the path. This protects against a wrong path.
    pub confirm: String,
}

impl EraseRequest {
    /// Confirms an organization's erasure.
    pub fn new(organization: impl Into<String>) -> Self {
        Self { confirm: organization.into() }
    }
}

/// An erasure receipt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct EraseReceipt {
    /// Erased organization.
    pub organization_id: String,
    /// Store id.
    pub store_id: String,
    /// First run's start time, in RFC 3339 (UTC, milliseconds), for example
    /// `2026-11-21T08:15:30.123Z`.
    pub started_at: String,
    /// Receipt time.
    pub ended_at: String,
    /// True if filestore checked every place and found no data of the organization. If false, run
    /// the erasure again.
    pub complete: bool,
    /// Removed files. Their variants are removed too.
    pub files: u64,
    /// Their total size, in bytes.
    pub bytes: u64,
    /// Removed bindings.
    pub bindings: u64,
    /// Removed replies (of idempotency keys).
    pub replies: u64,
    /// Revoked key ids: keys for this organization only.
    pub keys_revoked: Vec<String>,
    /// Key ids that lost this organization and keep other organizations.
    pub keys_narrowed: Vec<String>,
    /// Checked places.
    pub places: Vec<ErasedPlace>,
    /// Places that can still return data, although the erasure is complete.
    pub may_return: Vec<MayReturn>,
}

/// A place that can still return an erased organization's data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct MayReturn {
    /// `shared caches`, `presigned URLs`, a place from `places`, or `backup` and a destination.
    pub place: String,
    /// Time from which the place returns no data. Null if no time limit exists.
    pub until: Option<String>,
    /// The reason, and how to end it.
    pub detail: String,
}

/// A place that an erasure has checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ErasedPlace {
    /// Provider code, or `LOCAL`, `database`, `keys`, `quarantine`.
    pub place: String,
    /// True if the place contains no data of the organization.
    pub absent: bool,
    /// Remaining data, or the reason why the check failed. Empty if `absent` is true.
    pub detail: String,
}
