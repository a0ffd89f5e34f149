//! Usage on the wire.

use serde::{Deserialize, Serialize};

/// The reply to GET `/organizations/{organization_id}/usage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UsageReply {
    /// Organization that stores the files.
    pub organization_id: String,
    /// Number of files, temporary and deleted ones included until they are gone.
    pub files: u64,
    /// Size of these files, in bytes.
    pub bytes: u64,
    /// The same, by the side that holds the bytes.
    pub by_location: UsageByLocation,
    /// Most files that the organization may store; null for no limit.
    pub quota_files: Option<u64>,
    /// Most bytes that the organization may store; null for no limit.
    pub quota_bytes: Option<u64>,
}

/// Files and bytes by the side that holds them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub struct UsageByLocation {
    /// Part on the service's own disk.
    pub local: UsageAt,
    /// Part at providers.
    pub cloud: UsageAt,
}

/// Files and bytes at one location.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UsageAt {
    /// Number of files.
    pub files: u64,
    /// Size of these files, in bytes.
    pub bytes: u64,
}
