//! Boxes the long runs, so that only this crate compiles their code.
//!
//! The compiler generates the code of an `async fn` where it is awaited, together with all functions that it
//! awaits. A box inside an `async fn` does not change this. Without these functions, the server and the
//! command line would each contain a copy of every run.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::progress::Progress;
use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::id::{OrganizationId, OrganizationNumber, SnapshotId};
use crate::domain::provider::ProviderCode;
use crate::domain::report::backup::{BackupOptions, BackupReport, RestoreReport, Selection};
use crate::domain::report::erasure::EraseReceipt;
use crate::domain::report::fsck::{FsckOptions, FsckReport};
use crate::domain::report::{
    MigrateReport, MigrateVerifyReport, PurgeOptions, PurgeReport, SyncReport,
};
use crate::service::providers::overview::check_provider;
use crate::storage::ProviderCheck;
use crate::worker::backup::{self, Backups};
use crate::worker::migrate::{self, MigrateOptions};
use crate::worker::{erase, fsck, purge, sync, upkeep};

/// A running run. Dropping it ends the run.
pub(in crate::worker) type Run<'a, T> = BoxFuture<'a, Result<T>>;

/// A function that ends a run early when it returns true.
type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The runs of a store.
#[derive(Clone, Copy)]
pub(in crate::worker) struct Runs<'a>(pub(in crate::worker) &'a FileStore);

impl<'a> Runs<'a> {
    pub(in crate::worker) fn purge(
        self,
        options: &'a PurgeOptions,
        stop: Stop<'a>,
        progress: &'a dyn Progress,
    ) -> Run<'a, PurgeReport> {
        Box::pin(purge::run(self.0, options, stop, progress))
    }

    pub(in crate::worker) fn sync(self, progress: Arc<dyn Progress>) -> Run<'a, SyncReport> {
        Box::pin(sync::run(self.0, progress))
    }

    pub(in crate::worker) fn sync_until(
        self,
        stop: Stop<'a>,
        progress: Arc<dyn Progress>,
    ) -> Run<'a, SyncReport> {
        Box::pin(sync::run_until(self.0, stop, progress))
    }

    pub(in crate::worker) fn migrate(
        self,
        organization: OrganizationNumber,
        to: &'a ProviderCode,
        options: MigrateOptions,
        stop: Stop<'a>,
        progress: Arc<dyn Progress>,
    ) -> Run<'a, MigrateReport> {
        Box::pin(migrate::run(self.0, organization, to, options, stop, progress))
    }

    pub(in crate::worker) fn migrate_verify(
        self,
        organization: OrganizationNumber,
        to: &'a ProviderCode,
        progress: Arc<dyn Progress>,
    ) -> Run<'a, MigrateVerifyReport> {
        Box::pin(migrate::verify(self.0, organization, to, progress))
    }

    pub(in crate::worker) fn fsck(
        self,
        options: FsckOptions,
        stop: Stop<'a>,
        progress: &'a dyn Progress,
    ) -> Run<'a, FsckReport> {
        Box::pin(fsck::run_asked(self.0, options, stop, progress))
    }

    pub(in crate::worker) fn abort_left_uploads(
        self,
        provider: &'a ProviderCode,
        stop: Stop<'a>,
    ) -> Run<'a, u64> {
        Box::pin(upkeep::part_uploads::abort(self.0, provider, stop))
    }

    pub(in crate::worker) fn erase_organization(
        self,
        organization: &'a OrganizationId,
        stop: Stop<'a>,
        progress: &'a dyn Progress,
    ) -> Run<'a, EraseReceipt> {
        Box::pin(erase::run(self.0, organization, stop, progress))
    }

    pub(in crate::worker) fn check_provider(self, code: &'a str) -> Run<'a, ProviderCheck> {
        Box::pin(check_provider(self.0, code))
    }

    pub(in crate::worker) fn back_up(
        self,
        backups: &'a Backups,
        options: BackupOptions,
        progress: Arc<dyn Progress>,
    ) -> Run<'a, BackupReport> {
        Box::pin(backup::create(self.0, backups, options, progress))
    }

    pub(in crate::worker) fn restore(
        self,
        backups: &'a Backups,
        id: Option<SnapshotId>,
        selection: Selection,
        progress: Arc<dyn Progress>,
    ) -> Run<'a, RestoreReport> {
        Box::pin(backup::restore_selected(self.0, backups, id, selection, progress))
    }
}
