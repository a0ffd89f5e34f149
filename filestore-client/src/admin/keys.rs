//! API keys.

use filestore_core::api::{CreateKey, KeyReply, NewKeyReply, RotateKey};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's API keys. [`Admin::keys`](super::Admin::keys) returns this group.
///
/// A secret appears only in the reply to [`create`](Self::create) or [`rotate`](Self::rotate),
/// because the server stores only a digest of it.
///
/// ```no_run
/// use filestore_client::api::{CreateKey, RotateKey};
///
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let keys = client.admin().keys();
/// let shop = CreateKey::new(["42"], ["read", "write"]).name("the web shop");
/// let created = keys.create(&shop).await?;
/// println!("{} {}", created.about.id, created.key);
///
/// let rotated = keys.rotate(&created.about.id, &RotateKey::default()).await?;
/// println!("the new secret is {}", rotated.key);
/// keys.revoke(&created.about.id).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    pub(super) client: &'a Client,
}

impl Keys<'_> {
    /// Creates an API key. Only this reply contains the secret.
    pub async fn create(self, key: &CreateKey) -> Result<NewKeyReply> {
        let request = self.client.admin_request(Method::POST, &["keys"]).json(key);
        self.client.json(Call::once(request)).await
    }

    /// Lists all API keys without their secrets, newest first.
    pub async fn list(self) -> Result<Vec<KeyReply>> {
        let request = self.client.admin_request(Method::GET, &["keys"]);
        self.client.json(Call::idempotent(request)).await
    }

    /// Gives a key a new secret. Only this reply contains the new secret.
    ///
    /// The old secret stops working at once, or after the overlap that `rotation` sets.
    pub async fn rotate(self, id: &str, rotation: &RotateKey) -> Result<NewKeyReply> {
        let path = ["keys", id, "rotate"];
        let request = self.client.admin_request(Method::POST, &path).json(rotation);
        self.client.json(Call::once(request)).await
    }

    /// Revokes a key. The server refuses the key from now on. If the key is already revoked, the
    /// call succeeds without an effect.
    pub async fn revoke(self, id: &str) -> Result<KeyReply> {
        let request = self.client.admin_request(Method::POST, &["keys", id, "revoke"]);
        self.client.json(Call::idempotent(request)).await
    }
}
