//! The holders of files.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::metadata::types::Holding;

/// The holders of files.
#[async_trait]
pub trait Holdings: Send + Sync + 'static {
    /// Lists at most `limit` READY files of `organization` with ids after `after` that are not at `target`,
    /// oldest first, without deleted files.
    async fn files_elsewhere(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>>;

    /// Counts the organization's files at each provider by status. Reads all its files.
    async fn holdings(&self, organization: &OrganizationId) -> Result<Vec<Holding>>;

    /// Lists at most `limit` blobs at `provider`, with their sizes. Can read every file.
    async fn blobs_at(&self, provider: &ProviderCode, limit: usize) -> Result<Vec<(BlobKey, u64)>>;
}
