//! Providers, as an administrator sees them.

use serde::{Deserialize, Serialize};

use crate::api::vocabulary::{CheckOutcome, StorageLocation};

/// A provider as an administrator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// The result of trying a provider out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[non_exhaustive]
pub struct ProviderCheckStep {
    /// Name of the step: `write`, `read`, `range`, `presign` and so on.
    pub name: String,
    /// End of the step.
    pub outcome: CheckOutcome,
    /// Observation in one line, fit to be shown.
    pub detail: String,
}
