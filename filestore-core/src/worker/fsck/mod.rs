//! Checks of the whole store: both directions, all holders, while it serves.
//!
//! # Purpose
//! Finds records without bytes and bytes without a record, bytes that are not what their record says,
//! and whatever else is left over or has drifted. A dry run changes nothing. A repair sets right what
//! follows from the rest, and puts aside what does not: nothing is deleted by "looks unreferenced".
//!
//! | part | looks at |
//! |---|---|
//! | `files` | every record, and the bytes that it names |
//! | `blobs` | every name at every holder, and what refers to it |
//! | `leftovers` | staged uploads, notes of writes, blobs that are noted to be removed |
//! | `variants` | the cache of variants |
//! | `totals` | what is counted as files come and go |
//!
//! # Locking
//! None: the store serves meanwhile. Names are listed first and the database is asked afterwards, since
//! bytes get their name after their record, or after a note, is stored. What looks wrong is asked for
//! once more before it is told, and each repair asks again within its transaction.
//!
//! # Crash safety
//! How far a check has come is stored with what it found. A check that was stopped or killed is resumed.
//!
//! # The way of a check
//! A check goes through records, names at every holder, leftovers, variants and totals, page by
//! page, and stores its position with its findings (`check_runs`, `check_findings`): a stopped
//! check is resumed. Nothing is locked; a finding is asked for twice. With `--repair` a blob that
//! nothing refers to, or that is not what its record says, is renamed into the quarantine, within
//! which it keeps its key. A provider that does not answer is left out and named.

mod run;
mod files;
mod bytes;
mod blobs;
mod leftovers;
mod variants;
mod totals;
#[cfg(test)]
mod tests;

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::fsck::{FsckOptions, FsckReport, FsckStatus, FsckSummary};
use crate::metadata::{CheckName, CheckRun};
use crate::service::checks::RegisteredCheck;
use crate::worker::Progress;

use run::Check;

impl FileStore {
    /// Checks the store as `options` say, until the end or until `stop` returns true.
    ///
    /// `Conflict` while another check is under way; `UnknownProvider` if the options name a holder that
    /// is not configured.
    pub(crate) async fn fsck(
        &self,
        options: FsckOptions,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<FsckReport> {
        if let Some(provider) = &options.provider {
            self.provider_code(provider.as_str())?;
        }
        let entry = self.inner().begin_asked_check().await?;
        progress.accepted();
        self.check_as(CheckName::Asked, &options, entry, stop, progress).await
    }

    /// Runs a check that is entered in the register.
    pub(super) async fn check_as(
        &self,
        name: CheckName,
        options: &FsckOptions,
        entry: RegisteredCheck,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<FsckReport> {
        let mut check = Check::begin(self, name, options, entry, stop, progress).await?;
        check.all_parts().await?;
        let report = check.report().await?;
        check.entry.finish().await;
        Ok(report)
    }

    /// Describes the check under way, and the last results.
    pub(crate) async fn fsck_status(&self) -> Result<FsckStatus> {
        let metadata = &self.inner().metadata;
        Ok(FsckStatus {
            running: self.inner().running_check().await?,
            last: metadata.check_run(CheckName::Asked).await?.map(summary),
            scrub: metadata.check_run(CheckName::Scrub).await?.map(summary),
        })
    }

    /// Tells the checks under way, on whichever server, to stop; false if none is.
    pub(crate) async fn fsck_stop(&self) -> Result<bool> {
        self.inner().stop_checks().await
    }

    /// Tells the check of this server to stop, as at the end of the process.
    pub(crate) fn fsck_stop_here(&self) {
        self.inner().checks.stop();
    }
}

fn summary(run: CheckRun) -> FsckSummary {
    FsckSummary {
        depth: run.depth,
        started_at: run.started_at,
        ended_at: run.ended_at,
        checked_files: run.files,
        checked_bytes: run.bytes,
        found: run.found,
        repaired: run.repaired,
        postponed: run.postponed.into_iter().map(|(code, _)| code).collect(),
    }
}
