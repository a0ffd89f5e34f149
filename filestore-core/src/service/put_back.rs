//! Putting a file of a snapshot back under its id.

use std::slice;

use super::FileStore;
use super::cloud_write::{Objects, Refusal};
use super::placement::{MayLeave, Placement};
use super::quota::{over_file_quota, over_quota};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::BlobId;
use crate::domain::lifecycle::FileState;
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

        let staged_key = record.blob.key.sibling(blob_id);
        let record = self.put_back_as(record, &place, blob_id)?;
        let objects = if place.provider.is_local() {
            inner.no_objects()
        } else {
            inner.write_through(slice::from_ref(&record), &[staged_key]).await?
        };

        // Kept before the commit is attempted, which goes on by itself from here on.
        let (staged, store) = (staged.keep(), self.clone());
        let inserting =
            tasks::spawn(
                async move { store.insert_back(record, place.seen, objects, staged).await },
            );
        inserting.await.map_err(|lost| Error::internal("putting a file back", lost))?
    }

    fn put_back_as(
        &self,
        mut record: FileRecord,
        place: &Placement,
        staged: BlobId,
    ) -> Result<FileRecord> {
        let now = self.inner().now();
        record.blob.key = record.blob.key.sibling(place.blob_id(staged, now));
        record.blob.provider = place.provider.clone();
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

    async fn insert_back(
        &self,
        record: FileRecord,
        binding: BindingSeen,
        objects: Objects,
        staged: BlobId,
    ) -> Result<()> {
        let inner = self.inner();
        let (key, is_on_disk) = (record.blob.key.clone(), record.blob.provider.is_local());
        let config = inner.config();
        let insert = InsertFiles {
            records: vec![record],
            binding: binding.clone(),
            quota_bytes: config.quota_bytes,
            quota_files: config.quota_files,
            idempotency: None,
            permit: None,
        };

        let inserted = inner.metadata.insert_files(insert).await;
        match &inserted {
            Ok(Inserted::Done) => objects.refer(),
            refused => objects.withdraw(Refusal::of(refused)).await,
        }

        let refused = match inserted {
            Ok(Inserted::Done) => {
                if is_on_disk {
                    inner.publish_soon([key]);
                } else {
                    inner.discard(vec![staged]).await;
                }
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
        inner.discard_uncommitted(vec![staged], &refused).await;
        Err(refused)
    }
}
