//! Resumable uploads of all callers.

use filestore_core::api::{OrganizationId, PageQuery, ResumableUpload, ResumableUploadList};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's resumable uploads. [`Admin::uploads`](super::Admin::uploads) returns this group.
///
/// ```no_run
/// use filestore_client::PageQuery;
///
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let uploads = client.admin().uploads();
/// for upload in uploads.list(None, &PageQuery::new()).await?.items {
///     println!("{} {}: {} bytes", upload.upload_id, upload.state, upload.offset);
/// }
/// let cancelled = uploads.cancel("01M80BSYRGX7SCZK48NX4Y3VPZ").await?;
/// println!("{} bytes are free again", cancelled.offset);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Uploads<'a> {
    pub(super) client: &'a Client,
}

impl Uploads<'_> {
    /// Returns one page of the uploads of an organization, or of all organizations, oldest first. The page
    /// contains ended uploads.
    pub async fn list(
        self,
        organization: Option<&OrganizationId>,
        query: &PageQuery,
    ) -> Result<ResumableUploadList> {
        let organization = organization.map(|id| ("organization_id", id.as_str()));
        let request = self.client.admin_request(Method::GET, &["uploads"]).query(query);
        self.client.json(Call::idempotent(request.query(&organization.as_slice()))).await
    }

    /// Returns an upload. A running transfer continues.
    pub async fn show(self, id: &str) -> Result<ResumableUpload> {
        let request = self.client.admin_request(Method::GET, &["uploads", id]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Cancels an upload: the server removes its bytes. If the upload is finished, the file stays. Returns the
    /// last state of the upload.
    pub async fn cancel(self, id: &str) -> Result<ResumableUpload> {
        let request = self.client.admin_request(Method::POST, &["uploads", id, "cancel"]);
        self.client.json(Call::once(request)).await
    }
}
