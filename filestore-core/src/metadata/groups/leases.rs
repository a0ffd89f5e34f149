//! The terms of claims, and of waits after failures.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::types::{Claims, Lease};

/// The terms of claims, and of waits after failures.
#[async_trait]
pub trait Leases: Send + Sync + 'static {
    /// Extends the claims of `lease.owner` to `lease.until`. For syncs, also renews the owner's write intents
    /// at `lease.now`.
    async fn renew_claims(&self, claims: Claims, lease: Lease<'_>) -> Result<()>;

    /// Releases the claims of `owner`, so that they are due at once. Files to purge stay claimed. Files to
    /// copy become PENDING, as if they had never been claimed.
    async fn release_claims(&self, claims: Claims, owner: &str) -> Result<()>;

    /// Ends all leases, holds and entries, and makes SYNCING files PENDING. Call it at startup, when no other
    /// process can have any ([`Company::Alone`](crate::metadata::Company)). Failed purges and syncs wait
    /// until `max_retry_at` at most, and dropped blobs until `max_blob_wait_until` at most, because a fast
    /// clock might have set waits of years.
    async fn end_leases(
        &self,
        max_retry_at: Timestamp,
        max_blob_wait_until: Timestamp,
    ) -> Result<()>;

    /// Ends the waits after failures at `provider`, which answers again. At most `limit` purges, dropped
    /// blobs and copies each become due at `now`. Returns their number.
    async fn end_waits(&self, provider: &ProviderCode, now: Timestamp, limit: usize)
    -> Result<u64>;
}
