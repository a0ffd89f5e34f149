//! The removal of deleted files.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::file::record::FileRecord;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::types::{DueFiles, Lease, PurgeClaim, Purged};

/// The removal of deleted files.
#[async_trait]
pub trait Purges: Send + Sync + 'static {
    /// Marks at most `limit` TEMP files with `expires_at` ≤ `now` for the purge, of one organization or of
    /// all. Returns their number.
    async fn expire_temp(
        &self,
        organization: Option<&OrganizationId>,
        now: Timestamp,
        limit: usize,
    ) -> Result<u64>;

    /// Claims at most `limit` files among `due` at `holder`, in the order of their due times. A file is due
    /// after its grace period, or after its wait if its removal failed. Files under a hold are omitted.
    /// During a hold, unclaimed files behind it come in storage order. Files of one organization come in the
    /// order of their ids. Claimed files cannot be restored, even after the lease.
    async fn claim_purges(
        &self,
        lease: Lease<'_>,
        holder: &ProviderCode,
        due: DueFiles<'_>,
        limit: usize,
    ) -> Result<Vec<PurgeClaim>>;

    /// Postpones a purge claimed under `lease` until the dropped blobs of `record` at other providers are
    /// confirmed absent. These blobs become due now. The file becomes due at the end of the lease at the
    /// latest, and at once if all these blobs are gone. Counts no failure.
    async fn await_dropped(&self, lease: Lease<'_>, record: &FileRecord) -> Result<()>;

    /// Deletes the records of claimed files after their bytes are confirmed absent, with their dropped LOCAL
    /// blobs, and writes their receipts. Dropped blobs at providers become due separately. Ignores rows that
    /// `owner` has not claimed. Returns the number of deleted records.
    async fn finish_purges(&self, owner: &str, purged: &[Purged], now: Timestamp) -> Result<u64>;

    /// Postpones a claimed purge after a failure. The file stays claimed, and is not due before `retry_at`.
    async fn postpone_purge(&self, owner: &str, id: FileId, retry_at: Timestamp) -> Result<()>;

    /// Returns true if the organization has a deleted file that is not purged yet. Reads a single index
    /// entry.
    async fn has_deleted(&self, organization: &OrganizationId) -> Result<bool>;
}
