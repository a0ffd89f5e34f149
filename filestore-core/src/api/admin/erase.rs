//! The erasure of an organization.

use serde::{Deserialize, Serialize};

/// The body of POST `/admin/organizations/{organizationId}/erase`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EraseRequest {
    /// Organization once more: nothing is erased by a path alone.
    pub confirm: String,
}

impl EraseRequest {
    /// Confirms the erasure of an organization.
    pub fn new(organization: impl Into<String>) -> Self {
        Self { confirm: organization.into() }
    }
}

/// The receipt of an erasure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct EraseReceipt {
    /// Organization that was erased.
    pub organization_id: String,
    /// Id of the store that it was erased from.
    pub store_id: String,
    /// Time at which the first run of the erasure began.
    pub started_at: String,
    /// Time of this receipt.
    pub ended_at: String,
    /// True if every place was looked at and nothing of the organization found. Else another run goes on.
    pub complete: bool,
    /// Files removed, with their variants.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Bindings removed.
    pub bindings: u64,
    /// Remembered replies removed.
    pub replies: u64,
    /// Ids of keys that named this organization only, and are revoked.
    pub keys_revoked: Vec<String>,
    /// Ids of keys that named others too, and do not reach this organization any more.
    pub keys_narrowed: Vec<String>,
    /// Places that were looked at.
    pub places: Vec<ErasedPlace>,
}

/// A place that an erasure has looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ErasedPlace {
    /// Code of a holder, or `database`, `keys`, `quarantine`.
    pub place: String,
    /// True if nothing of the organization is there.
    pub absent: bool,
    /// Description of what is there, or the reason why the place could not be looked at; empty if nothing is
    /// there.
    pub detail: String,
}
