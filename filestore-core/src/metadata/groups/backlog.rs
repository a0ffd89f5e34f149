//! Counts of waiting work.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::provider::backlog::ProviderBacklog;
use crate::domain::time::clock::Timestamp;
use crate::metadata::types::{DueFiles, PurgeBacklog};

/// Counts of waiting work.
#[async_trait]
pub trait Backlog: Send + Sync + 'static {
    /// Counts the files that a purge of `due` would find at `now`. For one organization, dropped blobs are
    /// not counted.
    async fn purge_backlog(&self, due: DueFiles<'_>, now: Timestamp) -> Result<PurgeBacklog>;

    /// Counts the work waiting at `now` for each provider: copies, deleted files marked at or before
    /// `marked_before`, and dropped blobs after their grace period. Includes work that waits after a failure.
    /// Omits providers without work. Reads no record.
    async fn backlog(
        &self,
        marked_before: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<ProviderBacklog>>;
}
