//! Sync: copies of new files to the provider of their organization.

use filestore_core::api::{
    OrganizationNumber, OrganizationSyncStatus, SyncQueueReport, SyncQueueRequest, SyncReport,
    SyncStatusReport,
};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's sync queue. [`Admin::sync`](super::Admin::sync) returns this group.
///
/// A server syncs in the background. For example, copy the older files of a newly bound
/// organization and wait for the result:
///
/// ```no_run
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let sync = client.admin().sync();
/// sync.enqueue(42.try_into()?).await?;
/// println!("{} files copied", sync.run().await?.synced);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SyncQueue<'a> {
    pub(super) client: &'a Client,
}

impl SyncQueue<'_> {
    /// Syncs all pending files and returns when the run ends. The call has no time limit.
    ///
    /// If you drop the future, the server completes the copies in progress and stops the run.
    pub async fn run(self) -> Result<SyncReport> {
        let request = self.client.admin_request(Method::POST, &["sync", "run"]);
        self.client.json(Call::once(request).endless()).await
    }

    /// Counts the files in each sync status.
    pub async fn status(self) -> Result<SyncStatusReport> {
        let request = self.client.admin_request(Method::GET, &["sync", "status"]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Counts the sync queue of one organization.
    pub async fn status_of(
        self,
        organization: OrganizationNumber,
    ) -> Result<OrganizationSyncStatus> {
        let request = self.client.admin_request(Method::GET, &["sync", "status"]);
        let request = request.query(&[("organizationId", organization.get())]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Queues an organization's READY files that its provider does not have yet, for example
    /// files from before the binding.
    ///
    /// Fails with [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if the organization has no
    /// active binding.
    pub async fn enqueue(self, organization: OrganizationNumber) -> Result<SyncQueueReport> {
        self.queue("enqueue", Some(organization)).await
    }

    /// Queues the FAILED files of one organization again, or of all organizations with `None`.
    pub async fn retry(self, organization: Option<OrganizationNumber>) -> Result<SyncQueueReport> {
        self.queue("retry", organization).await
    }

    async fn queue(
        self,
        action: &str,
        organization: Option<OrganizationNumber>,
    ) -> Result<SyncQueueReport> {
        let body = SyncQueueRequest::new(organization);
        let request = self.client.admin_request(Method::POST, &["sync", action]).json(&body);
        // A second call queues no file twice.
        self.client.json(Call::idempotent(request).endless()).await
    }
}
