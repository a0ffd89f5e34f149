//! Gallery variants of images.

use std::fmt;

use bytes::Bytes;
use filestore_core::api::Fit;
use reqwest::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use reqwest::{Method, StatusCode};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::transport::Call;
use crate::transport::reply::{Received, header};

/// The most bytes of a variant that are read. An original of up to 1000 pixels a side comes as it
/// is; uncompressed that is at most 8 MB, and metadata may come on top.
const LIMIT_BYTES: usize = 64 << 20;

/// A variant, as the server sent it.
#[derive(Clone, PartialEq, Eq)]
pub struct Variant {
    /// Bytes of the picture.
    pub bytes: Bytes,
    /// Media type: `image/webp`, or the original's type if it is small enough already.
    pub content_type: String,
    /// ETag, for [`Client::variant_if_changed`].
    pub etag: Option<String>,
}

impl Client {
    /// Gets the square variant of an image with sides of `size` pixels, one of
    /// [`VARIANT_SIZES`](crate::api::VARIANT_SIZES).
    ///
    /// ```no_run
    /// use filestore_client::Fit;
    ///
    /// # async fn run(client: filestore_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let variant = client.variant("01JD0000000000000000000000", 400, Fit::Cover).await?;
    /// std::fs::write("small.webp", &variant.bytes)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn variant(&self, file_id: &str, size: u32, fit: Fit) -> Result<Variant> {
        let reply = self.ask_variant(file_id, size, fit, None).await?;
        if reply.status == StatusCode::NOT_MODIFIED {
            return Err(Error::protocol("the server answered 304 to an unconditional request"));
        }
        Ok(Variant::from(reply))
    }

    /// Gets the variant, or `None` if it is still the one with this ETag.
    ///
    /// ```no_run
    /// use filestore_client::Fit;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let id = "01JD0000000000000000000000";
    /// let first = client.variant(id, 200, Fit::Inside).await?;
    /// let etag = first.etag.as_deref().unwrap_or_default();
    /// assert!(client.variant_if_changed(id, 200, Fit::Inside, etag).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn variant_if_changed(
        &self,
        file_id: &str,
        size: u32,
        fit: Fit,
        etag: &str,
    ) -> Result<Option<Variant>> {
        let reply = self.ask_variant(file_id, size, fit, Some(etag)).await?;
        Ok((reply.status != StatusCode::NOT_MODIFIED).then(|| Variant::from(reply)))
    }

    async fn ask_variant(
        &self,
        file_id: &str,
        size: u32,
        fit: Fit,
        etag: Option<&str>,
    ) -> Result<Received> {
        let side = size.to_string();
        let mut request = self.file_request(Method::GET, file_id, &[&side, &side])?;
        if fit != Fit::default() {
            request = request.query(&[("fit", fit.as_str())]);
        }
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        self.perform(Call::repeatable(request).limit_bytes(LIMIT_BYTES)).await
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
