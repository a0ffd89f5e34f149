//! Records: look-up, insert, change.
//!
//! # Locking
//! A change locks its row first, then what it is decided from: the binding of the organization, and its
//! usage where there is a quota. An insert has no row yet, and takes its idempotency key or permit first:
//! a second request with the same one waits for the end of the first.

use crate::domain::clock::Timestamp;
use crate::domain::id::{BlobId, FileId, OrganizationId, Sha256};
use crate::domain::path::BlobKey;
use crate::domain::record::{FileRecord, Thumbhash};
use crate::domain::scope::Scope;
use crate::domain::status::{Location, PurgeStatus};
use crate::domain::usage::{Stored, Usage};
use crate::metadata::{BindingSeen, Expected, InsertFiles, Inserted, UpdateFile, Updated, Writes};

use super::fault::Fault;
use super::inserted_rows::InsertedRows;
use super::row::{self, columns, id};
use super::sql::{Lock, Param, Sql};
use super::{bindings, dropped, idempotency, intents, signing, terms};

pub(super) const BY_ID: &str = concat!("SELECT ", columns!(), " FROM files WHERE file_id = $1");

/// One look-up in one index: it costs the same for a foreign file and for one that does not exist.
pub(super) const WITHIN: &str =
    concat!("SELECT ", columns!(), " FROM files WHERE file_id = $1 AND organization_id = ANY ($2)");

pub(super) const LOCAL_KEYS: &str =
    "SELECT blob_key, blob_id FROM files WHERE blob_id = ANY ($1) AND storage_location = 'LOCAL'";

/// Asked after a stop that was none: no index is worth it.
const LOCAL_SINCE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM files WHERE storage_provider = 'LOCAL' AND stored_at >= $1 AND file_id > $2
     ORDER BY file_id LIMIT $3"
);

pub(super) const STORED_BYTES: &str =
    "SELECT coalesce(sum(bytes), 0)::bigint FROM organization_usage WHERE organization_id = $1";

pub(super) const USAGE: &str = "SELECT storage_location, sum(files)::bigint, sum(bytes)::bigint
     FROM organization_usage WHERE organization_id = $1 GROUP BY storage_location";

/// The row of a file, locked, if it is as a change expects it. `$9` is true if an edit meanwhile does not
/// matter.
pub(super) const EXPECTED: &str =
    "SELECT size_bytes, blob_key, metadata FROM files WHERE file_id = $1
     AND version = $2 AND status = $3 AND sync_status = $4 AND purge_status IS NOT DISTINCT FROM $5
     AND storage_location = $6 AND NOT purge_claimed AND blob_id = $7
     AND ($9 OR edited_at IS NOT DISTINCT FROM $8) FOR UPDATE";

/// The note of a placeholder, unless the file has other bytes by now.
pub(super) const NOTE_THUMBHASH: &str = "UPDATE files SET thumbhash = $3
     WHERE file_id = $1 AND sha256 = $2 AND thumbhash IS DISTINCT FROM $3";

/// The assignments of a change; ids, `sub_system` and `created_at` stay as they are.
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
     sync_not_before = CASE WHEN sync_status = $3::text AND blob_key = $7::text THEN sync_not_before ELSE 0 END"
    };
}

/// The change of a whole record.
pub(super) const UPDATE: &str = concat!(
    bytes_and_state!(),
    ", original_name = $20, mime_type = $21, ext = $22, metadata = $23, edited_at = $24 WHERE file_id = $1"
);

/// The change of a record that leaves alone what an edit changes.
pub(super) const MOVE: &str = concat!(bytes_and_state!(), " WHERE file_id = $1");

pub(super) async fn by_id(
    sql: &Sql,
    file_id: FileId,
    scope: &Scope,
) -> Result<Option<FileRecord>, Fault> {
    let file_id = id(file_id);
    let row = match scope {
        Scope::All => sql.first(BY_ID, &[&file_id]).await?,
        Scope::Organizations(list) => {
            let list: Vec<&str> = list.iter().map(OrganizationId::as_str).collect();
            sql.first(WITHIN, &[&file_id, &list]).await?
        }
    };
    row.map(|row| row::record(&row)).transpose()
}

pub(super) async fn live_local_keys(sql: &Sql, ids: &[BlobId]) -> Result<Vec<BlobKey>, Fault> {
    let ids: Vec<String> = ids.iter().map(BlobId::to_string).collect();
    let rows = sql.rows(LOCAL_KEYS, &[&ids]).await?;
    let key = |row| {
        row::parse(row, 0).map_err(|source| {
            let blob: String = row.try_get(1).unwrap_or_default();
            Fault::Row { what: format!("blob {blob}"), source }
        })
    };
    rows.iter().map(key).collect()
}

pub(super) async fn local_since(
    sql: &Sql,
    since: Timestamp,
    after: Option<FileId>,
    limit: usize,
) -> Result<Vec<FileRecord>, Fault> {
    sql.be_patient().await?;
    let since = since.as_millis();
    records_by_id(sql, LOCAL_SINCE, &[&since], after, limit).await
}

/// Runs a query that shows records in the order of their ids until `limit` were read. The id to go on
/// after and the number of rows follow its other parameters. Damaged rows are passed over and do not
/// count: fewer records mean the end.
pub(super) async fn records_by_id(
    sql: &Sql,
    query: &str,
    params: &[Param<'_>],
    after: Option<FileId>,
    limit: usize,
) -> Result<Vec<FileRecord>, Fault> {
    let mut after = after.map(id).unwrap_or_default();
    let mut records = Vec::new();

    while records.len() < limit {
        let wanted = limit - records.len();
        let rows_wanted = row::limit(wanted);
        let mut all = params.to_vec();
        all.extend([&after as Param<'_>, &rows_wanted]);

        let rows = sql.rows(query, &all).await?;
        for row in &rows {
            records.extend(sql.pass_over(row::record(row))?);
        }
        match rows.last() {
            Some(last) if rows.len() == wanted => after = row::raw_id(last),
            _ => break,
        }
    }
    Ok(records)
}

pub(super) async fn stored_bytes(sql: &Sql, organization: &OrganizationId) -> Result<u64, Fault> {
    let total = sql.first(STORED_BYTES, &[&organization.as_str()]).await?;
    total.map_or(Ok(0), |row| row::count(&row, 0))
}

pub(super) async fn usage(sql: &Sql, organization: &OrganizationId) -> Result<Usage, Fault> {
    let mut usage = Usage::default();
    for row in sql.rows(USAGE, &[&organization.as_str()]).await? {
        let location = row::parse(&row, 0);
        let location = location.map_err(|source| Fault::Row { what: "a total".into(), source })?;
        let stored = Stored { files: row::count(&row, 1)?, bytes: row::count(&row, 2)? };
        match location {
            Location::Local => usage.local = stored,
            Location::Cloud => usage.cloud = stored,
        }
    }
    Ok(usage)
}

/// Inserts the records, all or none. The idempotency key comes first: its reply is the answer even
/// if the quota is full by now, of the files of that reply.
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

/// Takes all that the insert needs beside its rows; returns what is in its way.
async fn refusal(
    sql: &Sql,
    insert: &InsertFiles,
    first: &FileRecord,
) -> Result<Option<Inserted>, Fault> {
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
    let are_noted = intents::end(sql, &blobs).await?;
    Ok((!are_noted).then_some(Inserted::PlacementStale))
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
    let stored = usage(sql, organization).await?.total().files;
    let is_over = stored.saturating_add(insert.records.len() as u64) > quota;
    Ok(is_over.then_some(Inserted::OverFileQuota))
}

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

/// Notes the placeholder of the blob with this digest. Does nothing if the file has another blob.
pub(super) async fn note_thumbhash(
    sql: &Sql,
    file_id: FileId,
    sha256: &Sha256,
    thumbhash: &Thumbhash,
) -> Result<(), Fault> {
    let (file_id, digest) = (id(file_id), sha256.0.as_slice());
    sql.execute(NOTE_THUMBHASH, &[&file_id, &digest, &thumbhash.as_bytes()]).await.map(drop)
}

/// The row that a change is about to replace.
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
            ],
        )
        .await?;

    let Some(row) = found else { return Ok(None) };
    let (blob_key, metadata) = (row.try_get(1)?, row.try_get(2)?);
    Ok(Some(OldRow { size_bytes: row::count(&row, 0)?, blob_key, metadata }))
}

/// Writes the record over its row, which is locked.
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

/// Returns width and height, if they are known.
pub(super) fn sides(record: &FileRecord) -> (Option<i64>, Option<i64>) {
    let dimensions = record.blob.dimensions;
    (dimensions.map(|sides| sides.width.into()), dimensions.map(|sides| sides.height.into()))
}

/// Tells if the binding that placed the files is still the active one, and keeps it so until the commit.
async fn still_holds(sql: &Sql, seen: &BindingSeen) -> Result<bool, Fault> {
    let Some(organization) = seen.organization else { return Ok(true) };
    sql.lock_shared(Lock::Binding(organization)).await?;
    let active = bindings::active(sql, organization).await?;
    Ok(active.map(|binding| (binding.provider, binding.sync_enabled)) == seen.active)
}

/// Tells if the organization would store more than its quota. Nobody else who asks adds to its usage until
/// the commit.
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
