//! Runs a check from its start, or from the position where it stopped, to its report.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::FileStore;
use crate::domain::error::{Error, Result};
use crate::domain::provider::ProviderCode;
use crate::domain::report::fsck::{
    Finding, FindingOutcome, FsckDepth, FsckMode, FsckOptions, FsckReport, FsckStart,
};
use crate::metadata::{CheckName, CheckRun};
use crate::service::Inner;
use crate::service::providers::relocate::RateLimit;
use crate::service::work::checks::RegisteredCheck;
use crate::worker::Progress;

/// The maximum number of findings in a report.
const REPORTED: usize = 10_000;

/// The maximum number of findings in memory.
const HELD: usize = 200;

/// The time after which the state is stored even without findings.
const SAVE_AFTER: Duration = Duration::from_secs(2);

pub(super) const FILES: &str = "files";
pub(super) const BLOBS: &str = "blobs";
pub(super) const LEFTOVERS: &str = "leftovers";
pub(super) const VARIANTS: &str = "variants";
pub(super) const TOTALS: &str = "totals";
const DONE: &str = "done";

/// A running check.
pub(super) struct Check<'a> {
    pub(super) store: FileStore,
    /// The state, which is stored regularly.
    pub(super) run: CheckRun,
    pub(super) entry: RegisteredCheck,
    pub(super) limit: Option<RateLimit>,
    pub(super) progress: &'a dyn Progress,
    pub(super) not_looked_at: Vec<String>,
    stop: &'a (dyn Fn() -> bool + Sync),
    is_resumed: bool,
    /// The number of bytes read in earlier calls.
    bytes_before: u64,
    /// Findings that are not stored yet.
    found: Vec<Finding>,
    saved_at: Duration,
}

impl<'a> Check<'a> {
    /// Begins a check, or resumes an unfinished check with the same options.
    pub(super) async fn begin(
        store: &FileStore,
        name: CheckName,
        options: &FsckOptions,
        entry: RegisteredCheck,
        stop: &'a (dyn Fn() -> bool + Sync),
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        let metadata = &store.inner().metadata;
        let unfinished =
            metadata.inspection().check_run(name).await?.filter(|run| can_resume(run, options));
        let is_resumed = unfinished.is_some();
        let run = if let Some(run) = unfinished {
            run
        } else {
            let run = fresh(store, name, options);
            metadata.inspection().begin_check(&run).await?;
            run
        };

        let counts = metadata.sync_counts().await?;
        let files = counts.none + counts.pending + counts.syncing + counts.synced + counts.failed;
        progress.start(Some(files));
        progress.advance(run.files);
        Ok(Self {
            store: store.clone(),
            bytes_before: run.bytes,
            run,
            entry,
            limit: options.bytes_per_second.map(RateLimit::new),
            progress,
            not_looked_at: Vec::new(),
            stop,
            is_resumed,
            found: Vec::new(),
            saved_at: store.inner().clock.monotonic(),
        })
    }

    /// Runs the parts one after the other, until the end or until the check is told to stop.
    pub(super) async fn all_parts(&mut self) -> Result<()> {
        while !self.is_stopped() && self.run.ended_at.is_none() {
            self.show();
            match self.run.part.as_str() {
                FILES => self.files().await?,
                BLOBS => self.blobs().await?,
                LEFTOVERS => self.leftovers().await?,
                VARIANTS => self.variants().await?,
                TOTALS => self.totals().await?,
                _ => self.run.ended_at = Some(self.inner().now()),
            }
        }
        self.save().await
    }

    /// Continues with the next part.
    pub(super) async fn part_is_done(&mut self) -> Result<()> {
        let next = match self.run.part.as_str() {
            FILES => BLOBS,
            BLOBS => LEFTOVERS,
            LEFTOVERS => VARIANTS,
            VARIANTS => TOTALS,
            _ => DONE,
        };
        next.clone_into(&mut self.run.part);
        self.run.cursor.clear();
        self.save().await
    }

    /// Returns the report of the check so far.
    pub(super) async fn report(&self) -> Result<FsckReport> {
        let metadata = &self.inner().metadata;
        let (run, name) = (&self.run, self.run.name);

        let mut report = FsckReport::new(run.depth, run.mode, run.started_at);
        report.ended_at = run.ended_at;
        report.is_resumed = self.is_resumed;
        (report.checked_files, report.checked_bytes) = (run.files, run.bytes);
        (report.checked_names, report.found) = (run.names, run.found);
        report.postponed = run.postponed.iter().cloned().collect();
        report.not_looked_at.clone_from(&self.not_looked_at);

        for (kind, found, repaired) in metadata.inspection().count_findings(name).await? {
            report.found_by_kind.insert(kind, found);
            if repaired > 0 {
                report.repaired_by_kind.insert(kind, repaired);
            }
        }
        report.findings = metadata.inspection().findings(name, REPORTED).await?;
        Ok(report)
    }

    /// Records a finding.
    pub(super) fn note(&mut self, finding: Finding) {
        let Finding { kind, place, name, detail, .. } = &finding;
        if let FindingOutcome::Repaired(how) = &finding.outcome {
            tracing::warn!(%kind, place, name, detail, how, "a check has repaired what it found");
        } else {
            tracing::warn!(%kind, place, name, detail, "a check has found something");
        }
        self.found.push(finding);
    }

    /// Lists the findings that are not stored yet.
    pub(super) fn unsaved(&self) -> &[Finding] {
        &self.found
    }

    /// Stores the state if the last time was long ago.
    pub(super) async fn save_if_due(&mut self) -> Result<()> {
        self.show();
        let age = self.inner().clock.monotonic().saturating_sub(self.saved_at);
        if age >= SAVE_AFTER || self.found.len() >= HELD { self.save().await } else { Ok(()) }
    }

    /// Stores the state, and the new findings.
    async fn save(&mut self) -> Result<()> {
        self.run.bytes = self.bytes_before + self.entry.progress().bytes();
        let found = mem::take(&mut self.found);
        let (metadata, now) = (Arc::clone(&self.inner().metadata), self.inner().now());
        (self.run.found, self.run.repaired) =
            metadata.inspection().save_check(&self.run, found, now).await?;
        self.saved_at = self.inner().clock.monotonic();
        self.show();
        Ok(())
    }

    fn show(&self) {
        let run = &self.run;
        let found = run.found + self.found.len() as u64;
        self.entry.progress().show(&run.part, run.files, run.names, found);
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        self.store.inner()
    }

    pub(super) fn is_stopped(&self) -> bool {
        (self.stop)() || self.entry.progress().is_told_to_stop()
    }

    pub(super) fn is_deep(&self) -> bool {
        self.run.depth == FsckDepth::Deep
    }

    pub(super) fn repairs(&self) -> bool {
        self.run.mode == FsckMode::Repair
    }

    /// Returns the name of this run's quarantine folder.
    pub(super) fn quarantine(&self) -> String {
        format!("fsck-{}", self.run.started_at.as_millis())
    }

    /// Counts bytes that were read, and waits as the rate limit requires.
    pub(super) async fn pace(&self, bytes: u64) {
        self.entry.progress().add_bytes(bytes);
        self.progress.add_bytes(bytes);
        if let Some(limit) = &self.limit {
            limit.wait_for(bytes).await;
        }
    }

    /// Returns true if the check covers the bytes of this holder.
    pub(super) fn is_wanted(&self, holder: &ProviderCode) -> bool {
        self.run.provider.as_ref().is_none_or(|only| only == holder) && !self.is_postponed(holder)
    }

    pub(super) fn is_postponed(&self, holder: &ProviderCode) -> bool {
        self.run.postponed.iter().any(|(code, _)| code == holder)
    }

    /// Skips a holder from now on, because its bytes cannot be checked.
    pub(super) fn postpone(&mut self, holder: &ProviderCode, error: &Error) {
        if !self.is_postponed(holder) {
            let reason = error.to_string();
            tracing::warn!(provider = %holder, error = %error.chain(), "a check leaves a provider out");
            self.run.postponed.push((holder.clone(), reason));
        }
    }
}

/// Converts the result of a repair to the outcome of its finding.
pub(super) fn outcome(repaired: Result<Option<String>>) -> FindingOutcome {
    match repaired {
        Ok(Some(how)) => FindingOutcome::Repaired(how),
        Ok(None) => FindingOutcome::Failed("it changed meanwhile".to_owned()),
        Err(error) => {
            tracing::error!(error = %error.chain(), "a repair failed");
            FindingOutcome::Failed(error.to_string())
        }
    }
}

fn can_resume(run: &CheckRun, options: &FsckOptions) -> bool {
    run.ended_at.is_none()
        && options.start == FsckStart::Resume
        && (run.depth, run.mode, &run.provider) == (options.depth, options.mode, &options.provider)
}

fn fresh(store: &FileStore, name: CheckName, options: &FsckOptions) -> CheckRun {
    CheckRun {
        name,
        depth: options.depth,
        mode: options.mode,
        provider: options.provider.clone(),
        started_at: store.inner().now(),
        ended_at: None,
        part: FILES.to_owned(),
        cursor: String::new(),
        files: 0,
        bytes: 0,
        names: 0,
        found: 0,
        repaired: 0,
        postponed: Vec::new(),
    }
}
