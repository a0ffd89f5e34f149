//! The usage of an organization.

use crate::api::{UsageAt, UsageByLocation, UsageReply};
use crate::domain::config::StoreConfig;
use crate::domain::id::OrganizationId;
use crate::domain::usage::{Stored, Usage};

impl UsageReply {
    /// Makes the reply for `organization`, with the quotas that `config` sets.
    pub fn of(organization: &OrganizationId, usage: &Usage, config: &StoreConfig) -> Self {
        let total = usage.total();
        Self {
            organization_id: organization.to_string(),
            files: total.files,
            bytes: total.bytes,
            by_location: UsageByLocation { local: usage.local.into(), cloud: usage.cloud.into() },
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
