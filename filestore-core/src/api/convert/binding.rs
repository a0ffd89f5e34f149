//! Bindings.

use crate::api;
use crate::domain::error::{Error, Result};
use crate::domain::id::OrganizationNumber;
use crate::domain::provider::binding::Binding;

impl From<OrganizationNumber> for api::OrganizationNumber {
    fn from(number: OrganizationNumber) -> Self {
        Self::unchecked(number.get())
    }
}

impl TryFrom<api::OrganizationNumber> for OrganizationNumber {
    type Error = Error;

    /// `InvalidField` for a number that no organization can have.
    fn try_from(number: api::OrganizationNumber) -> Result<Self> {
        number.get().try_into()
    }
}

impl From<&Binding> for api::BindingReply {
    fn from(binding: &Binding) -> Self {
        Self {
            id: binding.id,
            organization_id: binding.organization.into(),
            organization_name: binding.organization_name.clone(),
            storage_provider: binding.provider.to_string(),
            sync_enabled: binding.sync_enabled,
            is_active: binding.is_active,
            effective_from: binding.effective_from.to_string(),
            effective_to: binding.effective_to.map(|at| at.to_string()),
        }
    }
}

impl From<&Binding> for api::BindingUpdateReply {
    fn from(binding: &Binding) -> Self {
        Self {
            id: binding.id,
            organization_id: binding.organization.into(),
            is_active: binding.is_active,
            sync_enabled: binding.sync_enabled,
            storage_provider: binding.provider.to_string(),
        }
    }
}
