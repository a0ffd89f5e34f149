//! Migration: an organization's files follow its binding while they are served.
//!
//! The target is the provider of the active binding, or LOCAL without one, so that new files go
//! there already. Each file is copied, verified and flipped in one transaction; its old bytes stay
//! for the grace period. What is left is what the records say, so a run can be stopped at any time
//! and begun again.

mod verify;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::failures::{Audience, Failures};
use super::lane::while_renewing;
use super::progress::Progress;
use super::sync::meter;
use crate::FileStore;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{FileId, OrganizationId, OrganizationNumber};
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::domain::report::{MigrateHolding, MigratePlan, MigrateReport, MigrateStatus};
use crate::domain::status::{Location, Status, SyncStatus};
use crate::metadata::Holding;
use crate::service::migrations::RegisteredMigration;
use crate::service::relocate::{Moved, RateLimit};

/// Files looked at in one query.
const PAGE: usize = 200;

/// The most passes of a run; each after the first looks again at the files that changed under it.
const PASSES: usize = 10;

/// Pause in which the sync worker may finish the files that it has.
const BETWEEN_PASSES: Duration = Duration::from_millis(300);

/// The options of a migration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateOptions {
    /// The most bytes that all its copies together read in a second; `None` for no limit.
    pub bytes_per_second: Option<u64>,
}

impl FileStore {
    /// Counts what a migration of the organization to `to` would move; changes nothing. Errors as
    /// [`migrate_run`](Self::migrate_run), but for a target that takes no files: the plan says so.
    pub(crate) async fn migrate_plan(
        &self,
        organization: OrganizationNumber,
        to: &ProviderCode,
    ) -> Result<MigratePlan> {
        let organization = self.migration_of(organization, to).await?;
        let holder = self.providers().holder_of_new(to);
        let mut plan = MigratePlan::new(to.clone());

        for holding in self.inner().metadata.holdings(&organization).await? {
            if holding.status != Status::Ready {
                plan.stay_files += holding.files;
                plan.stay_bytes += holding.bytes;
            } else if holding.provider == holder {
                plan.there_files += holding.files;
                plan.there_bytes += holding.bytes;
            } else {
                plan.move_files += holding.files;
                plan.move_bytes += holding.bytes;
                plan.from.push(self.holding(&holding));
            }
        }

        plan.refused = self.providers().check_takes_files(to).err().map(|error| error.to_string());
        Ok(plan)
    }

    /// Moves the organization's READY files to `to`, several at a time, until none is elsewhere or
    /// `stop` returns true; then the copies under way are finished. Progress counts files, and
    /// bytes beside them.
    ///
    /// `Conflict` if the organization is bound to another provider or a migration of it is under way;
    /// `ProviderUnavailable` or `ProviderInactive` if `to` takes no files.
    pub(crate) async fn migrate_run(
        &self,
        organization: OrganizationNumber,
        to: &ProviderCode,
        options: MigrateOptions,
        stop: &(dyn Fn() -> bool + Sync),
        progress: Arc<dyn Progress>,
    ) -> Result<MigrateReport> {
        let number = organization;
        let organization = self.migration_of(number, to).await?;
        self.providers().check_takes_files(to)?;
        let entry = self.inner().begin_migration(&organization, to).await?;
        let holder = self.providers().holder_of_new(to);

        let shared = Arc::clone(entry.progress());
        let stop: &(dyn Fn() -> bool + Sync) = &|| stop() || shared.is_told_to_stop();

        let left = self.elsewhere(&organization, &holder).await?;
        progress.accepted();
        progress.start(Some(left.files));

        let limit = options.bytes_per_second.map(|rate| Arc::new(RateLimit::new(rate)));
        let report = MigrateReport::default();
        let store = self.clone();
        let owner = self.inner().metadata.run_name();
        let failures = Failures::of(Audience::Caller);
        let mut run = MigrateRun {
            store,
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
        while_renewing(run.passes(stop), || self.renew_notes(&owner)).await?;

        let left = self.elsewhere(&organization, &holder).await?;
        run.report.left_files = left.files;
        run.report.left_bytes = left.bytes;
        run.report.stopped = stop() || run.is_rebound;
        (run.report.failures, run.report.failed) = run.failures.into_parts();
        run.entry.finish().await;
        Ok(run.report)
    }

    /// Renews the notes of a run. If that fails now it may succeed at the next time.
    async fn renew_notes(&self, owner: &str) {
        let inner = self.inner();
        if let Err(error) = inner.metadata.renew_writes(owner, inner.now()).await {
            tracing::warn!(error = %error.chain(), "a migration could not renew its notes");
        }
    }

    /// Reports where the organization's files are, and how far a migration has come, on whichever server.
    pub(crate) async fn migrate_status(
        &self,
        organization: OrganizationNumber,
    ) -> Result<MigrateStatus> {
        let number = organization;
        let organization = OrganizationId::from(number);
        let running = self.inner().running_migration(&organization).await?;
        let bound = self.inner().metadata.active_binding(number).await?;
        let holdings = self.inner().metadata.holdings(&organization).await?;

        Ok(MigrateStatus {
            organization: number,
            bound_to: bound.map(|binding| binding.provider),
            holdings: holdings.iter().map(|holding| self.holding(holding)).collect(),
            running,
        })
    }

    /// Tells every migration of this server to stop, as at the end of the process.
    pub(crate) fn migrate_stop_all(&self) {
        self.inner().migrations.stop_all();
    }

    /// Tells the migration of the organization that is under way, on whichever server, to stop: it finishes its
    /// copies and returns its report to the caller that runs it. False if none is under way.
    pub(crate) async fn migrate_stop(&self, organization: OrganizationNumber) -> Result<bool> {
        self.inner().stop_migration(&OrganizationId::from(organization)).await
    }

    /// Returns the organization as files name it, if its new files go to `to`. `Conflict` if they
    /// go to another provider; `NoActiveBinding` without a binding, unless `to` is LOCAL.
    async fn migration_of(
        &self,
        organization: OrganizationNumber,
        to: &ProviderCode,
    ) -> Result<OrganizationId> {
        let is_local = self.providers().location(to) == Location::Local;
        let (organization, bound) = match self.bound(organization).await {
            Err(error) if error.kind() == ErrorKind::NoActiveBinding && is_local => {
                return Ok(organization.into());
            }
            bound => bound?,
        };

        if bound == *to {
            return Ok(organization);
        }

        let message =
            format!("organization {organization} is bound to {bound}: bind it to {to} first");
        Err(Error::new(ErrorKind::Conflict, message)
            .with_field("to")
            .with_allowed([bound.as_str()]))
    }

    /// Returns the organization as files name it, and the provider that it is bound to.
    pub(super) async fn bound(
        &self,
        organization: OrganizationNumber,
    ) -> Result<(OrganizationId, ProviderCode)> {
        let id = OrganizationId::from(organization);
        match self.inner().metadata.active_binding(organization).await? {
            Some(binding) => Ok((id, binding.provider)),
            None => Err(Error::new(
                ErrorKind::NoActiveBinding,
                format!("organization {organization} has no active binding"),
            )
            .with_field("organization")),
        }
    }

    fn holding(&self, holding: &Holding) -> MigrateHolding {
        MigrateHolding {
            provider: holding.provider.clone(),
            status: holding.status,
            files: holding.files,
            bytes: holding.bytes,
            available: self.providers().get(&holding.provider).is_some(),
        }
    }

    async fn elsewhere(
        &self,
        organization: &OrganizationId,
        holder: &ProviderCode,
    ) -> Result<Amount> {
        let mut left = Amount::default();
        for holding in self.inner().metadata.holdings(organization).await? {
            if holding.status == Status::Ready && holding.provider != *holder {
                left.files += holding.files;
                left.bytes += holding.bytes;
            }
        }
        Ok(left)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    files: u64,
    bytes: u64,
}

struct MigrateRun {
    store: FileStore,
    entry: RegisteredMigration,
    /// The organization as its bindings name it.
    number: OrganizationNumber,
    /// The store that the files are moved to: that of the target.
    holder: ProviderCode,
    /// The name of the run in the notes of its copies.
    owner: String,
    limit: Option<Arc<RateLimit>>,
    progress: Arc<dyn Progress>,
    report: MigrateReport,
    failures: Failures,
    /// The organization is bound to another provider by now: the rest stays where it is.
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

    /// Looks at every file that is elsewhere, once; returns how many changed under it.
    async fn pass(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<u64> {
        let store = self.store.clone();
        let at_once = store.config().sync.concurrency;
        let mut moves: JoinSet<Outcome> = JoinSet::new();
        let (mut after, mut changed) = (None, 0);
        self.failures.clear();

        'pages: loop {
            let (organization, target) =
                (self.entry.organization(), self.entry.progress().target());
            if let Err(error) = store.migration_of(self.number, target).await {
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
                store.inner().traffic.add_file();
                shared.add(record.blob.size_bytes);
            }
            (record.file_id, record.blob.size_bytes, moved)
        });
    }

    /// Counts an outcome; 1 if the file changed meanwhile.
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
