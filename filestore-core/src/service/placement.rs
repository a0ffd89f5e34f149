//! Where a new blob goes: what the organization's active binding means for it.

use super::Inner;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::OrganizationId;
use crate::domain::provider::ProviderCode;
use crate::domain::status::Location;
use crate::metadata::BindingSeen;

/// A decision, with what it was decided from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) location: Location,
    pub(super) provider: ProviderCode,
    pub(super) seen: BindingSeen,
}

impl Inner {
    /// Decides where a new blob of `organization` goes. Every provider of the registry is LOCAL for
    /// now, and a blob that syncs later starts LOCAL as well, so the answer is LOCAL; what varies is
    /// whether a binding is required and which one was seen.
    pub(super) async fn place(&self, organization: &OrganizationId) -> Result<Placement> {
        let number = organization.binding_organization();
        let active = match number {
            Some(number) => self.metadata.active_binding(number).await?,
            None => None,
        };
        if active.is_none() && self.config.require_binding {
            return Err(Error::new(
                ErrorKind::BindingRequired,
                format!("uploads need an active storage binding of organization {organization}"),
            )
            .with_field("organization_id"));
        }
        let active = active.map(|binding| (binding.provider, binding.sync_enabled));
        Ok(Placement {
            location: Location::Local,
            provider: ProviderCode::local(),
            seen: BindingSeen { organization: number, active },
        })
    }
}
