//! The long runs in boxes, so that their code is made in this crate alone.
//!
//! The compiler makes the code of an `async fn` where it is awaited, with the code of all that it awaits in
//! turn, and a box that is made in an `async fn` changes nothing of that. Without these functions the server
//! and the command line would each be built with a copy of every run.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::backup::Backups;
use super::migrate::MigrateOptions;
use super::progress::Progress;
use crate::FileStore;
use crate::domain::backup::{BackupOptions, BackupReport, RestoreReport, Selection};
use crate::domain::erasure::EraseReceipt;
use crate::domain::error::Result;
use crate::domain::fsck::{FsckOptions, FsckReport};
use crate::domain::id::{OrganizationId, OrganizationNumber, SnapshotId};
use crate::domain::provider::ProviderCode;
use crate::domain::report::{MigrateReport, MigrateVerifyReport, PurgeReport, SyncReport};
use crate::storage::ProviderCheck;

/// A run under way, until it is dropped.
pub(super) type Run<'a, T> = BoxFuture<'a, Result<T>>;

/// The question that ends a run early.
type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The runs of a store.
#[derive(Clone, Copy)]
pub(super) struct Runs<'a>(pub(super) &'a FileStore);

impl<'a> Runs<'a> {
    pub(super) fn purge(self, progress: &'a dyn Progress) -> Run<'a, PurgeReport> {
        Box::pin(self.0.purge_run(progress))
    }

    pub(super) fn purge_until(
        self,
        stop: Stop<'a>,
        progress: &'a dyn Progress,
    ) -> Run<'a, PurgeReport> {
        Box::pin(self.0.purge_until(stop, progress))
    }

    pub(super) fn sync(self, progress: Arc<dyn Progress>) -> Run<'a, SyncReport> {
        Box::pin(self.0.sync_run(progress))
    }

    pub(super) fn sync_until(
        self,
        stop: Stop<'a>,
        progress: Arc<dyn Progress>,
    ) -> Run<'a, SyncReport> {
        Box::pin(self.0.sync_until(stop, progress))
    }

    pub(super) fn migrate(
        self,
        organization: OrganizationNumber,
        to: &'a ProviderCode,
        options: MigrateOptions,
        stop: Stop<'a>,
        progress: Arc<dyn Progress>,
    ) -> Run<'a, MigrateReport> {
        Box::pin(self.0.migrate_run(organization, to, options, stop, progress))
    }

    pub(super) fn migrate_verify(
        self,
        organization: OrganizationNumber,
        to: &'a ProviderCode,
        progress: Arc<dyn Progress>,
    ) -> Run<'a, MigrateVerifyReport> {
        Box::pin(self.0.migrate_verify(organization, to, progress))
    }

    pub(super) fn fsck(
        self,
        options: FsckOptions,
        stop: Stop<'a>,
        progress: &'a dyn Progress,
    ) -> Run<'a, FsckReport> {
        Box::pin(self.0.fsck(options, stop, progress))
    }

    pub(super) fn abort_left_uploads(
        self,
        provider: &'a ProviderCode,
        stop: Stop<'a>,
    ) -> Run<'a, u64> {
        Box::pin(self.0.abort_left_uploads(provider, stop))
    }

    pub(super) fn erase_organization(
        self,
        organization: &'a OrganizationId,
        stop: Stop<'a>,
        progress: &'a dyn Progress,
    ) -> Run<'a, EraseReceipt> {
        Box::pin(self.0.erase_organization(organization, stop, progress))
    }

    pub(super) fn check_provider(self, code: &'a str) -> Run<'a, ProviderCheck> {
        Box::pin(self.0.check_provider(code))
    }

    pub(super) fn back_up(
        self,
        backups: &'a Backups,
        options: BackupOptions,
        progress: Arc<dyn Progress>,
    ) -> Run<'a, BackupReport> {
        Box::pin(self.0.back_up(backups, options, progress))
    }

    pub(super) fn restore(
        self,
        backups: &'a Backups,
        id: Option<SnapshotId>,
        selection: Selection,
        progress: Arc<dyn Progress>,
    ) -> Run<'a, RestoreReport> {
        Box::pin(self.0.restore_selected(backups, id, selection, progress))
    }
}
