//! Storage providers that take new files.

use filestore_core::api::ProviderReply;
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The storage providers of a server; [`Client::providers`] gives access to them.
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
    /// Gives access to the storage providers.
    pub fn providers(&self) -> Providers<'_> {
        Providers { client: self }
    }
}

impl Providers<'_> {
    /// Lists the active storage providers. [`Admin::providers`](crate::Admin::providers) lists the
    /// inactive ones too.
    pub async fn list(self) -> Result<Vec<ProviderReply>> {
        let request = self.client.request(Method::GET, &["storage-providers"]);
        self.client.json(Call::repeatable(request)).await
    }
}
