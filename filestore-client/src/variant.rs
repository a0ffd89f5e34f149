//! Variants of images.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use filestore_core::api::Fit;
use reqwest::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use reqwest::{Method, StatusCode};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::transport::Call;
use crate::transport::reply::{Received, header};

/// Maximum size of a variant in bytes: the limit of an animated variant. A small original can be
/// the variant itself. With up to 1000 pixels per side, it has at most 8 MB without compression,
/// plus metadata.
const LIMIT_BYTES: usize = 64 << 20;

/// A variant of an image.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variant {
    /// Bytes of the image.
    pub bytes: Bytes,
    /// Media type: `image/webp`, or the original's type if the original is small enough.
    pub content_type: String,
    /// ETag, for [`VariantRequest::if_changed`].
    pub etag: Option<String>,
}

/// A request for a variant, returned by [`Client::variant`]. Await the request to get the variant.
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is awaited"]
pub struct VariantRequest {
    client: Client,
    file_id: String,
    size: u32,
    fit: Fit,
    animated: bool,
}

impl Client {
    /// Requests a square variant of an image. `size` is the side in pixels, one of
    /// [`VARIANT_SIZES`](crate::api::VARIANT_SIZES).
    ///
    /// For example, get a cropped thumbnail and a large variant with the whole image:
    ///
    /// ```no_run
    /// use filestore_client::Fit;
    ///
    /// # async fn run(client: filestore_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let id = "01JD0000000000000000000000";
    /// let square = client.variant(id, 400).await?;
    /// let whole = client.variant(id, 1000).fit(Fit::Inside).await?;
    /// std::fs::write("small.webp", &square.bytes)?;
    /// std::fs::write("large.webp", &whole.bytes)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn variant(&self, file_id: impl AsRef<str>, size: u32) -> VariantRequest {
        let file_id = file_id.as_ref().to_owned();
        VariantRequest { client: self.clone(), file_id, size, fit: Fit::default(), animated: false }
    }
}

impl VariantRequest {
    /// Sets the way to fit the image into the square (default [`Fit::Cover`]).
    pub fn fit(mut self, fit: Fit) -> Self {
        self.fit = fit;
        self
    }

    /// Requests all animation frames as an animated WebP. For a still image, you get the
    /// still variant.
    ///
    /// If the server does not support animated variants, the call fails with
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid).
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let moving = client.variant("01JD0000000000000000000000", 400).animated().await?;
    /// std::fs::write("moving.webp", &moving.bytes)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn animated(mut self) -> Self {
        self.animated = true;
        self
    }

    /// Returns the variant, or `None` for an unchanged ETag.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let request = client.variant("01JD0000000000000000000000", 200);
    /// let first = request.clone().await?;
    /// let etag = first.etag.as_deref().unwrap_or_default();
    /// assert!(request.if_changed(etag).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn if_changed(self, etag: &str) -> Result<Option<Variant>> {
        let reply = self.ask(Some(etag)).await?;
        Ok((reply.status != StatusCode::NOT_MODIFIED).then(|| Variant::from(reply)))
    }

    async fn get(self) -> Result<Variant> {
        let reply = self.ask(None).await?;
        if reply.status == StatusCode::NOT_MODIFIED {
            return Err(Error::protocol("the server answered 304 to an unconditional request"));
        }
        Ok(Variant::from(reply))
    }

    async fn ask(&self, etag: Option<&str>) -> Result<Received> {
        let side = self.size.to_string();
        let mut request = self.client.file_request(Method::GET, &self.file_id, &[&side, &side])?;

        if self.fit != Fit::default() {
            request = request.query(&[("fit", self.fit.as_str())]);
        }
        if self.animated {
            request = request.query(&[("animated", "true")]);
        }
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        self.client.perform(Call::idempotent(request).limit_bytes(LIMIT_BYTES)).await
    }
}

impl IntoFuture for VariantRequest {
    type Output = Result<Variant>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.get())
    }
}

impl From<Received> for Variant {
    fn from(reply: Received) -> Self {
        Self {
            content_type: header(&reply.headers, &CONTENT_TYPE).unwrap_or_default(),
            etag: header(&reply.headers, &ETAG),
            bytes: reply.body,
        }
    }
}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variant")
            .field("len_bytes", &self.bytes.len())
            .field("content_type", &self.content_type)
            .field("etag", &self.etag)
            .finish()
    }
}
