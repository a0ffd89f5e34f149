//! Walks over records and write intents, page by page.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;

/// Walks over records and write intents, page by page.
#[async_trait]
pub trait Walk: Send + Sync + 'static {
    /// Returns at most `limit` records after `after`, in the order of their ids. Includes deleted and damaged
    /// records.
    async fn walk_files(&self, after: &str, limit: usize) -> Result<WalkedFiles>;

    /// Tests for each blob if the record of its file still names the blob, and if the purge has not claimed
    /// the record.
    async fn still_named(&self, blobs: &[NamedBlob]) -> Result<Vec<bool>>;

    /// Returns for each file whether it has a record in any state.
    async fn known_files(&self, ids: &[FileId]) -> Result<Vec<bool>>;

    /// Lists at most `limit` write intents from before `begun_before`: holder and key.
    async fn old_writes(
        &self,
        begun_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<(ProviderCode, BlobKey)>>;
}

/// A page of a walk over all records.
#[derive(Debug, Clone, Default)]
pub struct WalkedFiles {
    /// The page's records.
    pub files: Vec<WalkedFile>,
    /// Position of the next page. `None` at the end.
    pub next: Option<String>,
}

/// A record in a walk.
#[derive(Debug, Clone)]
pub enum WalkedFile {
    /// An intact record, and whether the purge has claimed it.
    Sound(Box<FileRecord>, PurgeClaimed),
    /// An unreadable record.
    Damaged {
        /// The stored text of the id.
        file_id: String,
        /// The reason why the record cannot be read.
        reason: String,
    },
}

/// The purge's claim on a record. The bytes of a claimed record can be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeClaimed {
    /// The purge may have removed the bytes.
    Yes,
    /// The bytes must exist.
    No,
}

/// A blob, as a record names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedBlob {
    /// The file.
    pub file_id: FileId,
    /// The blob holder.
    pub holder: ProviderCode,
    /// The blob's key.
    pub key: BlobKey,
}

impl NamedBlob {
    /// Returns the blob of `record`.
    pub fn of(record: &FileRecord) -> Self {
        let blob = &record.blob;
        Self { file_id: record.file_id, holder: blob.provider.clone(), key: blob.key.clone() }
    }
}
