//! Explanations of files in JSON.

use serde::{Deserialize, Serialize};

use super::event::Event;
use super::vocabulary::{PurgeStatus, Status, StorageLocation, SyncStatus};

/// The reply to GET `/files/{fileId}/explain`: where a file is and why, what comes next, which
/// attempts failed, and which events the log has of the file. Times are in RFC 3339 (UTC, milliseconds), for example
/// `2026-11-21T08:15:30.123Z`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct Explanation {
    /// Time of the explanation.
    pub explained_at: String,
    /// File id.
    pub file_id: String,
    /// Organization that owns or owned the file.
    pub organization_id: String,
    /// The stored file. Null if the file is purged.
    pub record: Option<ExplainedRecord>,
    /// Time at which the purge removed the record. Null if the file is not purged.
    pub purged_at: Option<String>,
    /// Places that store bytes of the file, first the place of the current content. For a purged
    /// file, places from which the bytes were removed.
    #[serde(rename = "where")]
    pub place: Vec<ExplainedFact>,
    /// Reasons for the place and the state.
    pub why: Vec<ExplainedFact>,
    /// Next steps: first the step of the file itself, then the removal of replaced content.
    pub next: Vec<ExplainedStep>,
    /// Failed attempts.
    pub tried: Vec<ExplainedFact>,
    /// Events of the file. Events of the last second can be missing.
    pub history: ExplainedHistory,
}

/// The events of a file among the newest 2,000 events of its organization.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ExplainedHistory {
    /// False if events are switched off in this store. Then there are no events.
    pub enabled: bool,
    /// True if the history begins with the upload of the file and has no gap.
    pub whole: bool,
    /// Number of events of the organization that were looked through, at most 2,000.
    pub looked_at: u64,
    /// Events of the file, oldest first. `log.gap` marks a time without events.
    pub events: Vec<Event>,
}

/// The state of an explained file, as in its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ExplainedRecord {
    /// Sub-system: an area of your application, for example `invoices`.
    pub sub_system: String,
    /// Lifecycle status.
    pub status: Status,
    /// Progress towards the provider of the organization.
    pub sync_status: SyncStatus,
    /// `SYSTEM_PURGE` if the file is deleted. Null for other files.
    pub purge_status: Option<PurgeStatus>,
    /// Side that serves the content.
    pub storage_location: StorageLocation,
    /// Content version.
    pub version: u64,
}

/// A fact about a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ExplainedFact {
    /// Stable code for programs, for example `provider_down`.
    pub code: String,
    /// Sentence for people, without times.
    pub sentence: String,
    /// Code of the provider that the fact is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Start of the fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// End of the fact, if known. filestore can extend a lease or a hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Number of blobs or attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Error text, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A next step of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ExplainedStep {
    /// Stable code for programs, for example `purge`.
    pub code: String,
    /// Sentence for people, without times.
    pub sentence: String,
    /// Code of the provider at which the step happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Earliest time at which the background work takes the step. Absent if no time starts the
    /// step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<String>,
    /// Number of the attempt, starting at 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Number of attempts after which filestore gives up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Obstacles. After `not_before`, the step waits until all of them are gone.
    pub waits_for: Vec<ExplainedFact>,
    /// Command that prevents the step, for example `restore`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// Effects of the step.
    pub then: Vec<ExplainedFact>,
}
