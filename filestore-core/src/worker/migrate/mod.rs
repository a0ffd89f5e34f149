//! Migration: moves an organization's files to the provider of its binding while they stay available.
//!
//! The target is the provider of the active binding, or LOCAL without a binding, so that new files already go
//! there. Each file is copied, verified and flipped in one transaction. The old bytes stay during the grace
//! period. The remaining work follows from the records, so a run can be stopped at any time and started
//! again.

mod verify;

pub(in crate::worker) use self::verify::verify;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::running::failures::{Audience, Failures};
use super::running::lane::while_renewing;
use super::running::progress::Progress;
use super::sync::meter;
use crate::FileStore;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::event::{EventDetails, EventKind};
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::{Location, Status, SyncStatus};
use crate::domain::file::usage::Stored;
use crate::domain::id::{FileId, OrganizationId, OrganizationNumber};
use crate::domain::provider::ProviderCode;
use crate::domain::report::{MigrateHolding, MigratePlan, MigrateReport, MigrateStatus};
use crate::metadata::Holding;
use crate::service::providers::relocate::{Moved, RateLimit};
use crate::service::work::migrations::RegisteredMigration;

/// The number of files in one query.
const PAGE: usize = 200;

/// The maximum number of passes in a run. Each further pass processes the files that changed during the
/// previous pass.
const PASSES: usize = 10;

/// The pause in which the sync worker can finish its files.
const BETWEEN_PASSES: Duration = Duration::from_millis(300);

/// The migration options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateOptions {
    /// The maximum bytes per second that all copies together read. `None` means no limit.
    pub bytes_per_second: Option<u64>,
}

/// Counts the files that a migration of the organization to `to` would move. Changes nothing. Errors are
/// those of [`run`]. If the target does not accept files, the plan reports this instead of an error.
pub(crate) async fn plan(
    store: &FileStore,
    organization: OrganizationNumber,
    to: &ProviderCode,
) -> Result<MigratePlan> {
    let organization = migration_of(store, organization, to).await?;
    let holder = store.providers().holder_of_new(to);
    let mut plan = MigratePlan::new(to.clone());

    for holding in store.inner().metadata.holdings(&organization).await? {
        if holding.status != Status::Ready {
            plan.stay_files += holding.files;
            plan.stay_bytes += holding.bytes;
        } else if holding.provider == holder {
            plan.there_files += holding.files;
            plan.there_bytes += holding.bytes;
        } else {
            plan.move_files += holding.files;
            plan.move_bytes += holding.bytes;
            plan.from.push(shown(store, &holding));
        }
    }

    plan.refused = store.providers().check_takes_files(to).err().map(|error| error.to_string());
    Ok(plan)
}

/// Moves the organization's READY files to `to`, several at a time, until all files are there or `stop`
/// returns true. Running copies are finished. Progress counts files and bytes.
///
/// Returns `Conflict` if the organization is bound to another provider, or if a migration of it is running.
/// Returns `ProviderUnavailable` or `ProviderInactive` if `to` does not accept files.
pub(crate) async fn run(
    store: &FileStore,
    organization: OrganizationNumber,
    to: &ProviderCode,
    options: MigrateOptions,
    stop: &(dyn Fn() -> bool + Sync),
    progress: Arc<dyn Progress>,
) -> Result<MigrateReport> {
    let number = organization;
    let organization = migration_of(store, number, to).await?;
    store.providers().check_takes_files(to)?;
    let now = store.inner().now();
    let entry = store.inner().background.begin_migration(&organization, to, now).await?;
    let holder = store.providers().holder_of_new(to);

    let shared = Arc::clone(entry.progress());
    let stop: &(dyn Fn() -> bool + Sync) = &|| stop() || shared.is_told_to_stop();

    let left = elsewhere(store, &organization, &holder).await?;
    shared.plan(left);
    progress.accepted();
    progress.start(Some(left.files));

    let limit = options.bytes_per_second.map(|rate| Arc::new(RateLimit::new(rate)));
    let report = MigrateReport::default();
    let owner = store.inner().metadata.run_name();
    let failures = Failures::of(Audience::Caller);
    let mut run = MigrateRun {
        store: store.clone(),
        entry,
        number,
        holder: holder.clone(),
        owner: owner.clone(),
        limit,
        progress,
        report,
        failures,
        is_rebound: false,
    };

    // A copy may take days: while it goes on, its note stays young.
    while_renewing(run.passes(stop), || renew_notes(store, &owner)).await?;

    let left = elsewhere(store, &organization, &holder).await?;
    run.report.left_files = left.files;
    run.report.left_bytes = left.bytes;
    run.report.stopped = stop() || run.is_rebound;
    (run.report.failures, run.report.failed) = run.failures.into_parts();
    run.entry.finish().await;
    tell(store, number, to, &run.report).await;
    Ok(run.report)
}

/// Writes the event of the end of a migration.
async fn tell(
    store: &FileStore,
    organization: OrganizationNumber,
    to: &ProviderCode,
    report: &MigrateReport,
) {
    let details = EventDetails {
        to: Some(to.clone()),
        files: Some(report.moved_files),
        ok: Some(report.left_files == 0),
        ..EventDetails::default()
    };
    store.inner().note_event(EventKind::MigrationEnded, Some(organization.into()), details).await;
}

/// Renews the write intents of a run. After a failure, the next renewal tries again.
async fn renew_notes(store: &FileStore, owner: &str) {
    let inner = store.inner();
    if let Err(error) = inner.metadata.renew_writes(owner, inner.now()).await {
        tracing::warn!(error = %error.chain(), "a migration could not renew its notes");
    }
}

/// Reports at which providers the organization's files are, and the progress of a migration on any server.
pub(crate) async fn status(
    store: &FileStore,
    organization: OrganizationNumber,
) -> Result<MigrateStatus> {
    let number = organization;
    let organization = OrganizationId::from(number);
    let running = store.inner().background.running_migration(&organization).await?;
    let bound = store.inner().metadata.active_binding(number).await?;
    let holdings = store.inner().metadata.holdings(&organization).await?;

    Ok(MigrateStatus {
        organization: number,
        bound_to: bound.map(|binding| binding.provider),
        holdings: holdings.iter().map(|holding| shown(store, holding)).collect(),
        running,
    })
}

/// Tells all migrations of this server to stop, for example at the end of the process.
pub(crate) fn stop_all(store: &FileStore) {
    store.inner().background.migrations.stop_all();
}

/// Tells the organization's running migration on any server to stop. The migration finishes its copies, and
/// returns its report to its caller. Returns false if no migration runs.
pub(crate) async fn stop(store: &FileStore, organization: OrganizationNumber) -> Result<bool> {
    store.inner().background.stop_migration(&OrganizationId::from(organization)).await
}

/// Returns the organization, as its files name it, if its new files go to `to`. `Conflict` if they go to
/// another provider. `NoActiveBinding` without a binding, unless `to` is LOCAL.
async fn migration_of(
    store: &FileStore,
    organization: OrganizationNumber,
    to: &ProviderCode,
) -> Result<OrganizationId> {
    let is_local = store.providers().location(to) == Location::Local;
    let (organization, bound) = match bound(store, organization).await {
        Err(error) if error.kind() == ErrorKind::NoActiveBinding && is_local => {
            return Ok(organization.into());
        }
        bound => bound?,
    };

    if bound == *to {
        return Ok(organization);
    }

    let message = format!("organization {organization} is bound to {bound}: bind it to {to} first");
    Err(Error::new(ErrorKind::Conflict, message).with_field("to").with_allowed([bound.as_str()]))
}

/// Returns the organization, as its files name it, and its binding's provider.
pub(super) async fn bound(
    store: &FileStore,
    organization: OrganizationNumber,
) -> Result<(OrganizationId, ProviderCode)> {
    let id = OrganizationId::from(organization);
    match store.inner().metadata.active_binding(organization).await? {
        Some(binding) => Ok((id, binding.provider)),
        None => Err(Error::new(
            ErrorKind::NoActiveBinding,
            format!("organization {organization} has no active binding"),
        )
        .with_field("organization")),
    }
}

fn shown(store: &FileStore, holding: &Holding) -> MigrateHolding {
    MigrateHolding {
        provider: holding.provider.clone(),
        status: holding.status,
        files: holding.files,
        bytes: holding.bytes,
        available: store.providers().get(&holding.provider).is_some(),
    }
}

async fn elsewhere(
    store: &FileStore,
    organization: &OrganizationId,
    holder: &ProviderCode,
) -> Result<Stored> {
    let mut left = Stored::default();
    for holding in store.inner().metadata.holdings(organization).await? {
        if holding.status == Status::Ready && holding.provider != *holder {
            left.files += holding.files;
            left.bytes += holding.bytes;
        }
    }
    Ok(left)
}

struct MigrateRun {
    store: FileStore,
    entry: RegisteredMigration,
    /// The organization, as its bindings name it.
    number: OrganizationNumber,
    /// The store that receives the files, which is the target's store.
    holder: ProviderCode,
    /// The name of the run in the write intents of its copies.
    owner: String,
    limit: Option<Arc<RateLimit>>,
    progress: Arc<dyn Progress>,
    report: MigrateReport,
    failures: Failures,
    /// True if the organization was bound to another provider during the run. The remaining files are then
    /// not moved.
    is_rebound: bool,
}

type Outcome = (FileId, u64, Result<Moved>);

impl MigrateRun {
    async fn passes(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        for _ in 0..PASSES {
            if self.pass(stop).await? == 0 || stop() || self.is_rebound {
                break;
            }
            // The sync worker finishes what it has.
            sleep(BETWEEN_PASSES).await;
        }
        Ok(())
    }

    /// Processes every file that is elsewhere, once. Returns the number of files that changed during the
    /// pass.
    async fn pass(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<u64> {
        let store = self.store.clone();
        let at_once = store.config().sync.concurrency;
        let mut moves: JoinSet<Outcome> = JoinSet::new();
        let (mut after, mut changed) = (None, 0);
        self.failures.clear();

        'pages: loop {
            let (organization, target) =
                (self.entry.organization(), self.entry.progress().target());
            if let Err(error) = migration_of(&store, self.number, target).await {
                tracing::warn!(%organization, error = %error.chain(), "a migration ends early");
                self.is_rebound = true;
                break;
            }

            let metadata = &store.inner().metadata;
            let page = metadata.files_elsewhere(organization, &self.holder, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.file_id);

            for record in page {
                if stop() {
                    break 'pages;
                }
                // The sync worker has it.
                if record.state.sync() == SyncStatus::Syncing {
                    changed += 1;
                    continue;
                }
                if moves.len() >= at_once {
                    changed += self.note(moves.join_next().await);
                }
                self.begin(&mut moves, record);
            }
        }

        while let Some(moved) = moves.join_next().await {
            changed += self.note(Some(moved));
        }
        Ok(changed)
    }

    fn begin(&self, moves: &mut JoinSet<Outcome>, record: FileRecord) {
        let store = self.store.clone();
        let (shared, owner) = (Arc::clone(self.entry.progress()), self.owner.clone());
        let holder = self.holder.clone();
        let meter = meter(&store, &self.progress).limited(self.limit.clone());

        moves.spawn(async move {
            let moved = store.inner().move_blob(&record, &holder, &owner, meter).await;
            if matches!(moved, Ok(Moved::Done)) {
                store.inner().background.traffic.add_file();
                shared.add(record.blob.size_bytes);
            }
            (record.file_id, record.blob.size_bytes, moved)
        });
    }

    /// Counts an outcome. Returns 1 if the file changed in the meantime.
    fn note(&mut self, outcome: Option<Result<Outcome, tokio::task::JoinError>>) -> u64 {
        match outcome {
            Some(Ok((_, bytes, Ok(Moved::Done)))) => {
                self.progress.advance(1);
                self.report.moved_files += 1;
                self.report.moved_bytes += bytes;
                0
            }
            Some(Ok((_, _, Ok(Moved::Lost)))) => 1,
            Some(Ok((file, _, Err(error)))) => {
                tracing::warn!(file_id = %file, error = %error.chain(), "a file could not be moved");
                self.failures.note(file, &error);
                0
            }
            Some(Err(lost)) => {
                tracing::error!(%lost, "a move broke off");
                1
            }
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests;
