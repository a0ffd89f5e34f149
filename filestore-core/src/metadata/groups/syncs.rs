//! The copies of files to the providers of their organizations.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::metadata::types::{AfterFailure, Lease, SyncClaim, SyncCounts};

/// Copies from the local disk to the organizations' providers.
#[async_trait]
pub trait Syncs: Send + Sync + 'static {
    /// PENDING → NONE for at most `limit` files that need no copy. Either their organization has no active
    /// binding to a provider other than LOCAL, or their blob is already at the binding's provider. Does not
    /// change `updated_at`, because no user changed the files. Returns the ids.
    async fn settle_sync(&self, limit: usize) -> Result<Vec<FileId>>;

    /// PENDING → SYNCING, under a lease, for at most `limit` files after their wait. The organization's
    /// active binding must name one of `targets`. The blob must not be there yet, and not at one of the
    /// `unreadable` providers. Organizations take turns, beginning after `after`. Files with an expired lease
    /// first become PENDING. Records write intents for the copies.
    async fn claim_syncs(
        &self,
        lease: Lease<'_>,
        targets: &[ProviderCode],
        unreadable: &[ProviderCode],
        after: Option<&OrganizationId>,
        limit: usize,
    ) -> Result<Vec<SyncClaim>>;

    /// Ends a claim after a failed attempt: SYNCING → PENDING or FAILED, as `next` says, and stores the
    /// reason in the record. Changes nothing if `owner` no longer has the claim.
    async fn fail_sync(
        &self,
        owner: &str,
        id: FileId,
        next: AfterFailure,
        reason: &str,
    ) -> Result<()>;

    /// NONE, SYNCED or FAILED → PENDING for the READY files of `organization` that are not at `target`. Reads
    /// at most `limit` files with ids after `after`. Returns the number of changed files, and the id to
    /// continue after, or `None` at the end.
    async fn enqueue_sync(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<(u64, Option<FileId>)>;

    /// FAILED → PENDING, with all attempts available again, for at most `limit` files, of one organization or
    /// of all. Returns their number.
    async fn retry_sync(&self, organization: Option<&OrganizationId>, limit: usize) -> Result<u64>;

    /// Counts files by sync status, without deleted files.
    async fn sync_counts(&self) -> Result<SyncCounts>;

    /// Counts the PENDING, SYNCING and FAILED files of one organization, without deleted files. The counts of the
    /// other statuses are 0.
    async fn sync_queue_of(&self, organization: &OrganizationId) -> Result<SyncCounts>;
}
