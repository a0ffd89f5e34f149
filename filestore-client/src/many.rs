//! Calls for up to a thousand files at once.

use filestore_core::api::{
    DeleteFileResult, DeleteFilesReply, DeleteFilesRequest, RestoreFileResult, RestoreFilesReply,
    RestoreFilesRequest,
};
use reqwest::Method;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::transport::Call;

impl Client {
    /// Deletes up to 1000 files. Each deletion is independent: an unknown id does not stop the
    /// others.
    ///
    /// The results have the order of the ids. For a file that is not deleted, the result contains
    /// the error. For a second call, see [`delete`](Self::delete).
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// for result in client.delete_many(["01JD0000000000000000000000"]).await? {
    ///     if let Some(error) = result.error {
    ///         eprintln!("{} stays: {}", result.id, error.detail);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_many(
        &self,
        file_ids: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Vec<DeleteFileResult>> {
        let body = DeleteFilesRequest::new(file_ids);
        let request = self.request(Method::POST, &["files", "delete"]).json(&body);
        let reply: DeleteFilesReply = self.json(Call::idempotent(request)).await?;
        one_each(reply.results, body.ids.len())
    }

    /// Restores up to 1000 deleted files. Each restoration is independent: an unknown id does not
    /// stop the others.
    ///
    /// The results have the order of the ids. For a file that is not restored, the result contains
    /// the error. For a second call, see [`restore`](Self::restore).
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// for result in client.restore_many(["01JD0000000000000000000000"]).await? {
    ///     if let Some(error) = result.error {
    ///         eprintln!("{} stays deleted: {}", result.id, error.detail);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restore_many(
        &self,
        file_ids: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Vec<RestoreFileResult>> {
        let body = RestoreFilesRequest::new(file_ids);
        let request = self.request(Method::POST, &["files", "restore"]).json(&body);
        let reply: RestoreFilesReply = self.json(Call::idempotent(request)).await?;
        one_each(reply.results, body.ids.len())
    }
}

/// Checks that a reply has a result for each id.
fn one_each<T>(results: Vec<T>, ids: usize) -> Result<Vec<T>> {
    if results.len() == ids {
        return Ok(results);
    }
    Err(Error::protocol("the reply does not have one result for each id"))
}
