//! Providers, as an administrator sees them.

use serde::{Deserialize, Serialize};

use crate::api::vocabulary::{BreakerState, CheckOutcome, StorageLocation};

/// A provider as an administrator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AdminProvider {
    /// Code of the provider, such as `LOCAL`.
    pub provider_code: String,
    /// Name of the provider, for people.
    pub provider_name: String,
    /// Side that serves the files of this provider.
    pub storage_location: StorageLocation,
    /// True if the provider takes new files.
    pub is_active: bool,
    /// Kind of service: `s3`, `azblob`, `gcs`, `fs` or `memory`; `local` for the server's own disk.
    pub scheme: String,
    /// True if that kind of service is part of the project's tests.
    pub is_tested: bool,
    /// True if the provider is in the configuration. Others are listed while work waits for them.
    #[serde(default = "yes")]
    pub is_configured: bool,
    /// State of the breaker that is worse off, of the one for writes and the one for reads; null where
    /// there is none.
    #[serde(default)]
    pub state: Option<BreakerState>,
    /// Time since which the state holds.
    #[serde(default)]
    pub state_since: Option<String>,
    /// Last error since the start, in one line without secrets; also after the provider has answered
    /// again.
    #[serde(default)]
    pub last_error: Option<String>,
    /// Time of the last error.
    #[serde(default)]
    pub last_error_at: Option<String>,
    /// Work that waits for the provider.
    #[serde(default)]
    pub backlog: ProviderBacklog,
}

fn yes() -> bool {
    true
}

/// The work that waits for a provider, what failed and is to be attempted again included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ProviderBacklog {
    /// Number of files that are to be copied to the provider.
    pub sync: u64,
    /// Number of deleted files whose bytes the provider holds.
    pub purge: u64,
    /// Number of replaced blobs that the provider holds.
    pub dropped: u64,
    /// Age of the oldest of them in seconds; null if nothing waits.
    pub oldest_secs: Option<u64>,
}

/// The result of trying a provider out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProviderCheckReport {
    /// Code of the provider.
    pub provider_code: String,
    /// True if files can be kept at the provider.
    pub can_serve: bool,
    /// Steps of the check, in order.
    pub steps: Vec<ProviderCheckStep>,
}

/// One step of a provider check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ProviderCheckStep {
    /// Name of the step: `write`, `read`, `range`, `presign` and so on.
    pub name: String,
    /// End of the step.
    pub outcome: CheckOutcome,
    /// Observation in one line, fit to be shown.
    pub detail: String,
}
