//! The removal of deleted files and of dropped blobs, and its receipts.

use async_trait::async_trait;

use crate::domain::backlog::ProviderBacklog;
use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::receipt::PurgedFile;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;

use super::types::{DueBlob, Lease, PurgeBacklog, PurgeClaim, Purged};

/// The removal of deleted files and of dropped blobs, and its receipts.
#[async_trait]
pub trait Purges: Send + Sync + 'static {
    /// Marks up to `limit` TEMP files with `expires_at` ≤ `now` for purge; returns how many.
    async fn expire_temp(&self, now: Timestamp, limit: usize) -> Result<u64>;

    /// Claims up to `limit` deleted files that `holder` holds, marked at or before `marked_before`, in
    /// the order in which they came due: a file after its grace period, one that failed after its
    /// wait. Files that a hold keeps are left out, and while one lasts the unclaimed ones behind it come in
    /// the order in which they were stored. From here on they cannot be restored, even after the lease.
    async fn claim_purges(
        &self,
        lease: Lease<'_>,
        holder: &ProviderCode,
        marked_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<PurgeClaim>>;

    /// Makes the purge leases of `owner` last until `lease_until`.
    async fn renew_purges(&self, owner: &str, lease_until: Timestamp) -> Result<()>;

    /// Releases all purge claims of `owner`. The files stay claimed, and are due at once.
    async fn release_purges(&self, owner: &str) -> Result<()>;

    /// Postpones a purge claimed under `lease` until the dropped blobs of `record` at other providers
    /// are found absent: these come due now. The file is given to a run at the end of the lease at the
    /// latest, and at once if none of these blobs is left. Counts no failure.
    async fn await_dropped(&self, lease: Lease<'_>, record: &FileRecord) -> Result<()>;

    /// Deletes the records of claimed files whose bytes are confirmed absent, with their dropped
    /// LOCAL blobs (those at providers come due by themselves), and writes their receipts; rows not
    /// claimed by `owner` are left alone. Returns how many records are gone.
    async fn finish_purges(&self, owner: &str, purged: &[Purged], now: Timestamp) -> Result<u64>;

    /// Returns what is on record of a purged file, if it was one within `scope`: from the deletion of its
    /// record on, with the blobs that [`finish_purges`](Self::finish_purges) and
    /// [`finish_blobs`](Self::finish_blobs) were told of, before and after.
    async fn receipt(&self, id: FileId, scope: &Scope) -> Result<Option<PurgedFile>>;

    /// Forgets up to `limit` receipts of purges that ended at or before `before`, and as many blobs that
    /// were last found absent by then and are on no later receipt. Returns the larger of both counts.
    async fn forget_receipts(&self, before: Timestamp, limit: usize) -> Result<u64>;

    /// Postpones a claimed purge after a failure: the file stays claimed, and is not given to a run
    /// before `retry_at`.
    async fn postpone_purge(&self, owner: &str, id: FileId, retry_at: Timestamp) -> Result<()>;

    /// Counts what a purge would find at `now`.
    async fn purge_backlog(&self, marked_before: Timestamp, now: Timestamp)
    -> Result<PurgeBacklog>;

    /// Counts the work that waits at `now`, by the provider that has it to do: copies, deleted files
    /// marked at or before `marked_before`, dropped blobs past their grace period. Work that waits
    /// after a failure counts too; providers without any work are left out. Reads no record.
    async fn backlog(
        &self,
        marked_before: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<ProviderBacklog>>;

    /// Lists up to `limit` dropped blobs of `holder` with `not_before` ≤ `now`, oldest first.
    async fn due_blobs(
        &self,
        holder: &ProviderCode,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueBlob>>;

    /// Tells whether `holder` may still have bytes of a dropped blob: one that was not found absent yet.
    async fn keeps_dropped(&self, holder: &ProviderCode) -> Result<bool>;

    /// Claims up to `limit` dropped blobs that [`due_blobs`](Self::due_blobs) lists. Removal is idempotent: an
    /// engine that one process has for itself need not keep the claim.
    async fn claim_blobs(
        &self,
        lease: Lease<'_>,
        holder: &ProviderCode,
        limit: usize,
    ) -> Result<Vec<DueBlob>> {
        self.due_blobs(holder, lease.now, limit).await
    }

    /// Makes the leases of dropped blobs of `owner` last until `lease_until`.
    async fn renew_blobs(&self, owner: &str, lease_until: Timestamp) -> Result<()> {
        let _ = (owner, lease_until);
        Ok(())
    }

    /// Releases all dropped blobs that `owner` has claimed: they are due at once.
    async fn release_blobs(&self, owner: &str) -> Result<()> {
        let _ = owner;
        Ok(())
    }

    /// Forgets dropped blobs whose bytes are confirmed absent, and notes it for the receipts. Those still within their grace period
    /// stay, and come due once more at its end: a delayed write may land until then. A purge that
    /// waits for one of the blobs goes on. A blob that another run has finished or claimed meanwhile is passed
    /// over, also if a later one has got its id.
    async fn finish_blobs(&self, blobs: &[DueBlob], now: Timestamp) -> Result<()>;

    /// Ends the waits after failures of up to `limit` purges, dropped blobs and copies each of
    /// `provider`, which answers again: they are due at `now`. Returns how many.
    async fn end_waits(&self, provider: &ProviderCode, now: Timestamp, limit: usize)
    -> Result<u64>;

    /// Postpones a dropped blob after a failed removal, unless another run has finished or claimed it.
    async fn postpone_blob(&self, blob: &DueBlob, retry_at: Timestamp) -> Result<()>;
}
