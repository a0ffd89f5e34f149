//! Restores a file of a snapshot under its id.

use std::slice;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::lifecycle::FileState;
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::{Location, Status, SyncStatus};
use crate::domain::id::{BlobId, OrganizationId};
use crate::domain::report::erasure::Era;
use crate::metadata::{BindingSeen, InsertFiles, Inserted};
use crate::service::FileStore;
use crate::service::providers::cloud_write::{Objects, Refusal};
use crate::service::uploads::placement::{MayLeave, Placement};
use crate::storage::ByteStream;
use crate::tasks;

/// Stores a record that the store lacks, together with its bytes, as a LOCAL file under a new key. The
/// restored file is not deleted, even if it was deleted in the snapshot. A temporary file gets its whole
/// lifetime again.
///
/// Returns `DigestMismatch` if the bytes do not match the record. Returns `Conflict` if the organization was
/// erased after `era`, the snapshot's era. Other errors are those of an upload.
pub(crate) async fn put_back(
    store: &FileStore,
    record: FileRecord,
    bytes: ByteStream,
    era: Era,
) -> Result<()> {
    let inner = store.inner();
    if inner.metadata.is_erased_since(&record.organization_id, era).await? {
        return Err(erased_since_snapshot(&record.organization_id));
    }
    let place = inner.place(&record.organization_id, MayLeave::No).await?;
    let blob_id = BlobId::generate(inner.now());
    let (size_bytes, sha256) = (record.blob.size_bytes, record.blob.sha256);
    let staged = inner.stores.local().stage_all(blob_id, size_bytes, sha256, bytes).await?;

    let staged_key = record.blob.key.sibling(blob_id);
    let record = put_back_as(store, record, &place, blob_id)?;
    let objects = if place.provider.is_local() {
        inner.no_objects()
    } else {
        inner.write_through(slice::from_ref(&record), &[staged_key]).await?
    };

    // Kept before the commit is attempted, which goes on by itself from here on.
    let (staged, store) = (staged.keep(), store.clone());
    let inserting =
        tasks::spawn(
            async move { insert_back(&store, record, place.seen, era, objects, staged).await },
        );
    inserting.await.map_err(|lost| Error::internal("putting a file back", lost))?
}

fn put_back_as(
    store: &FileStore,
    mut record: FileRecord,
    place: &Placement,
    staged: BlobId,
) -> Result<FileRecord> {
    let now = store.inner().now();
    record.blob.key = record.blob.key.sibling(place.blob_id(staged, now));
    record.blob.provider = place.provider.clone();
    record.updated_at = record.updated_at.max(now);
    (record.expires_at, record.deletion) = (None, None);

    record.state = match record.state.status() {
        Status::Ready => FileState::uploaded(Location::Local),
        Status::Temp => {
            record.expires_at = Some(now.plus(store.inner().config().temp_ttl));
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
    store: &FileStore,
    record: FileRecord,
    binding: BindingSeen,
    era: Era,
    objects: Objects,
    staged: BlobId,
) -> Result<()> {
    let inner = store.inner();
    let (key, is_on_disk) = (record.blob.key.clone(), record.blob.provider.is_local());
    let (config, organization) = (inner.config(), record.organization_id.clone());
    let insert = InsertFiles {
        records: vec![record],
        binding: binding.clone(),
        quota_bytes: config.quota_bytes,
        quota_files: config.quota_files,
        idempotency: None,
        permit: None,
        era,
        upload: None,
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
        Ok(Inserted::OverQuota) => {
            store.over_quota(&organization, config.quota_bytes.unwrap_or_default()).await
        }
        Ok(Inserted::OverFileQuota) => {
            store.over_file_quota(&organization, config.quota_files.unwrap_or_default()).await
        }
        Ok(Inserted::Erased) => erased_since_snapshot(&organization),
        Ok(_) => Error::new(
            ErrorKind::Conflict,
            "the organization's binding changed while a file was restored: restore again",
        ),
        Err(error) => error,
    };
    inner.discard_uncommitted(vec![staged], &refused).await;
    Err(refused)
}

fn erased_since_snapshot(organization: &OrganizationId) -> Error {
    let message = format!(
        "the organization {organization} was erased after the snapshot was taken: its files are not put back"
    );
    Error::new(ErrorKind::Conflict, message).with_field("organization_id")
}
