//! The objects on their way to a provider.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::time::clock::Timestamp;
use crate::metadata::types::WriteIntent;

/// The objects on their way to a provider.
#[async_trait]
pub trait Intents: Send + Sync + 'static {
    /// Records objects that are about to be written.
    async fn begin_writes(&self, intents: Vec<WriteIntent>) -> Result<()>;

    /// Withdraws recorded objects that no record will refer to. The objects become dropped blobs, to be
    /// removed from `not_before` on. Ignores keys without an intent.
    async fn withdraw_writes(&self, keys: &[BlobKey], not_before: Timestamp) -> Result<()>;

    /// Renews the write intents of `owner`, as if the writes began at `now`.
    async fn renew_writes(&self, owner: &str, now: Timestamp) -> Result<()>;

    /// Withdraws at most `limit` objects with intents from before `begun_before`. Returns their number.
    async fn withdraw_old_writes(
        &self,
        begun_before: Timestamp,
        not_before: Timestamp,
        limit: usize,
    ) -> Result<u64>;
}
