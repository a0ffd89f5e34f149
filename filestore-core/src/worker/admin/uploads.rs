//! Resumable uploads of all callers.

use super::Admin;
use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::resumable::ResumableUpload;
use crate::domain::id::{OrganizationId, UploadId};

impl Admin<'_> {
    /// Lists up to `limit` resumable uploads of an organization, or of all organizations, in the order of their
    /// ids, starting after `after`. The list contains ended uploads. The addresses have no tokens, so they
    /// continue no upload. Running transfers continue.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// for upload in store.admin().uploads(None, None, 100).await? {
    ///     let name = upload.original_name.unwrap_or_default();
    ///     println!("{}: {name}, {} bytes", upload.address.upload_id, upload.offset);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn uploads(
        self,
        organization: Option<&OrganizationId>,
        after: Option<UploadId>,
        limit: usize,
    ) -> Result<Vec<ResumableUpload>> {
        self.store.resumable().listed(organization, after, limit).await
    }

    /// Returns a resumable upload in any stage. A running transfer continues. Returns `NotFound` for an unknown
    /// upload.
    pub async fn upload(self, id: UploadId) -> Result<ResumableUpload> {
        self.store.resumable().look_up(id).await
    }

    /// Cancels a resumable upload and returns its last state. A running transfer ends, and its bytes are
    /// removed. If the upload is finished, the file stays. Afterwards, the upload is unknown. If another server has the
    /// bytes, the upload is `failed` instead.
    ///
    /// Returns `NotFound` for an unknown upload, and `Busy` if a commit of the upload takes too long.
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
    /// let cancelled = store.admin().cancel_upload("01M80BSYRGX7SCZK48NX4Y3VPZ".parse()?).await?;
    /// println!("{} bytes are free again", cancelled.offset);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel_upload(self, id: UploadId) -> Result<ResumableUpload> {
        self.store.resumable().cancel_by_id(id, &Scope::All).await
    }
}
