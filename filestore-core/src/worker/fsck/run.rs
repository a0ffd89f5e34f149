//! A check from its beginning, or from where it stopped, to its report.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::FileStore;
use crate::domain::error::{Error, Result};
use crate::domain::fsck::{
    Finding, FindingOutcome, FsckDepth, FsckMode, FsckOptions, FsckReport, FsckStart,
};
use crate::domain::provider::ProviderCode;
use crate::metadata::{CheckName, CheckRun};
use crate::service::Inner;
use crate::service::checks::RegisteredCheck;
use crate::service::relocate::RateLimit;
use crate::worker::Progress;

/// Findings of a report.
const REPORTED: usize = 10_000;

/// Findings that are held at most before they are stored.
const HELD: usize = 200;

/// Time after which the state is stored although nothing was found.
const SAVE_AFTER: Duration = Duration::from_secs(2);

pub(super) const FILES: &str = "files";
pub(super) const BLOBS: &str = "blobs";
pub(super) const LEFTOVERS: &str = "leftovers";
pub(super) const VARIANTS: &str = "variants";
pub(super) const TOTALS: &str = "totals";
const DONE: &str = "done";

/// A check under way.
pub(super) struct Check<'a> {
    pub(super) store: FileStore,
    /// The state, as it is stored now and then.
    pub(super) run: CheckRun,
    pub(super) entry: RegisteredCheck,
    pub(super) limit: Option<RateLimit>,
    pub(super) progress: &'a dyn Progress,
    pub(super) not_looked_at: Vec<String>,
    stop: &'a (dyn Fn() -> bool + Sync),
    is_resumed: bool,
    /// Bytes that were read in earlier calls.
    bytes_before: u64,
    /// Findings that are not stored yet.
    found: Vec<Finding>,
    saved_at: Duration,
}

impl<'a> Check<'a> {
    /// Begins a check, or resumes an unfinished one that was asked to do the same.
    pub(super) async fn begin(
        store: &FileStore,
        name: CheckName,
        options: &FsckOptions,
        entry: RegisteredCheck,
        stop: &'a (dyn Fn() -> bool + Sync),
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        let metadata = &store.inner().metadata;
        let unfinished = metadata.check_run(name).await?.filter(|run| can_resume(run, options));
        let is_resumed = unfinished.is_some();
        let run = if let Some(run) = unfinished {
            run
        } else {
            let run = fresh(store, name, options);
            metadata.begin_check(&run).await?;
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

    /// Does one part after the other, until the end or until it is told to stop.
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

    /// Goes on to the part after the present one.
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

    /// Makes the report of what is known by now.
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

        for (kind, found, repaired) in metadata.count_findings(name).await? {
            report.found_by_kind.insert(kind, found);
            if repaired > 0 {
                report.repaired_by_kind.insert(kind, repaired);
            }
        }
        report.findings = metadata.findings(name, REPORTED).await?;
        Ok(report)
    }

    /// Notes something that was found.
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

    /// Stores the state if that was not done for some time.
    pub(super) async fn save_if_due(&mut self) -> Result<()> {
        self.show();
        let age = self.inner().clock.monotonic().saturating_sub(self.saved_at);
        if age >= SAVE_AFTER || self.found.len() >= HELD { self.save().await } else { Ok(()) }
    }

    /// Stores the state, and what was found since the last time.
    async fn save(&mut self) -> Result<()> {
        self.run.bytes = self.bytes_before + self.entry.progress().bytes();
        let found = mem::take(&mut self.found);
        let metadata = Arc::clone(&self.inner().metadata);
        (self.run.found, self.run.repaired) = metadata.save_check(&self.run, found).await?;
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

    /// Returns the name under which things are put into the quarantine.
    pub(super) fn quarantine(&self) -> String {
        format!("fsck-{}", self.run.started_at.as_millis())
    }

    /// Counts bytes that were read, and waits as long as the rate asks for.
    pub(super) async fn pace(&self, bytes: u64) {
        self.entry.progress().add_bytes(bytes);
        self.progress.add_bytes(bytes);
        if let Some(limit) = &self.limit {
            limit.wait_for(bytes).await;
        }
    }

    /// Tells whether the bytes of a holder are to be looked at.
    pub(super) fn is_wanted(&self, holder: &ProviderCode) -> bool {
        self.run.provider.as_ref().is_none_or(|only| only == holder) && !self.is_postponed(holder)
    }

    pub(super) fn is_postponed(&self, holder: &ProviderCode) -> bool {
        self.run.postponed.iter().any(|(code, _)| code == holder)
    }

    /// Leaves a holder out from now on: nothing can be known of its bytes.
    pub(super) fn postpone(&mut self, holder: &ProviderCode, error: &Error) {
        if !self.is_postponed(holder) {
            let reason = error.to_string();
            tracing::warn!(provider = %holder, error = %error.chain(), "a check leaves a provider out");
            self.run.postponed.push((holder.clone(), reason));
        }
    }
}

/// Turns the outcome of a repair into that of its finding.
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
