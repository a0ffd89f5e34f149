//! The variant cache.

use filestore_core::api::VariantCacheReport;
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's variant cache. [`Admin::variants`](super::Admin::variants) returns this group.
#[derive(Debug, Clone, Copy)]
pub struct Variants<'a> {
    pub(super) client: &'a Client,
}

impl Variants<'_> {
    /// Reports the content of the variant cache.
    pub async fn status(self) -> Result<VariantCacheReport> {
        let request = self.client.admin_request(Method::GET, &["variants", "status"]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Empties the variant cache, then returns.
    ///
    /// The client does not retry this call after a lost reply, because a second call would report
    /// an empty cache.
    pub async fn prune(self) -> Result<VariantCacheReport> {
        let request = self.client.admin_request(Method::POST, &["variants", "prune"]);
        self.client.json(Call::once(request).endless()).await
    }
}
