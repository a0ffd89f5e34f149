//! Takes and restores snapshots, and forgets destinations.

use std::sync::Arc;

use super::Admin;
use crate::domain::config::BackupPlace;
use crate::domain::error::Result;
use crate::domain::id::{DestinationId, SnapshotId};
use crate::domain::report::backup::{
    BackupOptions, BackupReport, LastBackup, RestoreReport, Selection,
};
use crate::worker::backup::{self, Backups};
use crate::worker::running::progress::Progress;

impl Admin<'_> {
    /// Opens the snapshots in a configured destination.
    ///
    /// Returns `NotFound`, with the configured names, for an unknown name. Returns `Unusable` if a directory
    /// is missing, or if a used place no longer has its marker. For example, the disk is not
    /// mounted, or the bucket is another one. Returns `ProviderUnavailable` if a provider does not answer.
    pub async fn backups(self, destination: &str) -> Result<Backups> {
        backup::destination::open(self.store, destination).await
    }

    /// Returns the place of a configured destination. `NotFound` for an unknown name.
    pub fn backup_place(self, destination: &str) -> Result<BackupPlace> {
        backup::destination::place(self.store, destination)
    }

    /// Lists the configured destinations with the time of the newest complete snapshot that this store took to
    /// each. Reads only the records database, so a destination that was erased later still has its time.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// for last in store.admin().last_backups().await? {
    ///     println!("{}: {:?}", last.destination, last.taken_at);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn last_backups(self) -> Result<Vec<LastBackup>> {
        let config = self.store.config();
        self.store.inner().destinations.last_backups(&config.backup_destinations).await
    }

    /// Forgets a snapshot destination that used to be at `place`, or all of them except the destination that
    /// is there now. Returns their number.
    ///
    /// Purge receipts name every destination that cannot be searched, because it might still contain the
    /// file. Forget a destination when its disk or bucket was destroyed or emptied.
    ///
    /// Returns `NotFound` if there is no such destination, and `Conflict` if `id` is the destination that is
    /// there now.
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
        self.store.inner().destinations.forget(&place.into(), id).await
    }

    /// Takes a snapshot of the store while it runs. During the run, the store keeps all bytes that the
    /// snapshot names. After that, the snapshot has its own copies. Contents of earlier snapshots in the same
    /// place, and of interrupted runs, are not copied again. Progress counts files and bytes.
    ///
    /// Returns `StorageFull` if the destination is full. Copied contents stay. Returns `ProviderUnavailable`
    /// if a provider with files does not answer or is not configured, unless the options only note its files.
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
        let outcome = self.runs().back_up(backups, options, progress).await;
        backups.note_end(self.store, &outcome).await;
        outcome
    }

    /// Restores files that the store no longer has, from the given snapshot or from the newest one. Each file
    /// gets its old id, and its bytes are compared. Existing files stay unchanged. Progress counts files.
    /// `NotFound` if the snapshot has none of the files.
    pub async fn restore(
        self,
        backups: &Backups,
        id: Option<SnapshotId>,
        selection: Selection,
        progress: Arc<dyn Progress>,
    ) -> Result<RestoreReport> {
        self.runs().restore(backups, id, selection, progress).await
    }
}
