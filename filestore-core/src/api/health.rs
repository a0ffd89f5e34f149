//! Replies of the health checks.

use serde::{Deserialize, Serialize};

use super::admin::{FsckSummary, ProviderBacklog};
use super::vocabulary::BreakerState;

/// The reply to GET `/health-checks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct HealthReply {
    /// A sentence for people, for example `filestore is running`.
    pub message: String,
}

impl HealthReply {
    /// Creates the reply with its sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// The reply to GET `/health-checks/ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReadyReply {
    /// `ready` or `not ready`.
    pub message: String,
    /// `ok`, or the reason why the server cannot use the database.
    pub database: String,
    /// `ok`, or the reason why the server cannot use the storage.
    pub storage: String,
    /// Providers of location `CLOUD`. A provider that does not answer does not change readiness:
    /// the server still serves all other files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ReadyProvider>,
    /// The last scrub. Only for keys with access to all organizations. A finding does not change
    /// readiness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<FsckSummary>,
}

/// The state of a provider in the readiness check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReadyProvider {
    /// Provider code, for example `s3-eu`.
    pub provider_code: String,
    /// The worse breaker state: of reads or of writes. Null if the provider is no longer in the
    /// configuration.
    #[serde(default)]
    pub state: Option<BreakerState>,
    /// Last error since startup, in one line without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Work that waits for the provider.
    #[serde(default)]
    pub backlog: ProviderBacklog,
}

impl ReadyProvider {
    /// Removes the details that are only for operators: the last error and the waiting work.
    #[must_use]
    pub fn without_details(self) -> Self {
        Self { last_error: None, backlog: ProviderBacklog::default(), ..self }
    }
}

impl ReadyReply {
    /// Creates the reply from the verdict and the two states.
    pub fn new(
        message: impl Into<String>,
        database: impl Into<String>,
        storage: impl Into<String>,
    ) -> Self {
        Self {
            message: message.into(),
            database: database.into(),
            storage: storage.into(),
            providers: Vec::new(),
            scrub: None,
        }
    }
}
