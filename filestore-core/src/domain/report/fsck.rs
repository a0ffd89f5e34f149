//! Checks of a store: options and reports.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::domain::error::{Error, Result};
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;

/// A check's depth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FsckDepth {
    /// Compares names and sizes. Reads no stored bytes.
    #[default]
    Quick,
    /// Reads every byte and compares digests.
    Deep,
}

/// A check's mode: report, or repair the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FsckMode {
    /// Changes nothing.
    #[default]
    DryRun,
    /// Repairs or quarantines findings, if possible. Never deletes stored bytes at once.
    Repair,
}

/// Check start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FsckStart {
    /// Continues an unfinished check of the same kind, if there is one.
    #[default]
    Resume,
    /// Begins a new check.
    Anew,
}

/// Check options. `Default` is a quick check without changes.
///
/// For example, to read every byte and repair the findings, set `depth` to [`FsckDepth::Deep`] and
/// `mode` to [`FsckMode::Repair`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsckOptions {
    /// Check depth.
    pub depth: FsckDepth,
    /// The check's mode: report, or repair the store.
    pub mode: FsckMode,
    /// Check start.
    pub start: FsckStart,
    /// Maximum read rate, in bytes per second. `None` means no limit.
    pub bytes_per_second: Option<u64>,
    /// Check only this provider's blobs. `None` means all.
    pub provider: Option<ProviderCode>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A finding's kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingKind { $($(#[$doc])* $name,)* }

        impl FindingKind {
            /// Every kind, most serious first.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the stable name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }

        impl FromStr for FindingKind {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                match text {
                    $($text => Ok(Self::$name),)*
                    _ => Err(Error::invalid("kind", "kind has an unknown value")),
                }
            }
        }
    };
}

kinds! {
    /// A file without bytes at the place in its record.
    MissingBytes = "missing_bytes",
    /// A blob with another length than in its record.
    WrongSize = "wrong_size",
    /// A blob with another digest than in its record.
    WrongDigest = "wrong_digest",
    /// A blob that cannot be read, although its provider answers.
    UnreadableBytes = "unreadable_bytes",
    /// A blob of a live file that is queued for removal.
    DoomedBytes = "doomed_bytes",
    /// A damaged record.
    DamagedRow = "damaged_row",
    /// A record with a location that does not match its provider.
    WrongLocation = "wrong_location",
    /// A known blob under another storage key or at another provider than in its record.
    MisplacedBytes = "misplaced_bytes",
    /// A blob without any reference in the database.
    OrphanBytes = "orphan_bytes",
    /// A file among the blobs with a name that is not a blob's.
    ForeignName = "foreign_name",
    /// A staged upload that no process works on.
    LeftoverStaging = "leftover_staging",
    /// A write intent that no process works on.
    LeftoverNote = "leftover_note",
    /// An unfinished upload in parts at a provider.
    UnfinishedUpload = "unfinished_upload",
    /// Cached variants of a file that is gone, or that cannot be read.
    StaleVariant = "stale_variant",
    /// A total that is not the sum of its files.
    DriftedTotal = "drifted_total",
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The repair result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingOutcome {
    /// Only reported: no repair was requested, or no repair is possible.
    Shown,
    /// Repaired or quarantined. The text explains the repair.
    Repaired(String),
    /// The repair failed. The text explains the reason.
    Failed(String),
}

impl FindingOutcome {
    /// Returns the stable name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Repaired(_) => "repaired",
            Self::Failed(_) => "failed",
        }
    }

    /// Returns the repair, or the reason for its failure.
    pub fn text(&self) -> &str {
        match self {
            Self::Shown => "",
            Self::Repaired(text) | Self::Failed(text) => text,
        }
    }

    /// Creates a result from its name and text.
    pub(crate) fn of(name: &str, text: String) -> Self {
        match name {
            "repaired" => Self::Repaired(text),
            "failed" => Self::Failed(text),
            _ => Self::Shown,
        }
    }
}

/// A problem that a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Kind.
    pub kind: FindingKind,
    /// Place: a provider code, `LOCAL`, `database`, `staging` or `variants`.
    pub place: String,
    /// Name at that place: a storage key, a row or a total.
    pub name: String,
    /// Affected file, if known.
    pub file_id: Option<FileId>,
    /// Explanation for people.
    pub detail: String,
    /// Repair result.
    pub outcome: FindingOutcome,
}

impl Finding {
    pub(crate) fn new(
        kind: FindingKind,
        place: impl Into<String>,
        name: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            place: place.into(),
            name: name.into(),
            file_id: None,
            detail: detail.into(),
            outcome: FindingOutcome::Shown,
        }
    }

    #[must_use]
    pub(crate) fn of_file(mut self, file: FileId) -> Self {
        self.file_id = Some(file);
        self
    }
}

/// The check result, also of a stopped check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsckReport {
    /// Check depth.
    pub depth: FsckDepth,
    /// The check's mode: report, or repair the store.
    pub mode: FsckMode,
    /// Start time.
    pub started_at: Timestamp,
    /// End time. `None` if the check was stopped. You can then resume it.
    pub ended_at: Option<Timestamp>,
    /// True if this run resumed an earlier check.
    pub is_resumed: bool,
    /// Checked records.
    pub checked_files: u64,
    /// Bytes that were read and compared.
    pub checked_bytes: u64,
    /// Checked names: blobs, staged files, cached variants.
    pub checked_names: u64,
    /// Finding count.
    pub found: u64,
    /// Findings by kind.
    pub found_by_kind: BTreeMap<FindingKind, u64>,
    /// Repaired or quarantined findings by kind.
    pub repaired_by_kind: BTreeMap<FindingKind, u64>,
    /// Providers that could not be checked, with the reason.
    pub postponed: BTreeMap<ProviderCode, String>,
    /// Things that no check covers.
    pub not_looked_at: Vec<String>,
    /// The first findings, at most 10,000, most serious kinds first.
    pub findings: Vec<Finding>,
}

impl FsckReport {
    /// Creates an empty report.
    pub(crate) fn new(depth: FsckDepth, mode: FsckMode, started_at: Timestamp) -> Self {
        Self {
            depth,
            mode,
            started_at,
            ended_at: None,
            is_resumed: false,
            checked_files: 0,
            checked_bytes: 0,
            checked_names: 0,
            found: 0,
            found_by_kind: BTreeMap::new(),
            repaired_by_kind: BTreeMap::new(),
            postponed: BTreeMap::new(),
            not_looked_at: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Tests whether the check looked at everything and found no problem.
    pub fn is_clean(&self) -> bool {
        self.found == 0 && self.ended_at.is_some() && self.postponed.is_empty()
    }
}

/// A running check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsckRunning {
    /// True for a scrub in the background, false for a requested check.
    pub is_scrub: bool,
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
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsckSummary {
    /// Check depth.
    pub depth: FsckDepth,
    /// Start time.
    pub started_at: Timestamp,
    /// End time. `None` if the check was stopped or is still running.
    pub ended_at: Option<Timestamp>,
    /// Checked records.
    pub checked_files: u64,
    /// Bytes that were read and compared.
    pub checked_bytes: u64,
    /// Findings.
    pub found: u64,
    /// Repaired or quarantined findings.
    pub repaired: u64,
    /// Providers that could not be checked.
    pub postponed: Vec<ProviderCode>,
}

/// The checks' state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsckStatus {
    /// The running check, if there is one.
    pub running: Option<FsckRunning>,
    /// The last requested check.
    pub last: Option<FsckSummary>,
    /// The last scrub in the background.
    pub scrub: Option<FsckSummary>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_and_outcome_has_a_name_that_reads_back() {
        for kind in FindingKind::ALL {
            assert_eq!(kind.as_str().parse::<FindingKind>().unwrap(), *kind);
        }
        for outcome in [
            FindingOutcome::Shown,
            FindingOutcome::Repaired("a".to_owned()),
            FindingOutcome::Failed("b".to_owned()),
        ] {
            let again = FindingOutcome::of(outcome.as_str(), outcome.text().to_owned());
            assert_eq!(again, outcome);
        }
    }

    #[test]
    fn only_a_whole_look_that_found_nothing_is_clean() {
        let ended_at = Some(Timestamp::from_millis(1));
        let begun = FsckReport::new(FsckDepth::Quick, FsckMode::DryRun, Timestamp::from_millis(0));
        let clean = FsckReport { ended_at, ..begun };
        assert!(clean.is_clean());
        assert!(!FsckReport { ended_at: None, ..clean.clone() }.is_clean());
        assert!(!FsckReport { found: 1, ..clean.clone() }.is_clean());

        let postponed = [("s3".parse().unwrap(), "silent".to_owned())].into();
        assert!(!FsckReport { postponed, ..clean }.is_clean());
    }
}
