//! Administration: purge, sync, migration, providers, the variant cache.

use std::sync::Arc;

use super::backup::Backups;
use super::migrate::MigrateOptions;
use super::progress::Progress;
use super::run::Runs;
use crate::FileStore;
use crate::domain::backlog::ProviderBacklog;
use crate::domain::backup::{BackupOptions, BackupReport, RestoreReport, Selection};
use crate::domain::config::BackupPlace;
use crate::domain::erasure::EraseReceipt;
use crate::domain::error::Result;
use crate::domain::fsck::{FsckMode, FsckOptions, FsckReport, FsckStatus};
use crate::domain::id::{DestinationId, OrganizationId, OrganizationNumber, SnapshotId};
use crate::domain::load::Load;
use crate::domain::overview::{Overview, ProviderStatus};
use crate::domain::provider::ProviderCode;
use crate::domain::report::{
    MigratePlan, MigrateReport, MigrateStatus, MigrateVerifyReport, ProviderInfo, PurgeReport,
    SyncReport, SyncStatusReport,
};
use crate::storage::ProviderCheck;
use crate::variant::CacheReport;

/// Administration of a store; from [`FileStore::admin`].
///
/// Runs are safe beside the background [`Workers`](super::Workers) and beside each other: leases in the
/// database share the work out.
///
/// ```no_run
/// use filestore_core::admin::NoProgress;
/// use filestore_core::FileStore;
///
/// # async fn example(store: &FileStore) -> filestore_core::Result<()> {
/// let plan = store.admin().purge_plan().await?;
/// println!("{} files are due, {} bytes", plan.purged, plan.purged_bytes);
/// let report = store.admin().purge(&NoProgress).await?;
/// for failure in report.failures {
///     println!("{}: {}", failure.file_id, failure.error);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Admin<'a> {
    store: &'a FileStore,
}

impl FileStore {
    /// Returns the administrator's part of the store: purge, sync, migration, providers, variants.
    pub fn admin(&self) -> Admin<'_> {
        Admin { store: self }
    }
}

impl<'a> Admin<'a> {
    /// Counts what [`purge`](Self::purge) would find now; changes nothing.
    pub async fn purge_plan(self) -> Result<PurgeReport> {
        self.store.purge_plan().await
    }

    /// Purges all that is due: expired TEMP files, deleted files past their grace period, replaced
    /// blobs past theirs. Ends when nothing due is left but what failed or waits for a provider that
    /// does not answer, or once as much was done as was due at the start. Progress counts files and
    /// blobs. `ProviderUnavailable` if this opener does not know the lifetimes and providers that
    /// the store's owner used.
    pub async fn purge(self, progress: &dyn Progress) -> Result<PurgeReport> {
        self.store.inner().check_standing()?;
        self.runs().purge(progress).await
    }

    /// Purges as [`purge`](Self::purge) does, but ends early, between two removals, once `stop` returns
    /// true.
    pub async fn purge_until(
        self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<PurgeReport> {
        self.store.inner().check_standing()?;
        self.runs().purge_until(stop, progress).await
    }

    /// Counts what waits for each provider: copies, deleted files and dropped blobs to remove, and
    /// since when. Providers for which nothing waits are left out. Cheap enough for a probe that
    /// comes every few seconds.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// for waiting in store.admin().backlog().await? {
    ///     println!("{}: {} files to copy", waiting.provider, waiting.sync.count);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn backlog(self) -> Result<Vec<ProviderBacklog>> {
        self.store.backlog().await
    }

    /// Looks at the whole store: database, disk, providers, waiting work. [`Overview::advice`] says what
    /// is not well, and what to do about it.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) {
    /// for advice in store.admin().overview().await.advice() {
    ///     println!("{}: {}; {}", advice.about, advice.problem, advice.next);
    /// }
    /// # }
    /// ```
    pub async fn overview(self) -> Overview {
        self.store.overview().await
    }

    /// Looks at queues, caches and counters, and at nothing that takes long: for monitoring, which asks
    /// every few seconds. [`backlog`](Self::backlog) has what waits for providers.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) {
    /// let load = store.admin().load().await;
    /// println!("{} changes wait for the database", load.writes.waiting);
    /// # }
    /// ```
    pub async fn load(self) -> Load {
        self.store.load().await
    }

    /// Lists every provider with how it answers and what waits for it, `LOCAL` first.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// for provider in store.admin().provider_status().await? {
    ///     println!("{}: {:?}", provider.info.code, provider.state());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn provider_status(self) -> Result<Vec<ProviderStatus>> {
        self.store.provider_overview().await
    }

    /// Settles every waiting file that has nowhere to go, and copies the others that are due. Ends
    /// when nothing is due any more but what waits for a provider that does not answer, or once as
    /// much was attempted as waited at the start. Progress counts files, and bytes beside them.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use filestore_core::admin::NoProgress;
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let report = store.admin().sync(Arc::new(NoProgress)).await?;
    /// println!("{} files copied, {} still wait", report.synced, report.waiting);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sync(self, progress: Arc<dyn Progress>) -> Result<SyncReport> {
        self.store.inner().check_standing()?;
        self.runs().sync(progress).await
    }

    /// Syncs as [`sync`](Self::sync) does, but ends early once `stop` returns true, when the copies under
    /// way are done.
    pub async fn sync_until(
        self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: Arc<dyn Progress>,
    ) -> Result<SyncReport> {
        self.store.inner().check_standing()?;
        self.runs().sync_until(stop, progress).await
    }

    /// Counts the files in each sync status, and what was copied since the store was opened.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let status = store.admin().sync_status().await?;
    /// println!("{} pending, {} failed", status.pending, status.failed);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sync_status(self) -> Result<SyncStatusReport> {
        self.store.sync_status().await
    }

    /// Queues the READY files of the organization that are not at its provider: those from before the
    /// binding. `NoActiveBinding` without one; nothing is queued if the binding names LOCAL.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let queued = store.admin().sync_enqueue(42.try_into()?).await?;
    /// println!("{queued} files will go to the provider");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sync_enqueue(self, organization: OrganizationNumber) -> Result<u64> {
        self.store.sync_enqueue(organization).await
    }

    /// Queues FAILED files again, of one organization or of all.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let queued = store.admin().sync_retry(None).await?;
    /// println!("{queued} files are attempted again");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sync_retry(self, organization: Option<OrganizationNumber>) -> Result<u64> {
        self.store.sync_retry(organization).await
    }

    /// Counts what a migration of the organization to `to` would move; changes nothing. Errors as
    /// [`migrate`](Self::migrate), but for a target that takes no files: the plan says so.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let plan = store.admin().migrate_plan(42.try_into()?, &"s3".parse()?).await?;
    /// println!("{} files to move, {} bytes", plan.move_files, plan.move_bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate_plan(
        self,
        organization: OrganizationNumber,
        to: &ProviderCode,
    ) -> Result<MigratePlan> {
        self.store.migrate_plan(organization, to).await
    }

    /// Moves the organization's READY files to `to`, several at a time, until none is elsewhere or
    /// `stop` returns true; then the copies under way are finished. Progress counts files, and bytes
    /// beside them.
    ///
    /// `Conflict` if the organization is bound to another provider or a migration of it is under way;
    /// `ProviderUnavailable` or `ProviderInactive` if `to` takes no files.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use filestore_core::admin::{MigrateOptions, NoProgress};
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let mut options = MigrateOptions::default();
    /// options.bytes_per_second = Some(10 << 20);
    /// let (to, progress) = ("s3".parse()?, Arc::new(NoProgress));
    /// let report =
    ///     store.admin().migrate(42.try_into()?, &to, options, &|| false, progress).await?;
    /// println!("{} files moved, {} left", report.moved_files, report.left_files);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate(
        self,
        organization: OrganizationNumber,
        to: &ProviderCode,
        options: MigrateOptions,
        stop: &(dyn Fn() -> bool + Sync),
        progress: Arc<dyn Progress>,
    ) -> Result<MigrateReport> {
        self.store.inner().check_standing()?;
        self.runs().migrate(organization, to, options, stop, progress).await
    }

    /// Reports where the organization's files are, and how far a migration has come that is under way, on
    /// whichever server.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// for holding in store.admin().migrate_status(42.try_into()?).await?.holdings {
    ///     println!("{}: {} files", holding.provider, holding.files);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate_status(self, organization: OrganizationNumber) -> Result<MigrateStatus> {
        self.store.migrate_status(organization).await
    }

    /// Reads every READY file of the organization that `to` holds and compares its digest with the
    /// record's. Progress counts files, and bytes beside them.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use filestore_core::admin::NoProgress;
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let (to, progress) = ("s3".parse()?, Arc::new(NoProgress));
    /// let report = store.admin().migrate_verify(42.try_into()?, &to, progress).await?;
    /// assert!(report.failures.is_empty(), "bytes that cannot be read, or are others");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate_verify(
        self,
        organization: OrganizationNumber,
        to: &ProviderCode,
        progress: Arc<dyn Progress>,
    ) -> Result<MigrateVerifyReport> {
        self.runs().migrate_verify(organization, to, progress).await
    }

    /// Tells the migration of the organization that is under way, on whichever server, to stop: it finishes its
    /// copies and returns its report to the caller that runs it. False if none is under way. Another server
    /// hears of it within seconds.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// if !store.admin().migrate_stop(42.try_into()?).await? {
    ///     println!("no migration is under way");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate_stop(self, organization: OrganizationNumber) -> Result<bool> {
        self.store.migrate_stop(organization).await
    }

    /// Tells every migration of this process to stop, as at its end.
    pub fn migrate_stop_all(self) {
        self.store.migrate_stop_all();
    }

    /// Checks the whole store while it serves: every record and the bytes that it names, every name at every
    /// holder and what refers to it, leftovers, cached variants, totals. Changes nothing unless the
    /// options ask for repairs. Ends early once `stop` returns true; the next check of the same kind goes
    /// on from there. Progress counts files, and bytes beside them.
    ///
    /// `Conflict` while another check is under way; `UnknownProvider` if the options name a provider that
    /// is not configured; `ProviderUnavailable` for a repair if this opener does not know the lifetimes
    /// and providers that the store's owner used.
    ///
    /// ```no_run
    /// # use filestore_core::admin::{FsckDepth, FsckOptions, NoProgress};
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let mut options = FsckOptions::default();
    /// options.depth = FsckDepth::Deep;
    /// let report = store.admin().fsck(options, &|| false, &NoProgress).await?;
    /// for finding in &report.findings {
    ///     println!("{} {}: {}", finding.kind, finding.name, finding.detail);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fsck(
        self,
        options: FsckOptions,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<FsckReport> {
        if options.mode == FsckMode::Repair {
            self.store.inner().check_standing()?;
        }
        self.runs().fsck(options, stop, progress).await
    }

    /// Aborts the uploads in parts that killed processes left at a provider: those that were begun a day ago
    /// or earlier, and that no noted write has the name of. Returns how many. The background does so every hour.
    /// Ends early once `stop` returns true. Nothing is done where the provider cannot list them: it is S3,
    /// with keys or the environment's credentials, that can.
    ///
    /// `UnknownProvider` for a provider that is not configured; `ProviderUnavailable` if it does not answer,
    /// or if this opener does not know the providers that the store's owner used; `Unusable` if it does not
    /// let its uploads be listed.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let aborted = store.admin().abort_left_uploads(&"s3-main".parse()?, &|| false).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn abort_left_uploads(
        self,
        provider: &ProviderCode,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<u64> {
        self.store.inner().check_standing()?;
        self.runs().abort_left_uploads(provider, stop).await
    }

    /// Erases an organization: takes it off all keys, deletes its files and removes their bytes and
    /// variants wherever they are, without waiting for the grace period of a deletion, then forgets its
    /// bindings, remembered replies and totals. The receipt says what was removed, and that each place
    /// was looked at. One that is not complete says what is left, and another call goes on.
    ///
    /// Clients with a key for all organizations can still bring files in: stop them first.
    /// `ProviderUnavailable` if this opener does not know the providers that the store's owner used.
    ///
    /// ```no_run
    /// # use filestore_core::admin::NoProgress;
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let receipt = store.admin().erase_organization(&"42".parse()?, &|| false, &NoProgress).await?;
    /// assert!(receipt.is_complete, "{:?}", receipt.places);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn erase_organization(
        self,
        organization: &OrganizationId,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<EraseReceipt> {
        self.store.inner().check_standing()?;
        self.runs().erase_organization(organization, stop, progress).await
    }

    /// Describes the check under way, on whichever server, and the last results: of the check that was asked for,
    /// and of the scrub of the background.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// if let Some(scrub) = store.admin().fsck_status().await?.scrub {
    ///     println!("{} found by {:?}", scrub.found, scrub.ended_at);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fsck_status(self) -> Result<FsckStatus> {
        self.store.fsck_status().await
    }

    /// Tells the check under way, on whichever server, to stop; its caller gets a report of what it has seen.
    /// False if none is under way. Another server hears of it within seconds.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// if !store.admin().fsck_stop().await? {
    ///     println!("no check is under way");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fsck_stop(self) -> Result<bool> {
        self.store.fsck_stop().await
    }

    /// Tells the check of this process to stop, as at its end.
    pub fn fsck_stop_here(self) {
        self.store.fsck_stop_here();
    }

    /// Lists every provider, inactive ones included, `LOCAL` first.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// for provider in store.admin().providers() {
    ///     println!("{} ({}): {}", provider.code, provider.scheme, provider.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn providers(self) -> Vec<ProviderInfo> {
        self.store.list_providers()
    }

    /// Checks a provider of location CLOUD with objects of its own. What is wrong with the provider is
    /// in the report; `UnknownProvider` if none has that code, `InvalidField` for `LOCAL`.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let check = store.admin().check_provider("s3").await?;
    /// for step in &check.steps {
    ///     println!("{}: {:?} {}", step.name, step.outcome, step.detail);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn check_provider(self, code: &str) -> Result<ProviderCheck> {
        self.runs().check_provider(code).await
    }

    /// Finds the provider that `code` names. `UnknownProvider` lists the codes there are.
    pub fn provider_code(self, code: &str) -> Result<ProviderCode> {
        self.store.provider_code(code)
    }

    /// Opens the snapshots in a destination that the configuration names. `NotFound` lists the names that
    /// there are; `Unusable` for a directory that is not there, or a place that was opened before and does not
    /// show it any more: its disk may not be mounted, its bucket another. `ProviderUnavailable` for a provider
    /// that does not answer.
    pub async fn backups(self, destination: &str) -> Result<Backups> {
        self.store.destination(destination).await
    }

    /// Returns the place of a destination that the configuration names. `NotFound` for another name.
    pub fn backup_place(self, destination: &str) -> Result<BackupPlace> {
        self.store.destination_place(destination)
    }

    /// Forgets a destination that stood at `place`, or all of them, but not the one that stands there;
    /// returns how many. Receipts of purges go on naming a destination that cannot be looked at, as it may have
    /// the bytes, until it is forgotten: when its disk or bucket was destroyed, or nothing is left there.
    ///
    /// `NotFound` if there is none, `Conflict` for the one that stands there.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let lost = "01JD8QZ4T6X3M2V9B7K5N1R0CE".parse()?;
    /// store.admin().forget_backups("/mnt/backup/files", Some(lost)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn forget_backups(
        self,
        place: impl Into<BackupPlace>,
        id: Option<DestinationId>,
    ) -> Result<u64> {
        self.store.forget_destinations_at(&place.into(), id).await
    }

    /// Takes a snapshot of the store while it runs. Until the snapshot is whole, what it names is not
    /// removed; from then on it owns its bytes. What an earlier snapshot in the same place has is not
    /// copied again, nor is what a run that broke off has left. Progress counts files, and bytes beside
    /// them.
    ///
    /// `StorageFull` if the place is full: what was copied stays. `ProviderUnavailable` if a provider
    /// that holds files does not answer or is not configured, unless they are only to be noted.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use filestore_core::admin::{BackupOptions, Backups, NoProgress};
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let backups = Backups::create("/mnt/backup/files").await?;
    /// let options = BackupOptions::default();
    /// let report = store.admin().backup(&backups, options, Arc::new(NoProgress)).await?;
    /// println!("{}: {} bytes copied", report.snapshot.id, report.copied_bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn backup(
        self,
        backups: &Backups,
        options: BackupOptions,
        progress: Arc<dyn Progress>,
    ) -> Result<BackupReport> {
        self.runs().back_up(backups, options, progress).await
    }

    /// Restores files of a snapshot, the newest if none is named, that the store has not any more: each
    /// under its id, with its bytes compared. Files that it has are left as they are. Progress counts
    /// files. `NotFound` if the snapshot has none of them.
    pub async fn restore(
        self,
        backups: &Backups,
        id: Option<SnapshotId>,
        selection: Selection,
        progress: Arc<dyn Progress>,
    ) -> Result<RestoreReport> {
        self.runs().restore(backups, id, selection, progress).await
    }

    /// Reports what the variant cache holds.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let cache = store.admin().variant_cache().await;
    /// println!("{} variants on disk, {} bytes", cache.disk_entries, cache.disk_bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn variant_cache(self) -> CacheReport {
        self.store.variant_cache().await
    }

    /// Empties the variant cache.
    pub async fn prune_variants(self) -> CacheReport {
        self.store.prune_variants().await
    }

    fn runs(self) -> Runs<'a> {
        Runs(self.store)
    }
}
