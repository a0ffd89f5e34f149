//! The purge receipts.

use async_trait::async_trait;

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::domain::report::receipt::PurgedFile;
use crate::domain::time::clock::Timestamp;

/// The purge receipts.
#[async_trait]
pub trait Receipts: Send + Sync + 'static {
    /// Returns the stored facts of a purged file, if the file was within `scope`. The facts exist from the
    /// deletion of the record on, with all blobs that [`finish_purges`] and [`finish_blobs`] received, before
    /// and after.
    ///
    /// [`finish_purges`]: crate::metadata::Purges::finish_purges
    /// [`finish_blobs`]: crate::metadata::Dropped::finish_blobs
    async fn receipt(&self, id: FileId, scope: &Scope) -> Result<Option<PurgedFile>>;

    /// Removes at most `limit` receipts of purges that ended at or before `before`, and at most as many blobs
    /// that were last confirmed absent by then and are on no later receipt. Returns the larger of both
    /// numbers.
    async fn forget_receipts(&self, before: Timestamp, limit: usize) -> Result<u64>;
}
