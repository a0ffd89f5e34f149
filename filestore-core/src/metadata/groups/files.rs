//! The records of files.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::{FileRecord, Thumbhash};
use crate::domain::file::usage::Usage;
use crate::domain::id::{BlobId, FileId, OrganizationId, Sha256};
use crate::domain::time::clock::Timestamp;
use crate::metadata::types::{InsertFiles, Inserted, UpdateFile, Updated};

/// The records of files.
#[async_trait]
pub trait Files: Send + Sync + 'static {
    /// Returns the file if it exists within `scope`. Includes deleted files until the purge removes them.
    async fn file(&self, id: FileId, scope: &Scope) -> Result<Option<Arc<FileRecord>>>;

    /// Returns the file if it is in memory. On `None`, call [`Self::file`]. The result is never stale,
    /// because a change is visible here before its call returns. The call is for hot paths that must answer
    /// on their own thread.
    fn cached_file(&self, id: FileId, scope: &Scope) -> Option<Arc<FileRecord>> {
        let _ = (id, scope);
        None
    }

    /// Returns the files of `ids` that exist within `scope`, in any order, like [`Self::file`]. Ids must be distinct
    /// and few.
    async fn files(&self, ids: &[FileId], scope: &Scope) -> Result<Vec<Arc<FileRecord>>>;

    /// Returns the LOCAL blob key in a record for each of `ids`, for recovery and for completing a rename.
    /// Omits ids without a record.
    async fn live_local_keys(&self, ids: &[BlobId]) -> Result<Vec<BlobKey>>;

    /// Lists at most `limit` files on the local disk that were stored at `since` or later, in the order of
    /// their ids after `after`. Reads all rows.
    async fn local_files_since(
        &self,
        since: Timestamp,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>>;

    /// Inserts files, all or none. Checks the idempotency key first, so that a retry does not exceed the
    /// quota because of its own earlier bytes. Replaces a remembered reply that has expired at the first
    /// record's `created_at`. Refuses a blob that already has a record. A blob at a provider must have a
    /// [`WriteIntent`], which ends here.
    ///
    /// [`WriteIntent`]: crate::metadata::WriteIntent
    async fn insert_files(&self, insert: InsertFiles) -> Result<Inserted>;

    /// Changes a file if it is still in the expected state and not claimed by the purge. If the change
    /// deletes the file, marks it for the purge. If the change restores the file, removes the mark. A new
    /// blob at a provider must have a [`WriteIntent`], which ends here.
    ///
    /// [`WriteIntent`]: crate::metadata::WriteIntent
    async fn update_file(&self, update: UpdateFile) -> Result<Updated>;

    /// Stores the placeholder of the file's blob with this digest, and changes nothing else. Does nothing if
    /// the file is gone or has other bytes. Later changes that keep the bytes also keep the placeholder.
    async fn note_thumbhash(
        &self,
        id: FileId,
        sha256: &Sha256,
        thumbhash: &Thumbhash,
    ) -> Result<()>;

    /// Returns the number of files and bytes of the organization, in all states, until their records are
    /// removed. The cost does not depend on their number.
    async fn usage(&self, organization: &OrganizationId) -> Result<Usage>;

    /// Returns only the bytes of [`usage`](Self::usage), for uploads under a quota.
    async fn stored_bytes(&self, organization: &OrganizationId) -> Result<u64>;
}
