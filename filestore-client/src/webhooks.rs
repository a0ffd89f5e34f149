//! Webhooks.

use filestore_core::api::{
    CreateWebhook, DeletedWebhookReply, EditWebhook, EnableWebhook, NewWebhookReply,
    RedeliverReply, RedeliverWebhook, RotateWebhook, WebhookFailures, WebhookFailuresQuery,
    WebhookPingReply, WebhookReply,
};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

/// The server's webhooks. [`Client::webhooks`] returns this group. The caller needs a key with the scope `admin` for
/// all organizations.
///
/// ```no_run
/// use filestore_client::api::CreateWebhook;
///
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let new = CreateWebhook::new("https://search.example.org/hook").types(["file.ready"]);
/// let made = client.webhooks().create(&new).await?;
/// println!("give this secret to the receiver: {}", made.secret);
/// assert!(client.webhooks().ping(&made.about.id).await?.delivered);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Webhooks<'a> {
    client: &'a Client,
}

impl Client {
    /// Returns the calls for webhooks.
    pub fn webhooks(&self) -> Webhooks<'_> {
        Webhooks { client: self }
    }
}

impl Webhooks<'_> {
    /// Makes a webhook. Only this reply contains the secret.
    pub async fn create(self, new: &CreateWebhook) -> Result<NewWebhookReply> {
        self.client.json(Call::once(self.request(Method::POST, &[]).json(new))).await
    }

    /// Lists all webhooks, oldest first.
    pub async fn list(self) -> Result<Vec<WebhookReply>> {
        self.client.json(Call::idempotent(self.request(Method::GET, &[]))).await
    }

    /// Returns a webhook, and how its deliveries go.
    pub async fn get(self, id: &str) -> Result<WebhookReply> {
        self.client.json(Call::idempotent(self.request(Method::GET, &[id]))).await
    }

    /// Changes the settings of a webhook.
    pub async fn edit(self, id: &str, edit: &EditWebhook) -> Result<WebhookReply> {
        self.client.json(Call::idempotent(self.request(Method::PATCH, &[id]).json(edit))).await
    }

    /// Deletes a webhook.
    pub async fn delete(self, id: &str) -> Result<DeletedWebhookReply> {
        self.client.json(Call::once(self.request(Method::DELETE, &[id]))).await
    }

    /// Gives a webhook a new secret. Only this reply contains it. The former secret signs too until the end of the
    /// overlap, a day by default.
    pub async fn rotate(self, id: &str, rotation: &RotateWebhook) -> Result<NewWebhookReply> {
        let request = self.request(Method::POST, &[id, "rotate"]).json(rotation);
        self.client.json(Call::once(request)).await
    }

    /// Sends an event of the type `webhook.ping`, and waits for the answer of the endpoint.
    pub async fn ping(self, id: &str) -> Result<WebhookPingReply> {
        self.client.json(Call::once(self.request(Method::POST, &[id, "ping"]))).await
    }

    /// Lists a page of the events that the endpoint did not accept at once.
    pub async fn failures(self, id: &str, query: &WebhookFailuresQuery) -> Result<WebhookFailures> {
        let request = self.request(Method::GET, &[id, "failures"]).query(query);
        self.client.json(Call::idempotent(request)).await
    }

    /// Sends events again: one, a range, or all that failed.
    pub async fn redeliver(self, id: &str, what: &RedeliverWebhook) -> Result<RedeliverReply> {
        let request = self.request(Method::POST, &[id, "redeliver"]).json(what);
        self.client.json(Call::once(request)).await
    }

    /// Sends events again after the webhook was disabled.
    pub async fn enable(self, id: &str, from: &EnableWebhook) -> Result<WebhookReply> {
        let request = self.request(Method::POST, &[id, "enable"]).json(from);
        self.client.json(Call::idempotent(request)).await
    }

    /// Stops sending events.
    pub async fn disable(self, id: &str) -> Result<WebhookReply> {
        self.client.json(Call::idempotent(self.request(Method::POST, &[id, "disable"]))).await
    }

    fn request(self, method: Method, path: &[&str]) -> reqwest::RequestBuilder {
        let path: Vec<_> = std::iter::once("webhooks").chain(path.iter().copied()).collect();
        self.client.request(method, &path)
    }
}
