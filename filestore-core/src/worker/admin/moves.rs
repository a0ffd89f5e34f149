//! Sync and migration of files.

use std::sync::Arc;

use super::Admin;
use crate::domain::error::Result;
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::ProviderCode;
use crate::domain::report::{
    MigratePlan, MigrateReport, MigrateStatus, MigrateVerifyReport, OrganizationSyncStatus,
    SyncReport, SyncStatusReport,
};
use crate::worker::migrate::{self, MigrateOptions};
use crate::worker::running::progress::Progress;
use crate::worker::sync;

impl Admin<'_> {
    /// Copies all waiting files to their providers, and settles files that need no copy. Ends when no other
    /// file is due. Files of a provider that does not answer stay for later. Also ends after as many attempts
    /// as files waited at the start. Progress counts files and bytes.
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
        self.store.inner().opener.check_standing()?;
        self.runs().sync(progress).await
    }

    /// Syncs like [`sync`](Self::sync), but ends early once `stop` returns true, after the running copies.
    pub async fn sync_until(
        self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: Arc<dyn Progress>,
    ) -> Result<SyncReport> {
        self.store.inner().opener.check_standing()?;
        self.runs().sync_until(stop, progress).await
    }

    /// Counts the files in each sync status, and the copies since the store was opened.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let status = store.admin().sync_status().await?;
    /// println!("{} pending, {} failed", status.pending, status.failed);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sync_status(self) -> Result<SyncStatusReport> {
        sync::status(self.store).await
    }

    /// Counts the sync queue of an organization.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let status = store.admin().sync_status_of(42.try_into()?).await?;
    /// println!("{} of {} wait", status.pending, status.pending + status.done);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sync_status_of(
        self,
        organization: OrganizationNumber,
    ) -> Result<OrganizationSyncStatus> {
        sync::status_of(self.store, organization).await
    }

    /// Queues the organization's READY files that are not at its provider yet, because they are older than
    /// the binding. Returns `NoActiveBinding` without a binding. Queues no files if the binding names LOCAL.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let queued = store.admin().sync_enqueue(42.try_into()?).await?;
    /// println!("{queued} files will go to the provider");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sync_enqueue(self, organization: OrganizationNumber) -> Result<u64> {
        sync::enqueue(self.store, organization).await
    }

    /// Queues FAILED files again, of one organization or of all organizations.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let queued = store.admin().sync_retry(None).await?;
    /// println!("{queued} files are attempted again");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sync_retry(self, organization: Option<OrganizationNumber>) -> Result<u64> {
        sync::retry(self.store, organization).await
    }

    /// Counts the files that [`migrate`](Self::migrate) would move to `to`. Moves nothing. Returns the same
    /// errors as `migrate`. Exception: if the target does not accept files, the plan says so.
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
        migrate::plan(self.store, organization, to).await
    }

    /// Moves the organization's READY files to `to`, several at a time, until all files are there or `stop`
    /// returns true. Running copies are finished. Progress counts files and bytes.
    ///
    /// Returns `Conflict` if the organization is bound to another provider, or if a migration of it is
    /// running. Returns `ProviderUnavailable` or `ProviderInactive` if `to` does not accept files.
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
        self.store.inner().opener.check_standing()?;
        self.runs().migrate(organization, to, options, stop, progress).await
    }

    /// Reports at which providers the organization's files are, and the progress of a running migration on
    /// any server.
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
        migrate::status(self.store, organization).await
    }

    /// Reads every READY file of the organization at `to`, and compares its digest with the record. Progress
    /// counts files and bytes.
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

    /// Tells the organization's running migration on any server to stop. The migration finishes its copies,
    /// and returns its report to its caller. Returns false if no migration runs. Another server sees the
    /// request within seconds.
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
        migrate::stop(self.store, organization).await
    }

    /// Tells this process's migrations to stop, for example when the process ends.
    pub fn migrate_stop_all(self) {
        migrate::stop_all(self.store);
    }
}
