//! Checks of the store, in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The body for POST `/admin/fsck/run`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct FsckRunRequest {
    /// If true, repair or quarantine the findings. If false, only report them.
    pub repair: bool,
    /// If true, read every byte and compare digests. If false, compare names and sizes.
    pub deep: bool,
    /// If true, start again, even if you could resume an unfinished check.
    pub restart: bool,
    /// Maximum read rate, in bytes per second. Unlimited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// Check only this provider's blobs. All if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
    /// If true, the reply is 202 with the status, and the check continues without the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detach: Option<bool>,
}

/// A problem that a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FsckFinding {
    /// Kind, for example `missing_bytes`.
    pub kind: String,
    /// Place: a provider code, `LOCAL`, `database`, `staging` or `variants`.
    pub place: String,
    /// Name at that place: a storage key, a row or a total.
    pub name: String,
    /// Id of the affected file, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
    /// Explanation for people.
    pub detail: String,
    /// `shown` (only reported), `repaired` or `failed`.
    pub outcome: String,
    /// The repair, or the reason why it failed. Empty if no repair was attempted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub action: String,
}

/// The check result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the document")]
pub struct FsckReport {
    /// True if the check looked at everything and found no problem.
    pub clean: bool,
    /// True if the check repairs or quarantines findings.
    pub repair: bool,
    /// True if the check reads every byte.
    pub deep: bool,
    /// True if this run resumed an earlier check.
    pub resumed: bool,
    /// Start time, in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`.
    pub started_at: String,
    /// End time. Null if the check was stopped. You can then resume it.
    pub ended_at: Option<String>,
    /// Checked records.
    pub checked_files: u64,
    /// Bytes that were read and compared.
    pub checked_bytes: u64,
    /// Checked names: blobs, staged files, and files with cached variants.
    pub checked_names: u64,
    /// Finding count.
    pub found: u64,
    /// Findings of each kind.
    pub found_by_kind: BTreeMap<String, u64>,
    /// Repaired or quarantined findings of each kind.
    pub repaired_by_kind: BTreeMap<String, u64>,
    /// Providers that could not be checked, with the reason.
    pub postponed: BTreeMap<String, String>,
    /// Things that no check covers.
    pub not_looked_at: Vec<String>,
    /// The first findings, at most 10,000, most serious kinds first.
    pub findings: Vec<FsckFinding>,
}

/// A running check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FsckRunning {
    /// True for a scrub in the background, false for a requested check.
    pub scrub: bool,
    /// Current part: `files`, `blobs`, `leftovers`, `variants` or `totals`.
    pub part: String,
    /// Checked records so far.
    pub checked_files: u64,
    /// Bytes read so far.
    pub checked_bytes: u64,
    /// Checked names so far.
    pub checked_names: u64,
    /// Findings so far.
    pub found: u64,
}

/// The last check's result, as numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FsckSummary {
    /// True if the check read every byte.
    pub deep: bool,
    /// Start time, in RFC 3339 (UTC, milliseconds).
    pub started_at: String,
    /// End time. Null if the check was stopped or is still running.
    pub ended_at: Option<String>,
    /// Checked records.
    pub checked_files: u64,
    /// Bytes that were read and compared.
    pub checked_bytes: u64,
    /// Finding count.
    pub found: u64,
    /// Repaired or quarantined findings.
    pub repaired: u64,
    /// Providers that could not be checked.
    pub postponed: Vec<String>,
}

/// The reply to GET `/admin/fsck/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FsckStatus {
    /// The running check, if there is one.
    pub running: Option<FsckRunning>,
    /// The last requested check.
    pub last: Option<FsckSummary>,
    /// The last scrub in the background.
    pub scrub: Option<FsckSummary>,
}
