//! The health checks on the wire.

use serde::{Deserialize, Serialize};

use super::admin::{FsckSummary, ProviderBacklog};
use super::vocabulary::BreakerState;

/// The reply to GET `/health-checks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct HealthReply {
    /// Sentence for people: the process answers.
    pub message: String,
}

impl HealthReply {
    /// Makes the reply with its sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// The reply to GET `/health-checks/ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReadyReply {
    /// Verdict for people: `ready` or `not ready`.
    pub message: String,
    /// State of the database: `ok`, or the reason why it cannot be used.
    pub database: String,
    /// State of the storage: `ok`, or the reason why it cannot be used.
    pub storage: String,
    /// Providers of location CLOUD. One that does not answer makes nothing unready: other files are
    /// served, and its own wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ReadyProvider>,
    /// Last scrub of the background, for callers who may see all organizations. It makes nothing unready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<FsckSummary>,
}

/// A provider, as readiness shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReadyProvider {
    /// Code of the provider.
    pub provider_code: String,
    /// State of the breaker that is worse off; null if the provider is gone from the configuration.
    #[serde(default)]
    pub state: Option<BreakerState>,
    /// Last error since the start, in one line without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Work that waits for the provider.
    #[serde(default)]
    pub backlog: ProviderBacklog,
}

impl ReadyProvider {
    /// Leaves out what strangers need not know: the last error, and the work that waits.
    #[must_use]
    pub fn without_details(self) -> Self {
        Self { last_error: None, backlog: ProviderBacklog::default(), ..self }
    }
}

impl ReadyReply {
    /// Makes the reply from the verdict and the state of both parts.
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
