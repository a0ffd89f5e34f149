//! The objects on their way to a provider, and the holders of files.

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;

use super::types::{Holding, WriteIntent};

/// The objects on their way to a provider, and the holders of files.
#[async_trait]
pub trait Intents: Send + Sync + 'static {
    /// Notes objects that are about to be written.
    async fn begin_writes(&self, intents: Vec<WriteIntent>) -> Result<()>;

    /// Withdraws noted objects that no record will refer to: makes them dropped blobs, to be
    /// removed from `not_before` on. Leaves keys alone that are not noted.
    async fn withdraw_writes(&self, keys: &[BlobKey], not_before: Timestamp) -> Result<()>;

    /// Renews the noted writes of `owner`: they are as young as if they began at `now`.
    async fn renew_writes(&self, owner: &str, now: Timestamp) -> Result<()>;

    /// Withdraws up to `limit` objects noted, or last renewed, before `begun_before`; returns how
    /// many.
    async fn withdraw_old_writes(
        &self,
        begun_before: Timestamp,
        not_before: Timestamp,
        limit: usize,
    ) -> Result<u64>;

    /// Lists up to `limit` READY files of `organization` with ids above `after` that `target` does
    /// not hold, oldest first, deleted ones left out.
    async fn files_elsewhere(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>>;

    /// Counts what each provider holds for `organization`, by status. Reads every file of it.
    async fn holdings(&self, organization: &OrganizationId) -> Result<Vec<Holding>>;

    /// Lists up to `limit` blobs that `provider` holds, with their sizes. May read every file.
    async fn blobs_at(&self, provider: &ProviderCode, limit: usize) -> Result<Vec<(BlobKey, u64)>>;
}
