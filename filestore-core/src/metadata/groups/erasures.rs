//! The erasures of organizations.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::id::OrganizationId;
use crate::domain::report::erasure::{Era, LeftInDatabase, Removed};
use crate::domain::time::clock::Timestamp;

/// The erasures of organizations.
#[async_trait]
pub trait Erasures: Send + Sync + 'static {
    /// Returns the last era that this process knows: all erasures that it ran, and recent erasures of other
    /// servers. Reads memory only.
    fn era(&self) -> Era;

    /// Ends an organization's era. From now on, inserts of an earlier era fail. Makes all its removals
    /// due at `now`: deleted files, which can no longer be restored, even within their grace period, and
    /// dropped blobs. Removes the remembered replies, and returns their number.
    async fn end_era(&self, organization: &OrganizationId, now: Timestamp) -> Result<u64>;

    /// Returns true if an organization was erased after `era`.
    async fn is_erased_since(&self, organization: &OrganizationId, era: Era) -> Result<bool>;

    /// Removes the bindings, remembered replies and empty totals of an organization. Returns the numbers of
    /// bindings and replies.
    async fn forget_organization(&self, organization: &OrganizationId) -> Result<Removed>;

    /// Counts the remaining rows of an organization. Reads whole tables, so that damaged rows count too.
    async fn left_of(&self, organization: &OrganizationId) -> Result<LeftInDatabase>;
}
