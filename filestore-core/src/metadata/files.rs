//! The records of files, and the replies that are remembered of uploads.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::{BlobId, FileId, OrganizationId, Sha256};
use crate::domain::listing::{ListFilter, ListPosition};
use crate::domain::path::BlobKey;
use crate::domain::record::{FileRecord, Thumbhash};
use crate::domain::scope::Scope;
use crate::domain::usage::Usage;

use super::types::{IdempotencyEntry, InsertFiles, Inserted, ListedFiles, UpdateFile, Updated};

/// The records of files, and the replies that are remembered of uploads.
#[async_trait]
pub trait Files: Send + Sync + 'static {
    /// Returns the file, if it exists within `scope`; deleted ones included until the purge removed
    /// them.
    async fn file(&self, id: FileId, scope: &Scope) -> Result<Option<Arc<FileRecord>>>;

    /// Returns the file from memory, if the engine happens to hold it: `None` means "ask
    /// [`Self::file`]". Never stale: a change is visible here before the call that made it returns.
    /// For hot paths that want to answer without leaving their thread.
    fn cached_file(&self, id: FileId, scope: &Scope) -> Option<Arc<FileRecord>> {
        let _ = (id, scope);
        None
    }

    /// Lists up to `limit` files after `after` (from the first one on, if `None`), in the order that
    /// [`ListFilter`] says. Costs the same in a large table as in a small one; so a filter that no index
    /// answers may show fewer files than there are, and say where to go on.
    async fn list_files(
        &self,
        filter: &ListFilter,
        scope: &Scope,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> Result<ListedFiles>;

    /// Returns the LOCAL blob key that some record refers to with each of `ids`, for recovery and
    /// for completing a rename; ids that no record refers to are left out.
    async fn live_local_keys(&self, ids: &[BlobId]) -> Result<Vec<BlobKey>>;

    /// Lists up to `limit` files that the service's own disk holds and that were stored at `since` or
    /// later, in the order of their ids above `after`. Reads all rows.
    async fn local_files_since(
        &self,
        since: Timestamp,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>>;

    /// Inserts files, all or none. Checks the remembered key first, so that the bytes of an earlier
    /// request with the same key do not put this one over the quota; replaces an entry that had
    /// expired by the first record's `created_at`. Refuses a blob that some record refers to
    /// already. A blob that a provider holds must have its [`WriteIntent`], which ends here.
    ///
    /// [`WriteIntent`]: super::WriteIntent
    async fn insert_files(&self, insert: InsertFiles) -> Result<Inserted>;

    /// Changes a file if it is still as expected and not claimed by the purge. Marks the file for
    /// the purge when the change deletes it and clears the mark when it restores it. A new blob
    /// that a provider holds must have its [`WriteIntent`], which ends here.
    ///
    /// [`WriteIntent`]: super::WriteIntent
    async fn update_file(&self, update: UpdateFile) -> Result<Updated>;

    /// Notes the placeholder of the file's blob with this digest; nothing else of the record changes.
    /// Does nothing if the file is gone or has other bytes. A change that keeps the bytes keeps it.
    async fn note_thumbhash(
        &self,
        id: FileId,
        sha256: &Sha256,
        thumbhash: &Thumbhash,
    ) -> Result<()>;

    /// Returns the remembered reply to `key` of `organization`, unless expired at `now`.
    async fn idempotency(
        &self,
        organization: &OrganizationId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyEntry>>;

    /// Forgets up to `limit` expired replies; returns how many.
    async fn forget_idempotency(&self, now: Timestamp, limit: usize) -> Result<u64>;

    /// Returns the bytes the organization stores, all states counted until their records are gone.
    async fn stored_bytes(&self, organization: &OrganizationId) -> Result<u64>;

    /// Returns the files and bytes the organization stores, counted as
    /// [`stored_bytes`](Self::stored_bytes) counts. Costs the same however many they are.
    async fn usage(&self, organization: &OrganizationId) -> Result<Usage>;
}
