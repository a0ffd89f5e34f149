//! Checks of the whole store, from records to bytes and from bytes to records, at all holders, while the
//! store serves.
//!
//! # Purpose
//! A check finds records without bytes, bytes without a record, bytes that do not match their record,
//! leftovers and wrong totals. A dry run changes nothing. A repair corrects data that follows from other
//! data, and moves everything else to the quarantine. It deletes no data only because it looks unused.
//!
//! | module | checks |
//! |---|---|
//! | `files` | all records and their bytes |
//! | `blobs` | all names at all holders, and the records that refer to them |
//! | `leftovers` | staged uploads, write intents, blobs on the removal list |
//! | `variants` | the variant cache |
//! | `totals` | the counters of files |
//!
//! # Locking
//! There is no lock, because the store serves during the check. The check lists names first and queries the
//! database later, because bytes get their name after their record or their write intent. It confirms each
//! finding with a second query before it reports it, and each repair confirms the finding again within its
//! transaction.
//!
//! # Crash safety
//! The position of a check is stored with its findings. A check that was stopped or killed resumes there.
//!
//! # How a check runs
//! A check processes records, names at all holders, leftovers, variants and totals, page by page. It stores
//! its position and its findings (`check_runs`, `check_findings`). With `--repair`, a blob without a record,
//! or with wrong bytes, is renamed into the quarantine, where it keeps its key. A provider that does not
//! answer is skipped and reported.

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
use crate::domain::report::fsck::{FsckOptions, FsckReport, FsckStatus, FsckSummary};
use crate::metadata::{CheckName, CheckRun};
use crate::service::providers::overview::provider_code;
use crate::service::work::checks::RegisteredCheck;
use crate::worker::Progress;

use run::Check;

/// Checks the store with `options`, until the end or until `stop` returns true.
///
/// Returns `Conflict` while another check runs, and `UnknownProvider` if the options name an unknown holder.
pub(crate) async fn run_asked(
    store: &FileStore,
    options: FsckOptions,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &dyn Progress,
) -> Result<FsckReport> {
    if let Some(provider) = &options.provider {
        provider_code(store, provider.as_str())?;
    }
    let entry = store.inner().background.begin_asked_check().await?;
    progress.accepted();
    run_as(store, CheckName::Asked, &options, entry, stop, progress).await
}

/// Runs a check that is entered in the register.
pub(super) async fn run_as(
    store: &FileStore,
    name: CheckName,
    options: &FsckOptions,
    entry: RegisteredCheck,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &dyn Progress,
) -> Result<FsckReport> {
    let mut check = Check::begin(store, name, options, entry, stop, progress).await?;
    check.all_parts().await?;
    let report = check.report().await?;
    check.entry.finish().await;
    Ok(report)
}

/// Describes the running check, and the last results.
pub(crate) async fn status(store: &FileStore) -> Result<FsckStatus> {
    let metadata = &store.inner().metadata;
    Ok(FsckStatus {
        running: store.inner().background.running_check().await?,
        last: metadata.inspection().check_run(CheckName::Asked).await?.map(summary),
        scrub: metadata.inspection().check_run(CheckName::Scrub).await?.map(summary),
    })
}

/// Tells the running checks on any server to stop. Returns false if no check runs.
pub(crate) async fn stop(store: &FileStore) -> Result<bool> {
    store.inner().background.stop_checks().await
}

/// Tells the check of this server to stop, for example at the end of the process.
pub(crate) fn stop_here(store: &FileStore) {
    store.inner().background.checks.stop();
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
