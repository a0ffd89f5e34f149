//! Snapshots of the store.

use filestore_core::api::{
    BackupDestination, BackupForgetReport, BackupPruneReport, BackupReport, BackupRestoreReport,
    BackupVerifyReport, CreateBackup, ForgetBackups, PruneBackups, RestoreBackup, Snapshot,
    VerifyBackup,
};
use reqwest::{Method, RequestBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's backups. [`Admin::backups`](super::Admin::backups) returns this group.
///
/// A destination is the name of a `[[backup.destinations]]` entry in the server's configuration.
/// Except for [`list`](Self::list) and [`destinations`](Self::destinations), the calls have no time
/// limit.
///
/// For example, take a snapshot and keep the newest 14:
///
/// ```no_run
/// use filestore_client::api::{CreateBackup, PruneBackups};
///
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let backups = client.admin().backups();
/// let report = backups.create("nightly", &CreateBackup::default()).await?;
/// if let Some(snapshot) = &report.snapshot {
///     println!("{}: {} files", snapshot.snapshot_id, snapshot.files);
/// }
/// backups.prune("nightly", &PruneBackups::new(14)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Backups<'a> {
    pub(super) client: &'a Client,
}

impl Backups<'_> {
    /// Lists the destinations in the server's configuration.
    pub async fn destinations(self) -> Result<Vec<BackupDestination>> {
        let request = self.client.admin_request(Method::GET, &["backups"]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Takes a snapshot of the store and returns when the run ends.
    ///
    /// If you drop the future, the server stops the run. A run that stops early keeps its copies,
    /// and the next run continues from there. If a run fails after its start, the report contains
    /// the failure.
    pub async fn create(self, destination: &str, request: &CreateBackup) -> Result<BackupReport> {
        self.post(destination, "create", request, Call::once).await
    }

    /// Starts a run like [`create`](Self::create) that continues without the client, and returns when the
    /// server has accepted it. The snapshot is in the [`list`](Self::list) when the run ends, and the log of
    /// events tells the end.
    pub async fn start(
        self,
        destination: &str,
        request: &CreateBackup,
    ) -> Result<BackupDestination> {
        let mut request = *request;
        request.detach = Some(true);
        self.post(destination, "create", &request, Call::once).await
    }

    /// Lists the snapshots in a destination, oldest first.
    pub async fn list(self, destination: &str) -> Result<Vec<Snapshot>> {
        let request = self.client.admin_request(Method::GET, &["backups", destination]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Reads a whole snapshot and compares every digest. If you drop the future, the server stops.
    pub async fn verify(
        self,
        destination: &str,
        request: &VerifyBackup,
    ) -> Result<BackupVerifyReport> {
        self.post(destination, "verify", request, Call::idempotent).await
    }

    /// Restores files that the store no longer has from a snapshot, under their ids.
    pub async fn restore(
        self,
        destination: &str,
        request: &RestoreBackup,
    ) -> Result<BackupRestoreReport> {
        self.post(destination, "restore", request, Call::once).await
    }

    /// Removes all but the newest snapshots in a destination, with the content that only those
    /// name.
    pub async fn prune(
        self,
        destination: &str,
        request: &PruneBackups,
    ) -> Result<BackupPruneReport> {
        self.post(destination, "prune", request, Call::once).await
    }

    /// Forgets disks that contained snapshots and no longer exist, so that purge receipts stop
    /// naming them.
    ///
    /// The client does not retry this call after a lost reply, because a second call would find no
    /// disk to forget.
    pub async fn forget(
        self,
        destination: &str,
        request: &ForgetBackups,
    ) -> Result<BackupForgetReport> {
        self.post(destination, "forget", request, Call::once).await
    }

    async fn post<T: DeserializeOwned>(
        self,
        destination: &str,
        action: &str,
        body: &impl Serialize,
        call: fn(RequestBuilder) -> Call,
    ) -> Result<T> {
        let path = ["backups", destination, action];
        let request = self.client.admin_request(Method::POST, &path).json(body);
        self.client.json(call(request).endless()).await
    }
}
