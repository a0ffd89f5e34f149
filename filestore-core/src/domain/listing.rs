//! The filter of a listing.

use super::id::{OrganizationId, SubSystem};
use super::status::{PurgeStatus, Status};

/// The files that a listing shows. Listings are newest first (by file id, descending).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListFilter {
    /// Only files of this organization.
    pub organization_id: Option<OrganizationId>,
    /// Only files of this part of the application.
    pub sub_system: Option<SubSystem>,
    /// Only files in this status.
    pub status: Option<Status>,
    /// `None`: only files that are not deleted. `Some`: only files with this purge status.
    pub purge_status: Option<PurgeStatus>,
}
