//! Bindings of organizations to providers.

use filestore_core::api::{BindingReply, BindingUpdateReply, CreateBinding, UpdateBinding};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

const BINDINGS: &str = "organization-storage-bindings";

/// The most bytes of a list of bindings, which has no pages: about a million of them.
const LIST_LIMIT_BYTES: usize = 256 << 20;

/// The bindings of organizations to providers; [`Client::bindings`] gives access to them.
///
/// ```no_run
/// use filestore_client::api::{CreateBinding, UpdateBinding};
///
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let binding = CreateBinding::new(42, "Example & Sons", "LOCAL");
/// println!("binding {}", client.bindings().create(&binding).await?.id);
///
/// let mut end = UpdateBinding::new(42);
/// end.is_active = Some(false);
/// client.bindings().update(&end).await?;
///
/// let active = client.bindings().list(42).await?.into_iter().find(|binding| binding.is_active);
/// assert_eq!(active, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Bindings<'a> {
    client: &'a Client,
}

impl Client {
    /// Gives access to the bindings of organizations to providers.
    pub fn bindings(&self) -> Bindings<'_> {
        Bindings { client: self }
    }
}

impl Bindings<'_> {
    /// Binds an organization to a provider. [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if
    /// the organization has an active binding already.
    pub async fn create(self, binding: &CreateBinding) -> Result<BindingReply> {
        let request = self.client.request(Method::POST, &[BINDINGS, "create"]).json(binding);
        self.client.json(Call::once(request)).await
    }

    /// Changes an organization's active binding, or resumes its newest one (`is_active: true`).
    /// Fields that are `None` stay as they are.
    pub async fn update(self, update: &UpdateBinding) -> Result<BindingUpdateReply> {
        let request = self.client.request(Method::PUT, &[BINDINGS, "update"]).json(update);

        // Ending a binding that has ended is no success, so a lost reply is not asked for again.
        let call = match update.is_active {
            Some(false) => Call::once(request),
            _ => Call::repeatable(request),
        };
        self.client.json(call).await
    }

    /// Lists all bindings that an organization has or had, newest first; with `None`, those of all
    /// organizations.
    pub async fn list(self, organization_id: impl Into<Option<i64>>) -> Result<Vec<BindingReply>> {
        let mut request = self.client.request(Method::GET, &[BINDINGS]);
        if let Some(organization_id) = organization_id.into() {
            request = request.query(&[("organizationId", organization_id)]);
        }
        let call = Call::repeatable(request).limit_bytes(LIST_LIMIT_BYTES);
        self.client.json(call).await
    }
}
