//! Blobs without a record, until they are removed.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::types::{DueBlob, Lease};

/// Blobs without a record, until they are removed.
#[async_trait]
pub trait Dropped: Send + Sync + 'static {
    /// Lists at most `limit` dropped blobs of `holder` with `not_before` ≤ `now`, oldest first.
    async fn due_blobs(
        &self,
        holder: &ProviderCode,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueBlob>>;

    /// Returns true if `holder` can still have bytes of a dropped blob that is not confirmed absent.
    async fn keeps_dropped(&self, holder: &ProviderCode) -> Result<bool>;

    /// Claims at most `limit` dropped blobs from [`due_blobs`](Self::due_blobs). An engine for a single
    /// process stores no claim, because removing a blob twice does no harm.
    async fn claim_blobs(
        &self,
        lease: Lease<'_>,
        holder: &ProviderCode,
        limit: usize,
    ) -> Result<Vec<DueBlob>>;

    /// Removes dropped blobs after their bytes are confirmed absent, and records this for the receipts. Blobs
    /// within their grace period stay, and become due again at its end, because a delayed write can arrive
    /// until then. A purge that waits for one of the blobs continues. Skips a blob that another run has
    /// finished or claimed, even if its id was reused.
    async fn finish_blobs(&self, blobs: &[DueBlob], now: Timestamp) -> Result<()>;

    /// Postpones a dropped blob after a failed removal, unless another run has finished or claimed it.
    async fn postpone_blob(&self, blob: &DueBlob, retry_at: Timestamp) -> Result<()>;
}
