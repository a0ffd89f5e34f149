//! What an explanation of a file reads.

use async_trait::async_trait;

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::domain::report::explain::FileWork;
use crate::domain::time::clock::Timestamp;

/// What an explanation of a file reads.
#[async_trait]
pub trait Explaining: Send + Sync + 'static {
    /// Returns the file's record and the work that waits for it at `now`, from one snapshot, if the file exists
    /// within `scope`. Includes deleted files until the purge removes them. The cost depends only on the replaced
    /// blobs of this file. Takes as long for a foreign file as for an unknown one.
    async fn file_work(
        &self,
        id: FileId,
        scope: &Scope,
        now: Timestamp,
    ) -> Result<Option<FileWork>>;
}
