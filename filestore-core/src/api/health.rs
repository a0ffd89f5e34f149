//! The health checks on the wire.

use serde::{Deserialize, Serialize};

/// The reply to GET `/health-checks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[non_exhaustive]
pub struct ReadyReply {
    /// Verdict for people: `ready` or `not ready`.
    pub message: String,
    /// State of the database: `ok`, or the reason why it cannot be used.
    pub database: String,
    /// State of the storage: `ok`, or the reason why it cannot be used.
    pub storage: String,
}

impl ReadyReply {
    /// Makes the reply from the verdict and the state of both parts.
    pub fn new(
        message: impl Into<String>,
        database: impl Into<String>,
        storage: impl Into<String>,
    ) -> Self {
        Self { message: message.into(), database: database.into(), storage: storage.into() }
    }
}
