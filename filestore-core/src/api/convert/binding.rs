//! Bindings.

use crate::api;
use crate::domain::binding::Binding;

impl From<&Binding> for api::BindingReply {
    fn from(binding: &Binding) -> Self {
        Self {
            id: binding.id,
            organization_id: binding.organization.get(),
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
            organization_id: binding.organization.get(),
            is_active: binding.is_active,
            sync_enabled: binding.sync_enabled,
            storage_provider: binding.provider.to_string(),
        }
    }
}
