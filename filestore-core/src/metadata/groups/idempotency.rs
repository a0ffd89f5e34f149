//! The remembered replies to uploads.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::id::OrganizationId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::types::IdempotencyEntry;

/// The remembered replies to uploads.
#[async_trait]
pub trait Idempotency: Send + Sync + 'static {
    /// Returns the remembered reply to `key` of `organization`, unless it has expired at `now`.
    async fn idempotency(
        &self,
        organization: &OrganizationId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyEntry>>;

    /// Removes at most `limit` expired replies. Returns their number.
    async fn forget_idempotency(&self, now: Timestamp, limit: usize) -> Result<u64>;
}
