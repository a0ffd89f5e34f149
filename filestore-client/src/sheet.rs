//! Contact sheets: one image that shows the variants of many files.

use std::pin::Pin;
use std::time::Duration;

use filestore_core::api::{Fit, SheetMap};
use reqwest::header::ACCEPT;
use reqwest::{Method, RequestBuilder};

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;
use crate::variant::Variant;

/// Maximum size of a sheet in bytes. A sheet of 16 megapixels needs a few megabytes.
const LIMIT_BYTES: usize = 64 << 20;

/// A request for a contact sheet, returned by [`Client::sheet`]. Await the request to get the
/// image.
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is awaited"]
pub struct SheetRequest {
    client: Client,
    ids: String,
    size: u32,
    fit: Fit,
    wait: Option<Duration>,
}

impl Client {
    /// Requests one image that shows up to [`MAX_SHEET_FILES`](crate::api::MAX_SHEET_FILES) files
    /// in the given order.
    ///
    /// For example, get the image positions and then the sheet itself:
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let request = client.sheet(["01JD0000000000000000000000", "01JD0000000000000000000001"]);
    /// for cell in request.clone().map().await?.cells {
    ///     println!("{} at {:?}, {:?}", cell.file_id, cell.x, cell.y);
    /// }
    /// std::fs::write("page.webp", &request.await?.bytes)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sheet(&self, file_ids: impl IntoIterator<Item = impl AsRef<str>>) -> SheetRequest {
        let ids: Vec<_> = file_ids.into_iter().map(|id| id.as_ref().to_owned()).collect();
        let (client, ids) = (self.clone(), ids.join(","));
        SheetRequest { client, ids, size: 200, fit: Fit::default(), wait: None }
    }
}

impl SheetRequest {
    /// Sets the cell side in pixels, one of [`VARIANT_SIZES`](crate::api::VARIANT_SIZES)
    /// (default 200).
    pub fn size(mut self, size: u32) -> Self {
        self.size = size;
        self
    }

    /// Sets the way to fit each image into its cell (default [`Fit::Cover`]).
    pub fn fit(mut self, fit: Fit) -> Self {
        self.fit = fit;
        self
    }

    /// Waits at most this long for images, up to 10 s, and leaves the cells of the others empty. By
    /// default, the server replies when it has all images. To see which images are missing, ask for
    /// the [`map`](Self::map): their code is `busy`.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Returns each image's position, or the reason why an image is missing.
    pub async fn map(self) -> Result<SheetMap> {
        let request = self.request().header(ACCEPT, "application/json");
        self.client.json(Call::idempotent(request)).await
    }

    async fn get(self) -> Result<Variant> {
        let request = self.request().header(ACCEPT, "image/webp");
        let reply = self.client.perform(Call::idempotent(request).limit_bytes(LIMIT_BYTES)).await?;
        Ok(Variant::from(reply))
    }

    fn request(&self) -> RequestBuilder {
        let size = self.size.to_string();
        let mut query = vec![("ids", self.ids.as_str()), ("size", &size)];
        if self.fit != Fit::default() {
            query.push(("fit", self.fit.as_str()));
        }
        let wait = self.wait.map(|wait| wait.as_millis().to_string());
        query.extend(wait.as_deref().map(|wait| ("wait_ms", wait)));
        self.client.request(Method::GET, &["sheets"]).query(&query)
    }
}

impl IntoFuture for SheetRequest {
    type Output = Result<Variant>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.get())
    }
}
