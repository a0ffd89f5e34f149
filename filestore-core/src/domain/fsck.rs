//! Checks of a store: what is asked, what was found, what came of it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::clock::Timestamp;
use super::error::{Error, Result};
use super::id::FileId;
use super::provider::ProviderCode;

/// The amount of work of a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FsckDepth {
    /// Names and sizes: no stored byte is read.
    #[default]
    Quick,
    /// Every byte is read and compared with its digest.
    Deep,
}

/// The right of a check to change something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FsckMode {
    /// Nothing is changed.
    #[default]
    DryRun,
    /// A repair: findings are set right or set aside, where that can be done. No stored byte is deleted
    /// at once.
    Repair,
}

/// The place from which a check begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FsckStart {
    /// The place where an unfinished check of the same kind stopped, if there is one.
    #[default]
    Resume,
    /// The beginning.
    Anew,
}

/// The options of a check. `Default` is a quick one that changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsckOptions {
    /// The amount of work.
    pub depth: FsckDepth,
    /// The right to change something.
    pub mode: FsckMode,
    /// The place to begin from.
    pub start: FsckStart,
    /// The most bytes that are read in a second; `None` for no limit.
    pub bytes_per_second: Option<u64>,
    /// The one holder whose bytes are looked at; `None` for all.
    pub provider: Option<ProviderCode>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A kind of thing that is not as it should be.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingKind { $($(#[$doc])* $name,)* }

        impl FindingKind {
            /// Every kind, the gravest first.
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
    /// A file whose bytes are nowhere where its record says.
    MissingBytes = "missing_bytes",
    /// Stored bytes of another length than the record's.
    WrongSize = "wrong_size",
    /// Stored bytes with another digest than the record's.
    WrongDigest = "wrong_digest",
    /// Stored bytes that cannot be read, although their holder answers.
    UnreadableBytes = "unreadable_bytes",
    /// Bytes of a live file that are queued for removal.
    DoomedBytes = "doomed_bytes",
    /// A record that cannot be read.
    DamagedRow = "damaged_row",
    /// A record whose location is not that of its provider.
    WrongLocation = "wrong_location",
    /// Bytes of a known blob under another key, or at another holder, than the record's.
    MisplacedBytes = "misplaced_bytes",
    /// Bytes that nothing in the database refers to.
    OrphanBytes = "orphan_bytes",
    /// A name among the blobs that is no blob's.
    ForeignName = "foreign_name",
    /// A staged upload that nobody works on any more.
    LeftoverStaging = "leftover_staging",
    /// A noted write to a provider that nobody works on any more.
    LeftoverNote = "leftover_note",
    /// An upload in parts that a provider still holds unfinished.
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

/// The fate of something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingOutcome {
    /// Shown only: nothing was to be changed, or nothing can be.
    Shown,
    /// Set right, or set aside. Says how.
    Repaired(String),
    /// Still as it was found, although a repair was attempted. Says why.
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

    /// Returns what was done, or why it was not.
    pub fn text(&self) -> &str {
        match self {
            Self::Shown => "",
            Self::Repaired(text) | Self::Failed(text) => text,
        }
    }

    /// Makes an outcome of its name and text.
    pub(crate) fn of(name: &str, text: String) -> Self {
        match name {
            "repaired" => Self::Repaired(text),
            "failed" => Self::Failed(text),
            _ => Self::Shown,
        }
    }
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The kind.
    pub kind: FindingKind,
    /// The code of the holder, or `database`, `staging`, `variants`.
    pub place: String,
    /// The name within that place: a blob's key, a row, a total.
    pub name: String,
    /// The file that it is about, if one is known.
    pub file_id: Option<FileId>,
    /// A description of what was found, fit to be shown.
    pub detail: String,
    /// The outcome of the repair, if there was one.
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

/// The result of a check, also of one that was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsckReport {
    /// The amount of work.
    pub depth: FsckDepth,
    /// The right to change something.
    pub mode: FsckMode,
    /// The instant of the beginning.
    pub started_at: Timestamp,
    /// The instant of the end; `None` if the check was stopped, and can be resumed.
    pub ended_at: Option<Timestamp>,
    /// True if an earlier call of the same check was resumed.
    pub is_resumed: bool,
    /// Records looked at.
    pub checked_files: u64,
    /// Bytes read and compared.
    pub checked_bytes: u64,
    /// Names looked at: blobs of all holders, staged files, cached variants.
    pub checked_names: u64,
    /// The number of all findings.
    pub found: u64,
    /// The number of findings by kind.
    pub found_by_kind: BTreeMap<FindingKind, u64>,
    /// The number of findings that were set right or set aside, by kind.
    pub repaired_by_kind: BTreeMap<FindingKind, u64>,
    /// Holders that could not be looked at now, with the reason: nothing is known of their bytes.
    pub postponed: BTreeMap<ProviderCode, String>,
    /// Things that no check looks at, in words.
    pub not_looked_at: Vec<String>,
    /// The first findings, 10,000 at most, the gravest kinds first.
    pub findings: Vec<Finding>,
}

impl FsckReport {
    /// Makes the report of a check that has looked at nothing yet.
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

    /// Returns true if everything was looked at and nothing found.
    pub fn is_clean(&self) -> bool {
        self.found == 0 && self.ended_at.is_some() && self.postponed.is_empty()
    }
}

/// A check under way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsckRunning {
    /// True for the scrub of the background, false for a check that was asked for.
    pub is_scrub: bool,
    /// The part that it is at: `files`, `blobs`, `leftovers`, `variants`, `totals`.
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
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsckSummary {
    /// The amount of work.
    pub depth: FsckDepth,
    /// The instant of the beginning.
    pub started_at: Timestamp,
    /// The instant of the end; `None` if it was stopped or is under way.
    pub ended_at: Option<Timestamp>,
    /// Records looked at.
    pub checked_files: u64,
    /// Bytes read and compared.
    pub checked_bytes: u64,
    /// Findings.
    pub found: u64,
    /// Findings that were set right or set aside.
    pub repaired: u64,
    /// Holders that could not be looked at.
    pub postponed: Vec<ProviderCode>,
}

/// The state of the checks of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsckStatus {
    /// The check under way, if there is one.
    pub running: Option<FsckRunning>,
    /// The last check that was asked for.
    pub last: Option<FsckSummary>,
    /// The last scrub of the background.
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
