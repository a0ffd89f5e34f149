//! The rows that can refer to a blob: records, dropped blobs and write intents.

use async_trait::async_trait;

use super::walk::NamedBlob;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;

/// The rows that can refer to a blob: records, dropped blobs and write intents.
#[async_trait]
pub trait Referrers: Send + Sync + 'static {
    /// Finds the referrer of each key at `holder`. Results have the order of the keys.
    async fn referrers(&self, holder: &ProviderCode, keys: &[BlobKey]) -> Result<Vec<Referrer>>;

    /// Adds the `keys` at `holder` without a referrer to the dropped blobs, to be removed from `not_before`
    /// on. Returns for each key whether it was added.
    async fn adopt_orphans(
        &self,
        holder: &ProviderCode,
        keys: &[BlobKey],
        not_before: Timestamp,
    ) -> Result<Vec<bool>>;

    /// Lists at most `limit` blobs of live records that are also marked for removal, as dropped blobs or by
    /// unfinished write intents. Reads all such rows.
    async fn doomed_blobs(&self, limit: usize) -> Result<Vec<NamedBlob>>;

    /// Removes the removal marks of the blob, if its record still names it. Returns true if there were any.
    async fn spare_blob(&self, blob: &NamedBlob) -> Result<bool>;
}

/// The referrer of a key at a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Referrer {
    /// A record.
    Record,
    /// A dropped blob. The blob is removed when due.
    Dropped,
    /// A write intent.
    Note,
    /// A record names the same blob under another key, or at another holder.
    Elsewhere {
        /// The file in its row.
        file_id: String,
        /// The holder in the record.
        holder: String,
        /// The key in the record.
        key: String,
    },
    /// No referrer.
    Nobody,
}
