//! Checks of the whole store.

use filestore_core::api::{FsckReport, FsckRunRequest, FsckStatus};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's checks. [`Admin::fsck`](super::Admin::fsck) returns this group.
///
/// For example, read every stored byte and count the findings:
///
/// ```no_run
/// use filestore_client::api::FsckRunRequest;
///
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let mut request = FsckRunRequest::default();
/// request.deep = true;
/// let report = client.admin().fsck().run(&request).await?;
/// println!("{} findings", report.found);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Fsck<'a> {
    pub(super) client: &'a Client,
}

impl Fsck<'_> {
    /// Checks the whole store and returns when the check ends. The call has no time limit.
    ///
    /// Fails with [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if another check is running.
    ///
    /// If you drop the future, the server stops the check. To stop the check and still get the
    /// report, call [`stop`](Self::stop). The next check of the same kind resumes a stopped check.
    pub async fn run(self, request: &FsckRunRequest) -> Result<FsckReport> {
        let request = self.client.admin_request(Method::POST, &["fsck", "run"]).json(request);
        self.client.json(Call::once(request).endless()).await
    }

    /// Starts a check that continues without the client, and returns when the server has accepted it.
    /// To follow it, call [`status`](Self::status).
    pub async fn start(self, request: &FsckRunRequest) -> Result<FsckStatus> {
        let mut request = request.clone();
        request.detach = Some(true);
        let request = self.client.admin_request(Method::POST, &["fsck", "run"]).json(&request);
        self.client.json(Call::once(request).endless()).await
    }

    /// Stops the running check. Returns the state of the checks.
    pub async fn stop(self) -> Result<FsckStatus> {
        let request = self.client.admin_request(Method::POST, &["fsck", "stop"]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Returns the running check and the latest reports.
    pub async fn status(self) -> Result<FsckStatus> {
        let request = self.client.admin_request(Method::GET, &["fsck", "status"]);
        self.client.json(Call::idempotent(request)).await
    }
}
