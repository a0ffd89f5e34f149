//! Inserts and changes of records.
//!
//! # Locking
//! A change first locks its row, and then the data from which it is decided: the organization's binding, and
//! its usage if there is a quota. An insert has no row yet. It first takes a shared lock of its
//! organization's era, so that an erasure waits for it. Then it takes its idempotency key or permit. A second
//! request with the same key or permit waits for the first.

use crate::domain::file::record::{FileRecord, Thumbhash};
use crate::domain::file::status::PurgeStatus;
use crate::domain::id::OrganizationId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{BindingSeen, Expected, InsertFiles, Inserted, UpdateFile, Updated, Writes};

use super::inserted_rows::InsertedRows;
use super::row::{self, id, sides};
use super::usage::{by_location, stored_bytes};
use super::{bindings, erasures, idempotency, resumable_writes, signing, terms};
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::{Lock, Param, Sql};
use crate::metadata::postgres::work::{dropped, intents};

/// Selects and locks the row of a file, if it has the expected state. `$9` is true if concurrent edits do not
/// matter. `$10` is true if the change restores a deleted file. A file that an erasure deleted or made due
/// stays deleted.
pub(in crate::metadata::postgres) const EXPECTED: &str =
    "SELECT size_bytes, blob_key, metadata FROM files WHERE file_id = $1
     AND version = $2 AND status = $3 AND sync_status = $4 AND purge_status IS NOT DISTINCT FROM $5
     AND storage_location = $6 AND NOT purge_claimed AND blob_id = $7
     AND ($9 OR edited_at IS NOT DISTINCT FROM $8)
     AND NOT ($10 AND (purge_marked_at = 0 OR deleted_by IS NOT DISTINCT FROM 'erasure')) FOR UPDATE";

/// The assignments of a change. Ids, `sub_system` and `created_at` do not change.
macro_rules! bytes_and_state {
    () => {
        "UPDATE files SET status = $2::text, sync_status = $3::text, purge_status = $4::text,
     storage_location = $5, storage_provider = $6, blob_key = $7::text, size_bytes = $8,
     sha256 = $9::bytea, sniffed_type = $10, width = $11, height = $12, stored_at = $13, version = $14,
     updated_at = greatest(updated_at, $15), expires_at = $16,
     thumbhash = CASE WHEN sha256 = $9::bytea THEN coalesce(thumbhash, $17) ELSE $17 END,
     purge_marked_at = CASE WHEN $4::text IS NOT NULL THEN coalesce(purge_marked_at, $18) END,
     deleted_at = CASE WHEN $4::text IS NOT NULL THEN coalesce(deleted_at, $18) END,
     deleted_by = CASE WHEN $4::text IS NOT NULL THEN coalesce(deleted_by, $19) END,
     sync_owner = CASE WHEN sync_status = $3::text AND blob_key = $7::text THEN sync_owner END,
     sync_attempts = CASE WHEN sync_status = $3::text AND blob_key = $7::text THEN sync_attempts ELSE 0 END,
     sync_error = CASE WHEN sync_status = $3::text AND blob_key = $7::text THEN sync_error END,
     sync_not_before = CASE WHEN sync_status = $3::text AND blob_key = $7::text THEN sync_not_before ELSE 0 END"
    };
}

/// The change of a whole record.
pub(in crate::metadata::postgres) const UPDATE: &str = concat!(
    bytes_and_state!(),
    ", original_name = $20, mime_type = $21, ext = $22, metadata = $23, edited_at = $24 WHERE file_id = $1"
);

/// The change of a record without the fields of an edit.
pub(in crate::metadata::postgres) const MOVE: &str =
    concat!(bytes_and_state!(), " WHERE file_id = $1");

/// Inserts the records, all or none. Checks the idempotency key first. The remembered reply of the key is the
/// answer even if the files of this reply have filled the quota.
pub(super) async fn insert(sql: &Sql, insert: &InsertFiles) -> Result<Inserted, Fault> {
    let Some(first) = insert.records.first() else {
        return Ok(Inserted::Done);
    };
    if let Some(refusal) = refusal(sql, insert, first).await? {
        // The key, the permit and the notes that were taken so far are given back.
        sql.abandon();
        return Ok(refusal);
    }

    InsertedRows::of(&insert.records)?.insert(sql).await?;
    terms::put(sql, &insert.records).await?;
    Ok(Inserted::Done)
}

/// Takes all other locks and rows for the insert. Returns the reason if it cannot proceed.
async fn refusal(
    sql: &Sql,
    insert: &InsertFiles,
    first: &FileRecord,
) -> Result<Option<Inserted>, Fault> {
    if erasures::is_since_kept(sql, &first.organization_id, insert.era).await? {
        return Ok(Some(Inserted::Erased));
    }
    if let Some(entry) = &insert.idempotency
        && !idempotency::put(sql, entry, first.created_at).await?
    {
        return Ok(Some(Inserted::IdempotencyTaken));
    }
    if let Some(permit) = &insert.permit
        && !signing::spend(sql, permit, first.created_at).await?
    {
        return Ok(Some(Inserted::PermitSpent));
    }
    if !still_holds(sql, &insert.binding).await? {
        return Ok(Some(Inserted::PlacementStale));
    }
    if let Some(over) = over_quota(sql, insert, first).await? {
        return Ok(Some(over));
    }

    let blobs: Vec<_> = insert.records.iter().map(|record| &record.blob).collect();
    if !intents::end(sql, &blobs).await? {
        return Ok(Some(Inserted::PlacementStale));
    }
    match &insert.upload {
        Some(upload) if !resumable_writes::finish(sql, upload, first.file_id).await? => {
            Ok(Some(Inserted::UploadLost))
        }
        _ => Ok(None),
    }
}

async fn over_quota(
    sql: &Sql,
    insert: &InsertFiles,
    first: &FileRecord,
) -> Result<Option<Inserted>, Fault> {
    let organization = &first.organization_id;
    let sizes = insert.records.iter().map(|record| record.blob.size_bytes);
    if exceeds(sql, organization, insert.quota_bytes, sizes.fold(0, u64::saturating_add)).await? {
        return Ok(Some(Inserted::OverQuota));
    }

    let Some(quota) = insert.quota_files else { return Ok(None) };
    sql.lock(Lock::Usage(organization)).await?;
    let stored = by_location(sql, organization).await?.total().files;
    let is_over = stored.saturating_add(insert.records.len() as u64) > quota;
    Ok(is_over.then_some(Inserted::OverFileQuota))
}

/// Changes a record if its row has the expected state.
pub(super) async fn update(sql: &Sql, update: &UpdateFile) -> Result<Updated, Fault> {
    let next = &update.next;
    let Some(old) = expected_row(sql, update).await? else { return Ok(Updated::Lost) };
    if let Some(binding) = &update.binding
        && !still_holds(sql, binding).await?
    {
        return Ok(Updated::PlacementStale);
    }

    let grows_by = next.blob.size_bytes.saturating_sub(old.size_bytes);
    if grows_by > 0 && exceeds(sql, &next.organization_id, update.quota_bytes, grows_by).await? {
        return Ok(Updated::OverQuota);
    }
    if old.blob_key != next.blob.key.as_str() && !intents::end(sql, &[&next.blob]).await? {
        return Ok(Updated::PlacementStale);
    }
    if let Some(upload) = &update.upload
        && !resumable_writes::finish(sql, upload, next.file_id).await?
    {
        sql.abandon();
        return Ok(Updated::UploadLost);
    }

    write(sql, update).await?;
    if update.writes == Writes::Record
        && old.metadata.as_deref().unwrap_or("{}") != next.metadata.as_json()
    {
        terms::replace(sql, next).await?;
    }
    if let Some(blob) = &update.drop_blob {
        dropped::put(sql, blob).await?;
    }
    Ok(Updated::Done)
}

/// The row before the change.
struct OldRow {
    size_bytes: u64,
    blob_key: String,
    metadata: Option<String>,
}

async fn expected_row(sql: &Sql, update: &UpdateFile) -> Result<Option<OldRow>, Fault> {
    let Expected { version, state, blob, edited_at } = update.expected;
    let found = sql
        .first(
            EXPECTED,
            &[
                &id(update.next.file_id),
                &row::integer(version)?,
                &state.status().as_str(),
                &state.sync().as_str(),
                &state.purge().map(PurgeStatus::as_str),
                &state.location().as_str(),
                &blob.to_string(),
                &edited_at.map(Timestamp::as_millis),
                &(update.writes == Writes::Bytes),
                &update.restores(),
            ],
        )
        .await?;

    let Some(row) = found else { return Ok(None) };
    let (blob_key, metadata) = (row.try_get(1)?, row.try_get(2)?);
    Ok(Some(OldRow { size_bytes: row::count(&row, 0)?, blob_key, metadata }))
}

/// Writes the record to its locked row.
async fn write(sql: &Sql, update: &UpdateFile) -> Result<(), Fault> {
    let FileRecord { state, blob, .. } = &update.next;
    let next = &update.next;
    let (width, height) = sides(next);
    let (size, version) = (row::integer(blob.size_bytes)?, row::integer(next.version)?);
    let file_id = id(next.file_id);
    let (status, sync, location) =
        (state.status().as_str(), state.sync().as_str(), state.location().as_str());
    let purge = state.purge().map(PurgeStatus::as_str);
    let (provider, key, digest) =
        (blob.provider.as_str(), blob.key.as_str(), blob.sha256.0.as_slice());
    let (stored_at, updated_at) = (blob.stored_at.as_millis(), next.updated_at.as_millis());
    let expires_at = next.expires_at.map(Timestamp::as_millis);
    let thumbhash = blob.thumbhash.as_ref().map(Thumbhash::as_bytes);
    let now = update.now.as_millis();
    let by = update.deleted_by.as_ref().map(ToString::to_string);

    let mut params: Vec<Param<'_>> = vec![
        &file_id,
        &status,
        &sync,
        &purge,
        &location,
        &provider,
        &key,
        &size,
        &digest,
        &blob.sniffed_type,
        &width,
        &height,
        &stored_at,
        &version,
        &updated_at,
        &expires_at,
        &thumbhash,
        &now,
        &by,
    ];
    let custom = (!next.metadata.is_empty()).then(|| next.metadata.as_json());
    let edited_at = next.edited_at.map(Timestamp::as_millis);
    let statement = match update.writes {
        Writes::Bytes => MOVE,
        Writes::Record => {
            let edited: [Param<'_>; 5] =
                [&next.original_name, &next.mime_type, &next.ext, &custom, &edited_at];
            params.extend(edited);
            UPDATE
        }
    };

    let changed = sql.execute(statement, &params).await?;
    debug_assert_eq!(changed, 1, "the row is locked");
    Ok(())
}

/// Returns true if the binding that decided the place is still active, and keeps it so until the commit.
async fn still_holds(sql: &Sql, seen: &BindingSeen) -> Result<bool, Fault> {
    let Some(organization) = seen.organization else { return Ok(true) };
    sql.lock_shared(Lock::Binding(organization)).await?;
    let active = bindings::active(sql, organization).await?;
    Ok(active.map(|binding| (binding.provider, binding.sync_enabled)) == seen.active)
}

/// Returns true if the organization would exceed its quota. Other calls with a quota cannot add to its usage
/// before the commit.
async fn exceeds(
    sql: &Sql,
    organization: &OrganizationId,
    quota_bytes: Option<u64>,
    added: u64,
) -> Result<bool, Fault> {
    let Some(quota) = quota_bytes else { return Ok(false) };
    sql.lock(Lock::Usage(organization)).await?;
    Ok(stored_bytes(sql, organization).await?.saturating_add(added) > quota)
}
