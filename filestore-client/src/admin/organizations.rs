//! Organizations as a whole.

use filestore_core::api::{EraseReceipt, EraseRequest, OrganizationId};
use reqwest::Method;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::transport::Call;

/// The server's organizations. [`Admin::organizations`](super::Admin::organizations) returns this
/// group.
#[derive(Debug, Clone, Copy)]
pub struct Organizations<'a> {
    pub(super) client: &'a Client,
}

impl Organizations<'_> {
    /// Erases an organization: the rights of its keys, all its files at every provider, its
    /// bindings and its stored replies. Returns when the run ends.
    ///
    /// If the receipt is not `complete`, it lists the remaining content. Call again to continue.
    /// Call again also if you dropped the future.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let receipt = client.admin().organizations().erase("42").await?;
    /// println!("{} files, complete: {}", receipt.files, receipt.complete);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn erase<I>(self, organization: I) -> Result<EraseReceipt>
    where
        I: TryInto<OrganizationId>,
        I::Error: Into<Error>,
    {
        let organization = organization.try_into().map_err(Into::into)?;
        let path = ["organizations", organization.as_str(), "erase"];

        let request = self.client.admin_request(Method::POST, &path);
        let request = request.json(&EraseRequest::new(&organization));
        self.client.json(Call::once(request).endless()).await
    }
}
