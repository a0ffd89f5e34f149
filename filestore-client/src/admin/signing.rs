//! Secrets that sign URLs.

use filestore_core::api::SigningSecretReply;
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's signing secrets. [`Admin::signing`](super::Admin::signing) returns this group.
///
/// The replies contain names and dates, never the secrets themselves.
///
/// For example, if a secret leaked, rotate and then revoke the old secrets:
///
/// ```no_run
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let signing = client.admin().signing();
/// for old in signing.rotate().await?.iter().filter(|secret| !secret.signs) {
///     signing.revoke(&old.kid).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Signing<'a> {
    pub(super) client: &'a Client,
}

impl Signing<'_> {
    /// Lists the signing secrets.
    pub async fn list(self) -> Result<Vec<SigningSecretReply>> {
        let request = self.client.admin_request(Method::GET, &["signing-secrets"]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Creates a secret that signs all new URLs. Existing URLs keep working until they expire.
    pub async fn rotate(self) -> Result<Vec<SigningSecretReply>> {
        let request = self.client.admin_request(Method::POST, &["signing-secrets", "rotate"]);
        self.client.json(Call::once(request)).await
    }

    /// Removes a secret from the data directory. The server refuses all URLs that it signed at
    /// once.
    pub async fn revoke(self, kid: &str) -> Result<Vec<SigningSecretReply>> {
        let request = self.client.admin_request(Method::POST, &["signing-secrets", kid, "revoke"]);
        self.client.json(Call::once(request)).await
    }
}
