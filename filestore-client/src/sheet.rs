//! Contact sheets: the variants of many files in one picture.

use std::pin::Pin;

use filestore_core::api::{Fit, SheetMap};
use reqwest::header::ACCEPT;
use reqwest::{Method, RequestBuilder};

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;
use crate::variant::Variant;

/// The most bytes of a sheet that are read: 16 megapixels take a few megabytes.
const LIMIT_BYTES: usize = 64 << 20;

/// A request for a contact sheet; [`Client::sheet`] makes one. Await the request to get the picture.
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is awaited"]
pub struct SheetRequest {
    client: Client,
    ids: String,
    size: u32,
    fit: Fit,
}

impl Client {
    /// Asks for the variants of up to [`MAX_SHEET_FILES`](crate::api::MAX_SHEET_FILES) files in one
    /// picture, in their order.
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
        SheetRequest { client: self.clone(), ids: ids.join(","), size: 200, fit: Fit::default() }
    }
}

impl SheetRequest {
    /// Sets the side of a cell, one of [`VARIANT_SIZES`](crate::api::VARIANT_SIZES); 200 otherwise.
    pub fn size(mut self, size: u32) -> Self {
        self.size = size;
        self
    }

    /// Sets how each picture fills its cell; [`Fit::Cover`] otherwise.
    pub fn fit(mut self, fit: Fit) -> Self {
        self.fit = fit;
        self
    }

    /// Gets the map of the sheet: the place of each picture, or the reason why it is missing.
    pub async fn map(self) -> Result<SheetMap> {
        let request = self.request().header(ACCEPT, "application/json");
        self.client.json(Call::repeatable(request)).await
    }

    async fn get(self) -> Result<Variant> {
        let request = self.request().header(ACCEPT, "image/webp");
        let reply = self.client.perform(Call::repeatable(request).limit_bytes(LIMIT_BYTES)).await?;
        Ok(Variant::from(reply))
    }

    fn request(&self) -> RequestBuilder {
        let size = self.size.to_string();
        let mut query = vec![("ids", self.ids.as_str()), ("size", &size)];
        if self.fit != Fit::default() {
            query.push(("fit", self.fit.as_str()));
        }
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
