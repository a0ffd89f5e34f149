//! Storage providers, with their state.

use filestore_core::api::{AdminProvider, ProviderCheckReport};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's storage providers, with their state.
/// [`Admin::providers`](super::Admin::providers) returns this group.
///
/// ```no_run
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let report = client.admin().providers().check("s3-eu").await?;
/// for step in &report.steps {
///     println!("{}: {} {}", step.name, step.outcome, step.detail);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Providers<'a> {
    pub(super) client: &'a Client,
}

impl Providers<'_> {
    /// Lists all providers, `LOCAL` first. The list includes inactive providers.
    pub async fn list(self) -> Result<Vec<AdminProvider>> {
        let request = self.client.admin_request(Method::GET, &["providers"]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Tests a provider: abilities, limits, and whether it can store files.
    ///
    /// If the provider fails, the call still succeeds, and the report contains the failure.
    pub async fn check(self, code: &str) -> Result<ProviderCheckReport> {
        let request = self.client.admin_request(Method::POST, &["providers", code, "check"]);
        self.client.json(Call::idempotent(request).endless()).await
    }
}
