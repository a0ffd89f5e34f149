//! The table of a run, and its parts, which add up.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

/// The ways in which a promise can be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An acknowledged file or change is not there (P1).
    Lost,
    /// A batch is there in part (P2).
    PartialBatch,
    /// A content is mixed, cut or of another file (P3).
    Mixed,
    /// A record has no bytes (P4).
    NoBytes,
    /// Bytes are there that no record names (P5).
    Orphan,
    /// A deleted file or a cancelled upload is back (P6).
    Undeleted,
    /// A purged file has no receipt, or one that is not true.
    NoReceipt,
    /// A change has no event, or an event no change.
    Untold,
    /// The server, its database or the disk is not as it should be.
    Broken,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Lost,
        Self::PartialBatch,
        Self::Mixed,
        Self::NoBytes,
        Self::Orphan,
        Self::Undeleted,
        Self::NoReceipt,
        Self::Untold,
        Self::Broken,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Lost => "acknowledged and lost",
            Self::PartialBatch => "partial batches",
            Self::Mixed => "mixed or cut contents",
            Self::NoBytes => "records without bytes",
            Self::Orphan => "orphans past the grace",
            Self::Undeleted => "deleted and back",
            Self::NoReceipt => "receipts missing or untrue",
            Self::Untold => "events missing or untrue",
            Self::Broken => "other failures",
        }
    }
}

/// A broken promise.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) kind: Kind,
    pub(crate) what: String,
}

/// Sums over rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    counts: BTreeMap<String, u64>,
}

impl Tally {
    /// Adds `number` to the line `name`.
    pub(crate) fn add(&mut self, name: &str, number: u64) {
        *self.counts.entry(name.to_owned()).or_default() += number;
    }

    /// Counts and prints a broken promise.
    pub(crate) fn note(&mut self, seed: u64, violation: &Violation) {
        eprintln!("seed {seed}: {}: {}", violation.kind.name(), violation.what);
        self.add(violation.kind.name(), 1);
    }

    /// Adds another part.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, number) in &other.counts {
            self.add(name, *number);
        }
    }

    /// Returns how many promises were broken.
    pub(crate) fn violations(&self) -> u64 {
        Kind::ALL.iter().filter_map(|kind| self.counts.get(kind.name())).sum()
    }

    /// Appends the tally to the report at `path`.
    pub(crate) fn append_to(&self, path: &Path) {
        let mut file = OpenOptions::new().append(true).create(true).open(path).expect("a report");
        writeln!(file, "{}", json!(self.counts)).expect("the report can be written");
    }

    /// Prints the table; fails if a promise was broken.
    pub(crate) fn conclude(&self) -> ExitCode {
        println!("{self}");
        if self.violations() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_violation = |name: &str| Kind::ALL.iter().any(|kind| kind.name() == name);
        for (name, number) in self.counts.iter().filter(|(name, _)| !is_violation(name)) {
            writeln!(f, "{number:>10}  {name}")?;
        }
        for kind in Kind::ALL {
            let number = self.counts.get(kind.name()).copied().unwrap_or_default();
            writeln!(f, "{number:>10}  {}", kind.name())?;
        }
        write!(f, "{:>10}  violations", self.violations())
    }
}

/// Adds up reports and prints one table.
pub(crate) fn sum(reports: &[PathBuf]) -> ExitCode {
    let mut total = Tally::default();
    for path in reports {
        let text = fs::read_to_string(path).expect("a report can be read");
        for line in text.lines() {
            let counts: Value = serde_json::from_str(line).expect("a line of a report is JSON");
            for (name, number) in counts.as_object().expect("a line of a report is an object") {
                total.add(name, number.as_u64().expect("a count"));
            }
        }
    }
    total.conclude()
}
