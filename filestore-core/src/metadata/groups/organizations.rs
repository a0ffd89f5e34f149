//! Organizations and their sub-systems, with what they store.

use async_trait::async_trait;

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::usage::{KnownOrganization, SubSystemUsage, Usage};
use crate::domain::id::{OrganizationId, SubSystem};

/// Organizations and their sub-systems, with what they store. The totals are kept as files come and go, so no
/// call reads records.
#[async_trait]
pub trait Organizations: Send + Sync + 'static {
    /// Lists up to `limit` organizations of `scope` above `after`, in the order of their ids: those that have
    /// files or an active binding.
    async fn list_organizations(
        &self,
        scope: &Scope,
        after: Option<&OrganizationId>,
        limit: usize,
    ) -> Result<Vec<KnownOrganization>>;

    /// Lists up to `limit` sub-systems of an organization above `after` that have files, in the order of their
    /// names.
    async fn list_sub_systems(
        &self,
        organization: &OrganizationId,
        after: Option<&SubSystem>,
        limit: usize,
    ) -> Result<Vec<SubSystemUsage>>;

    /// Returns the files and bytes of the whole store. The cost grows with the number of organizations and
    /// sub-systems, not with the number of files.
    async fn total(&self) -> Result<Usage>;
}
