//! Storage providers that accept new files.

use filestore_core::api::ProviderReply;
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's storage providers, returned by [`Client::providers`].
///
/// ```no_run
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// for provider in client.providers().list().await? {
///     println!("{}  {}", provider.provider_code, provider.provider_name);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Providers<'a> {
    client: &'a Client,
}

impl Client {
    /// Returns the calls for storage providers.
    pub fn providers(&self) -> Providers<'_> {
        Providers { client: self }
    }
}

impl Providers<'_> {
    /// Lists the active storage providers. For all providers, see
    /// [`admin::Providers::list`](crate::admin::Providers::list).
    pub async fn list(self) -> Result<Vec<ProviderReply>> {
        let request = self.client.request(Method::GET, &["storage-providers"]);
        self.client.json(Call::idempotent(request)).await
    }
}
