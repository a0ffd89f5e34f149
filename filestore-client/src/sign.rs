//! Signed URLs.

use filestore_core::api::{SignRequest, SignUploadRequest, SignedUrlReply};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

impl Client {
    /// Signs a URL that lets anyone read a file, or a variant of it, until the URL expires.
    ///
    /// Equal requests within a few minutes return the same URL, so that caches recognize it. If the
    /// server revokes the client's API key, or the key loses its rights, the URL stops working too.
    ///
    /// The URL is absolute. Exception: over a Unix socket, a server without a public URL returns a
    /// path.
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

    /// Signs a URL that lets anyone upload one file until the URL expires. The upload is a form
    /// with the field `file`.
    ///
    /// The request fixes the organization, the media type and the maximum size. If the server
    /// revokes the client's API key or erases the organization, the URL stops working too.
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
        let mut reply: SignedUrlReply = self.json(Call::idempotent(request)).await?;
        if let Some(base) = &self.settings().reachable_base {
            let base = base.as_str().trim_end_matches('/');
            for url in std::iter::once(&mut reply.url).chain(&mut reply.urls) {
                if url.starts_with('/') {
                    *url = format!("{base}{url}");
                }
            }
        }
        Ok(reply)
    }
}
