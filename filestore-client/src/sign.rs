//! URLs that work without a key.

use filestore_core::api::{SignRequest, SignUploadRequest, SignedUrlReply};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

impl Client {
    /// Asks for a URL under which anybody can read a file until it expires: its content, or a variant of
    /// it. Equal requests within a few minutes give equal URLs, so that caches recognise them.
    ///
    /// The URL is absolute, except over a Unix socket to a server that does not know its public URL.
    ///
    /// ```no_run
    /// use filestore_client::api::{Fit, SignRequest};
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let thumbnail = SignRequest::variant(200, Fit::Cover).expires_in_s(600);
    /// let signed = client.sign("01JD0000000000000000000000", &thumbnail).await?;
    /// println!("<img src=\"{}\">", signed.url.replace('&', "&amp;"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign(
        &self,
        file_id: impl AsRef<str>,
        request: &SignRequest,
    ) -> Result<SignedUrlReply> {
        let call = self.file_request(Method::POST, file_id.as_ref(), &["sign"])?.json(request);
        self.signed(call).await
    }

    /// Asks for a URL to which anybody can upload one file until it expires, as a form with the field
    /// `file`. Owner, type and largest size of the file are those that are asked for here.
    ///
    /// ```no_run
    /// use filestore_client::api::SignUploadRequest;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let avatar = SignUploadRequest::new("42", "avatars").max_size(2 << 20).mime_type("image/png");
    /// println!("{}", client.sign_upload(&avatar).await?.url);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign_upload(&self, request: &SignUploadRequest) -> Result<SignedUrlReply> {
        let call = self.request(Method::POST, &["files", "sign-upload"]).json(request);
        self.signed(call).await
    }

    async fn signed(&self, request: reqwest::RequestBuilder) -> Result<SignedUrlReply> {
        let mut reply: SignedUrlReply = self.json(Call::repeatable(request)).await?;
        if let Some(base) = &self.settings().reachable_base
            && reply.url.starts_with('/')
        {
            reply.url = format!("{}{}", base.as_str().trim_end_matches('/'), reply.url);
        }
        Ok(reply)
    }
}
