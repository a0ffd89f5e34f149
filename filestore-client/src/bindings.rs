//! Bindings of organizations to providers.

use filestore_core::api::{BindingReply, BindingUpdateReply, CreateBinding, UpdateBinding};
use reqwest::Method;

use crate::client::Client;
use crate::error::Result;
use crate::transport::Call;

const BINDINGS: &str = "organization-storage-bindings";

impl Client {
    /// Binds an organization to a provider. [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if
    /// it has an active binding already.
    ///
    /// ```no_run
    /// use filestore_client::api::CreateBinding;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let binding = CreateBinding::new(42, "Example & Sons", "LOCAL");
    /// println!("binding {}", client.create_binding(&binding).await?.id);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_binding(&self, binding: &CreateBinding) -> Result<BindingReply> {
        let request = self.request(Method::POST, &[BINDINGS, "create"]).json(binding);
        self.json(Call::once(request)).await
    }

    /// Changes an organization's active binding, or resumes its newest one (`is_active: true`).
    /// Fields that are `None` stay as they are.
    ///
    /// ```no_run
    /// use filestore_client::api::UpdateBinding;
    ///
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let mut end = UpdateBinding::new(42);
    /// end.is_active = Some(false);
    /// client.update_binding(&end).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_binding(&self, update: &UpdateBinding) -> Result<BindingUpdateReply> {
        let request = self.request(Method::PUT, &[BINDINGS, "update"]).json(update);
        // Ending a binding that has ended is no success, so a lost reply is not asked for again.
        let call = match update.is_active {
            Some(false) => Call::once(request),
            _ => Call::repeatable(request),
        };
        self.json(call).await
    }

    /// Lists all bindings that an organization has or had, newest first; with `None`, those of all organizations.
    ///
    /// ```no_run
    /// # async fn run(client: filestore_client::Client) -> filestore_client::Result<()> {
    /// let active = client.bindings(42).await?.into_iter().find(|binding| binding.is_active);
    /// # let _ = active;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bindings(
        &self,
        organization_id: impl Into<Option<i64>>,
    ) -> Result<Vec<BindingReply>> {
        let mut request = self.request(Method::GET, &[BINDINGS]);
        if let Some(organization_id) = organization_id.into() {
            request = request.query(&[("organizationId", organization_id)]);
        }
        self.json(Call::repeatable(request)).await
    }
}
