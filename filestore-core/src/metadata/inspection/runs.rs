//! The states and findings of checks.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::report::fsck::{Finding, FindingKind, FsckDepth, FsckMode};
use crate::domain::time::clock::Timestamp;

/// The states and findings of checks.
#[async_trait]
pub trait Runs: Send + Sync + 'static {
    /// Returns the last stored state of a check.
    async fn check_run(&self, name: CheckName) -> Result<Option<CheckRun>>;

    /// Replaces the state of a check by a new one, and removes the old findings.
    async fn begin_check(&self, run: &CheckRun) -> Result<()>;

    /// Stores the position of a check and its new findings. A known finding is stored in its latest form, and
    /// counts once. Returns the totals of found and repaired. Writes events: of a new finding of missing or wrong
    /// bytes of a live file, and of the end of the check.
    async fn save_check(
        &self,
        run: &CheckRun,
        found: Vec<Finding>,
        now: Timestamp,
    ) -> Result<(u64, u64)>;

    /// Lists the first `limit` findings of a check, most serious kinds first.
    async fn findings(&self, name: CheckName, limit: usize) -> Result<Vec<Finding>>;

    /// Counts the stored findings of a check by kind: all findings, and repaired findings.
    async fn count_findings(&self, name: CheckName) -> Result<Vec<(FindingKind, u64, u64)>>;
}

/// A check with its own state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckName {
    /// The last requested check.
    Asked,
    /// The scrub in the background.
    Scrub,
}

impl CheckName {
    /// Returns the stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Scrub => "scrub",
        }
    }
}

/// The check state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRun {
    /// The check.
    pub name: CheckName,
    /// The depth of the check.
    pub depth: FsckDepth,
    /// The permission to change the store.
    pub mode: FsckMode,
    /// The only holder to check, if set.
    pub provider: Option<ProviderCode>,
    /// The start time.
    pub started_at: Timestamp,
    /// The end time.
    pub ended_at: Option<Timestamp>,
    /// The current part.
    pub part: String,
    /// The position within that part.
    pub cursor: String,
    /// Checked record count.
    pub files: u64,
    /// The number of bytes read.
    pub bytes: u64,
    /// Checked name count.
    pub names: u64,
    /// Finding count.
    pub found: u64,
    /// Repaired finding count.
    pub repaired: u64,
    /// The skipped holders, with the reason.
    pub postponed: Vec<(ProviderCode, String)>,
}
