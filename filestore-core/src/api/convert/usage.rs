//! The storage usage of organizations and their sub-systems.

use crate::api::{
    OrganizationBinding, OrganizationReply, OrganizationsReply, SubSystemReply, SubSystemsReply,
    UsageAt, UsageByLocation, UsageReply,
};
use crate::domain::config::StoreConfig;
use crate::domain::file::usage::{KnownOrganization, Stored, SubSystemUsage, Usage};
use crate::domain::id::OrganizationId;
use crate::domain::provider::binding::Binding;

impl UsageReply {
    /// Creates the reply for `organization`, with the quotas of `config`.
    pub fn of(organization: &OrganizationId, usage: &Usage, config: &StoreConfig) -> Self {
        let total = usage.total();
        Self {
            organization_id: organization.to_string(),
            files: total.files,
            bytes: total.bytes,
            by_location: UsageByLocation { local: usage.local.into(), cloud: usage.cloud.into() },
            temp: usage.temp.into(),
            deleted: usage.deleted.into(),
            quota_files: config.quota_files,
            quota_bytes: config.quota_bytes,
        }
    }
}

impl From<Stored> for UsageAt {
    fn from(stored: Stored) -> Self {
        Self { files: stored.files, bytes: stored.bytes }
    }
}

impl OrganizationsReply {
    /// Creates a page from organizations and the cursor for the next page, with the quotas of
    /// `config`.
    pub fn of(
        organizations: Vec<KnownOrganization>,
        next_cursor: Option<String>,
        config: &StoreConfig,
    ) -> Self {
        let items = organizations.into_iter().map(|one| OrganizationReply {
            organization_id: one.organization_id.to_string(),
            files: one.stored.files,
            bytes: one.stored.bytes,
            quota_files: config.quota_files,
            quota_bytes: config.quota_bytes,
            binding: one.binding.map(Into::into),
        });
        Self { items: items.collect(), next_cursor }
    }
}

impl From<Binding> for OrganizationBinding {
    fn from(binding: Binding) -> Self {
        Self {
            organization_name: binding.organization_name,
            storage_provider: binding.provider.to_string(),
            sync_enabled: binding.sync_enabled,
        }
    }
}

impl SubSystemsReply {
    /// Creates a page from sub-systems and the cursor for the next page.
    pub fn of(sub_systems: Vec<SubSystemUsage>, next_cursor: Option<String>) -> Self {
        let items = sub_systems.into_iter().map(|one| SubSystemReply {
            sub_system: one.sub_system.to_string(),
            files: one.total.files,
            bytes: one.total.bytes,
            temp: one.temp.into(),
            deleted: one.deleted.into(),
        });
        Self { items: items.collect(), next_cursor }
    }
}
