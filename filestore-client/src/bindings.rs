//! Bindings of organizations to storage providers.

use filestore_core::api::{
    BindingReply, BindingUpdateReply, CreateBinding, OrganizationNumber, UpdateBinding,
};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

const BINDINGS: &str = "organization-storage-bindings";

/// Maximum size of a binding list, in bytes. The list has no pages, and this is about a million
/// bindings.
const LIST_LIMIT_BYTES: usize = 256 << 20;

/// The organizations' bindings to storage providers, returned by [`Client::bindings`].
///
/// For example, bind an organization and end the binding again:
///
/// ```no_run
/// use filestore_client::api::{CreateBinding, UpdateBinding};
///
/// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
/// let binding = CreateBinding::new(42.try_into()?, "Example & Sons", "LOCAL");
/// println!("binding {}", client.bindings().create(&binding).await?.id);
///
/// let mut end = UpdateBinding::new(42.try_into()?);
/// end.is_active = Some(false);
/// client.bindings().update(&end).await?;
///
/// let all = client.bindings().list(Some(42.try_into()?)).await?;
/// assert!(all.iter().all(|binding| !binding.is_active));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Bindings<'a> {
    client: &'a Client,
}

impl Client {
    /// Returns the calls for bindings of organizations to storage providers.
    pub fn bindings(&self) -> Bindings<'_> {
        Bindings { client: self }
    }
}

impl Bindings<'_> {
    /// Binds an organization to a provider.
    ///
    /// Fails with [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if the organization already
    /// has an active binding.
    pub async fn create(self, binding: &CreateBinding) -> Result<BindingReply> {
        let request = self.client.request(Method::POST, &[BINDINGS, "create"]).json(binding);
        self.client.json(Call::once(request)).await
    }

    /// Changes an organization's active binding, or resumes its newest binding (`is_active:
    /// true`). Fields with `None` stay unchanged.
    pub async fn update(self, update: &UpdateBinding) -> Result<BindingUpdateReply> {
        let request = self.client.request(Method::PUT, &[BINDINGS, "update"]).json(update);

        // A second request to end a binding fails, so a lost reply allows no retry.
        let call = match update.is_active {
            Some(false) => Call::once(request),
            _ => Call::idempotent(request),
        };
        self.client.json(call).await
    }

    /// Lists all current and former bindings of an organization, or of all organizations with
    /// `None`. The newest binding is first.
    pub async fn list(self, organization: Option<OrganizationNumber>) -> Result<Vec<BindingReply>> {
        let mut request = self.client.request(Method::GET, &[BINDINGS]);
        if let Some(organization) = organization {
            request = request.query(&[("organizationId", organization)]);
        }

        let call = Call::idempotent(request).limit_bytes(LIST_LIMIT_BYTES);
        self.client.json(call).await
    }
}
