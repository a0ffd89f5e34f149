//! The purge: removal of deleted files.

use filestore_core::api::{PurgeReport, PurgeRunRequest};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's purge. [`Admin::purge`](super::Admin::purge) returns this group.
#[derive(Debug, Clone, Copy)]
pub struct Purge<'a> {
    pub(super) client: &'a Client,
}

impl Purge<'_> {
    /// Purges the files that `request` selects and returns when the run ends. The call has no time
    /// limit. If you drop the future, the server stops the run.
    ///
    /// For example, count the due files, and then purge all deleted files of one
    /// organization without a grace period:
    ///
    /// ```no_run
    /// use filestore_client::DryRun;
    /// use filestore_client::api::PurgeRunRequest;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let purge = client.admin().purge();
    /// let plan = purge.run(&PurgeRunRequest::new(DryRun::Yes)).await?;
    /// println!("{} files are due", plan.purged);
    ///
    /// let request = PurgeRunRequest::new(DryRun::No).now().organization_id("42");
    /// let report = purge.run(&request).await?;
    /// println!("{} bytes are free again", report.purged_bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run(self, request: &PurgeRunRequest) -> Result<PurgeReport> {
        let request = self.client.admin_request(Method::POST, &["purge", "run"]).json(request);
        self.client.json(Call::once(request).endless()).await
    }
}
