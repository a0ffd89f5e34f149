//! Putting a file of a snapshot back under its id.

use super::FileStore;
use super::placement::MayLeave;
use super::quota::{over_file_quota, over_quota};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::BlobId;
use crate::domain::lifecycle::FileState;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::domain::status::{Location, Status, SyncStatus};
use crate::metadata::{BindingSeen, InsertFiles, Inserted};
use crate::storage::ByteStream;
use crate::tasks;

impl FileStore {
    /// Stores a record that the store has not, with its bytes, as a LOCAL file under a new key. It is
    /// not deleted, whatever it was; a temporary one has its whole lifetime ahead.
    ///
    /// `DigestMismatch` if the bytes are not those of the record; the errors of an upload otherwise.
    pub(crate) async fn put_back(&self, record: FileRecord, bytes: ByteStream) -> Result<()> {
        let inner = self.inner();
        let place = inner.place(&record.organization_id, MayLeave::No).await?;
        let blob_id = BlobId::generate(inner.now());
        let (size_bytes, sha256) = (record.blob.size_bytes, record.blob.sha256);
        let staged = inner.stores.local().stage_all(blob_id, size_bytes, sha256, bytes).await?;

        // Kept before the commit is attempted, which goes on by itself from here on.
        staged.keep();
        let (store, record) = (self.clone(), self.put_back_as(record, blob_id)?);
        let inserting = tasks::spawn(async move { store.insert_back(record, place.seen).await });
        inserting.await.map_err(|lost| Error::internal("putting a file back", lost))?
    }

    fn put_back_as(&self, mut record: FileRecord, blob_id: BlobId) -> Result<FileRecord> {
        let now = self.inner().now();
        record.blob.key = record.blob.key.sibling(blob_id);
        record.blob.provider = ProviderCode::local();
        record.updated_at = record.updated_at.max(now);
        record.expires_at = None;

        record.state = match record.state.status() {
            Status::Ready => FileState::uploaded(Location::Local),
            Status::Temp => {
                record.expires_at = Some(now.plus(self.inner().config().temp_ttl));
                FileState::uploaded_temp()
            }
            status @ Status::Thumbnail => {
                FileState::from_row(status, SyncStatus::None, None, Location::Local)
                    .map_err(|error| Error::internal("putting a file back", error))?
            }
        };
        Ok(record)
    }

    async fn insert_back(&self, record: FileRecord, binding: BindingSeen) -> Result<()> {
        let inner = self.inner();
        let key = record.blob.key.clone();
        let config = inner.config();
        let insert = InsertFiles {
            records: vec![record],
            binding: binding.clone(),
            quota_bytes: config.quota_bytes,
            quota_files: config.quota_files,
            idempotency: None,
            permit: None,
        };

        let refused = match inner.metadata.insert_files(insert).await {
            Ok(Inserted::Done) => {
                inner.publish_soon([key]);
                inner.wake_sync(&binding);
                return Ok(());
            }
            Ok(Inserted::OverQuota) => over_quota(config.quota_bytes.unwrap_or_default()),
            Ok(Inserted::OverFileQuota) => over_file_quota(config.quota_files.unwrap_or_default()),
            Ok(_) => Error::new(
                ErrorKind::Conflict,
                "the organization's binding changed while a file was restored: restore again",
            ),
            Err(error) => error,
        };
        inner.discard_uncommitted(vec![key.blob_id()], &refused).await;
        Err(refused)
    }
}
