//! The copies of files to the providers of their organizations.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;

use super::types::{AfterFailure, Lease, SyncClaim, SyncCounts};

/// The copies of files to the providers of their organizations.
#[async_trait]
pub trait Syncs: Send + Sync + 'static {
    /// PENDING → NONE for up to `limit` files whose organization has no active binding to a
    /// provider other than LOCAL, or whose blob is at that binding's provider already. Leaves
    /// `updated_at` alone: nothing a user did changed. Returns the ids.
    async fn settle_sync(&self, limit: usize) -> Result<Vec<FileId>>;

    /// PENDING → SYNCING, under a lease, for up to `limit` files whose wait is over, whose
    /// organization's active binding names one of `targets`, and whose blob is not there yet and not at
    /// one of the `unreadable`.
    /// Organizations take turns, beginning after `after`. Files whose lease has ended are PENDING
    /// again first. Notes the writes of the copies.
    async fn claim_syncs(
        &self,
        lease: Lease<'_>,
        targets: &[ProviderCode],
        unreadable: &[ProviderCode],
        after: Option<&OrganizationId>,
        limit: usize,
    ) -> Result<Vec<SyncClaim>>;

    /// Makes the sync leases of the owner last until the end of `lease`, and renews its noted writes.
    async fn renew_syncs(&self, lease: Lease<'_>) -> Result<()>;

    /// Releases all claims of `owner` as if they had never been made: SYNCING → PENDING.
    async fn release_syncs(&self, owner: &str) -> Result<()>;

    /// Ends a claim after a failed attempt: SYNCING → PENDING or FAILED, as `next` says. Leaves a file
    /// alone that `owner` does not hold any more.
    async fn fail_sync(&self, owner: &str, id: FileId, next: AfterFailure) -> Result<()>;

    /// NONE, SYNCED or FAILED → PENDING for the READY files of `organization` that `target` does
    /// not hold, looking at up to `limit` files with ids above `after`. Returns how many, and the
    /// id to go on after; `None` at the end.
    async fn enqueue_sync(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<(u64, Option<FileId>)>;

    /// FAILED → PENDING, with all attempts ahead, for up to `limit` files; of one organization or
    /// of all. Returns how many.
    async fn retry_sync(&self, organization: Option<&OrganizationId>, limit: usize) -> Result<u64>;

    /// Counts files by sync status, deleted ones left out.
    async fn sync_counts(&self) -> Result<SyncCounts>;
}
