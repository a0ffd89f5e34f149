//! The bindings of organizations to providers.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::ProviderCode;
use crate::domain::provider::binding::{Binding, BindingChange, NewBinding};
use crate::domain::time::clock::Timestamp;
use crate::metadata::types::BindingOutcome;

/// The bindings of organizations to providers.
#[async_trait]
pub trait Bindings: Send + Sync + 'static {
    /// Returns the active binding of the organization.
    async fn active_binding(&self, organization: OrganizationNumber) -> Result<Option<Binding>>;

    /// Returns the active bindings of several organizations, in any order.
    async fn active_bindings(&self, organizations: &[OrganizationNumber]) -> Result<Vec<Binding>>;

    /// Lists bindings, newest first (by id, descending); of one organization or of all.
    async fn list_bindings(&self, organization: Option<OrganizationNumber>)
    -> Result<Vec<Binding>>;

    /// Creates an active binding.
    async fn create_binding(&self, binding: NewBinding, now: Timestamp) -> Result<BindingOutcome>;

    /// Changes the active binding. If none is active and `change.is_active` is `Some(true)`, resumes the
    /// newest terminated binding. Resuming keeps `id` and `effective_from`, clears `effective_to`, and needs
    /// a provider in `active_providers`. An update of an active binding does not check `active_providers`,
    /// because the caller checks `change.provider`.
    async fn change_binding(
        &self,
        organization: OrganizationNumber,
        change: BindingChange,
        active_providers: &[ProviderCode],
        now: Timestamp,
    ) -> Result<BindingOutcome>;
}
