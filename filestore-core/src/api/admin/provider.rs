//! Providers in JSON, with the details for an administrator.

use serde::{Deserialize, Serialize};

use crate::api::vocabulary::{BreakerState, CheckOutcome, StorageLocation};

/// A provider, with the details for an administrator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AdminProvider {
    /// Provider code, for example `LOCAL` or `s3-eu`.
    pub provider_code: String,
    /// The provider's display name.
    pub provider_name: String,
    /// The provider's location: `LOCAL` or `CLOUD`.
    pub storage_location: StorageLocation,
    /// True if the provider accepts new files.
    pub is_active: bool,
    /// Service kind: `s3`, `azblob`, `gcs`, `fs` or `memory`. `local` for the disk of the
    /// server.
    pub scheme: String,
    /// True if filestore's tests cover this service kind.
    pub is_tested: bool,
    /// True if the provider is in the configuration. If false, some work still waits for it.
    #[serde(default = "yes")]
    pub is_configured: bool,
    /// The worse breaker state: of reads or of writes. Null if the provider has no breaker.
    #[serde(default)]
    pub state: Option<BreakerState>,
    /// This state's start time, in RFC 3339 (UTC, milliseconds).
    #[serde(default)]
    pub state_since: Option<String>,
    /// Last error since startup, in one line without secrets. Stays after the provider answers
    /// again.
    #[serde(default)]
    pub last_error: Option<String>,
    /// Last error time, in RFC 3339.
    #[serde(default)]
    pub last_error_at: Option<String>,
    /// Work that waits for the provider.
    #[serde(default)]
    pub backlog: ProviderBacklog,
}

fn yes() -> bool {
    true
}

/// Work that waits for a provider, with failed work that will be retried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ProviderBacklog {
    /// Files to copy to the provider.
    pub sync: u64,
    /// Deleted files with bytes at the provider.
    pub purge: u64,
    /// Replaced blobs at the provider.
    pub dropped: u64,
    /// The oldest job's age, in seconds. Null if no work waits.
    pub oldest_secs: Option<u64>,
}

/// The `provider check` result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProviderCheckReport {
    /// Provider code.
    pub provider_code: String,
    /// True if the provider can store files.
    pub can_serve: bool,
    /// Check steps, in order.
    pub steps: Vec<ProviderCheckStep>,
}

/// One provider check step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProviderCheckStep {
    /// Step name, for example `write`, `read`, `range` or `presign`.
    pub name: String,
    /// Step result.
    pub outcome: CheckOutcome,
    /// Explanation for people, in one line.
    pub detail: String,
}
