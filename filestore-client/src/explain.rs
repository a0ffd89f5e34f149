//! Explanations of files.

use filestore_core::api::Explanation;
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

impl Client {
    /// Explains where a file is and why, what comes next and when, which attempts failed, and which
    /// events the log has of the file. Also explains deleted files, and purged files as long as
    /// their purge receipt is kept.
    ///
    /// Fails with [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for an unknown id, and for a
    /// file that the key cannot read.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let explained = client.explain("01JD0000000000000000000000").await?;
    /// for step in &explained.next {
    ///     println!("{}: {}", step.code, step.sentence);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn explain(&self, file_id: impl AsRef<str>) -> Result<Explanation> {
        let request = self.file_request(Method::GET, file_id.as_ref(), &["explain"])?;
        self.json(Call::idempotent(request)).await
    }
}
