//! Checks of the whole store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The body of POST `/admin/fsck/run`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct FsckRunRequest {
    /// True to set right, or aside, what is found; else nothing is changed.
    pub repair: bool,
    /// True to read every byte and compare digests; else names and sizes are compared.
    pub deep: bool,
    /// True to begin anew although an unfinished check of the same kind could be resumed.
    pub restart: bool,
    /// Most bytes read per second; unlimited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// Code of the one provider whose bytes are looked at; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FsckFinding {
    /// Kind, such as `missing_bytes`.
    pub kind: String,
    /// Code of the holder, or `database`, `staging`, `variants`.
    pub place: String,
    /// Name within that place: the key of a blob, a row, a total.
    pub name: String,
    /// Id of the file that it is about, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
    /// Description, fit to be shown.
    pub detail: String,
    /// Fate of it: `shown`, `repaired` or `failed`.
    pub outcome: String,
    /// Action that followed, or the reason why it failed; empty if nothing was attempted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub action: String,
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the document")]
pub struct FsckReport {
    /// True if everything was looked at and nothing found.
    pub clean: bool,
    /// True if findings were to be set right or aside.
    pub repair: bool,
    /// True if every byte was read.
    pub deep: bool,
    /// True if an earlier call of the same check was resumed.
    pub resumed: bool,
    /// Time of the beginning.
    pub started_at: String,
    /// Time of the end; null if the check was stopped, and can be resumed.
    pub ended_at: Option<String>,
    /// Records looked at.
    pub checked_files: u64,
    /// Bytes read and compared.
    pub checked_bytes: u64,
    /// Names looked at: blobs of all holders, staged files, files with cached variants.
    pub checked_names: u64,
    /// Number of all findings.
    pub found: u64,
    /// Number of findings by kind.
    pub found_by_kind: BTreeMap<String, u64>,
    /// Number of findings that were set right or aside, by kind.
    pub repaired_by_kind: BTreeMap<String, u64>,
    /// Providers that could not be looked at now, with the reason.
    pub postponed: BTreeMap<String, String>,
    /// Things that no check looks at.
    pub not_looked_at: Vec<String>,
    /// The first findings, 10,000 at most, the gravest kinds first.
    pub findings: Vec<FsckFinding>,
}

/// A check under way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FsckRunning {
    /// True for the scrub of the background, false for a check that was asked for.
    pub scrub: bool,
    /// Part that it is at: `files`, `blobs`, `leftovers`, `variants`, `totals`.
    pub part: String,
    /// Records looked at so far.
    pub checked_files: u64,
    /// Bytes read so far.
    pub checked_bytes: u64,
    /// Names looked at so far.
    pub checked_names: u64,
    /// Findings so far.
    pub found: u64,
}

/// The last result of a check, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FsckSummary {
    /// True if every byte was read.
    pub deep: bool,
    /// Time of the beginning.
    pub started_at: String,
    /// Time of the end; null if it was stopped or is under way.
    pub ended_at: Option<String>,
    /// Records looked at.
    pub checked_files: u64,
    /// Bytes read and compared.
    pub checked_bytes: u64,
    /// Findings.
    pub found: u64,
    /// Findings that were set right or aside.
    pub repaired: u64,
    /// Providers that could not be looked at.
    pub postponed: Vec<String>,
}

/// The state of the checks: the reply to GET `/admin/fsck/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct FsckStatus {
    /// Check under way, if there is one.
    pub running: Option<FsckRunning>,
    /// Last check that was asked for.
    pub last: Option<FsckSummary>,
    /// Last scrub of the background.
    pub scrub: Option<FsckSummary>,
}
