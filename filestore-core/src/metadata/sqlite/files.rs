//! Records: look-up, insert, change.

use rusqlite::{Connection, ToSql, params};

use crate::domain::clock::Timestamp;
use crate::domain::id::{BlobId, FileId, OrganizationId, Sha256};
use crate::domain::path::BlobKey;
use crate::domain::record::{FileRecord, Thumbhash};
use crate::domain::scope::Scope;
use crate::domain::status::{Location, PurgeStatus};
use crate::domain::usage::{Stored, Usage};
use crate::metadata::{BindingSeen, Expected, InsertFiles, Inserted, UpdateFile, Updated, Writes};

use super::fault::Fault;
use super::row::{self, columns, id};
use super::writer::WriteTx;
use super::{bindings, dropped, idempotency, intents, signing, terms};

pub(super) const BY_ID: &str = concat!("SELECT ", columns!(), " FROM files WHERE file_id = ?1");

/// One look-up in one index: it costs the same for a foreign file and for one that does not exist.
pub(super) const IS_OWNED: &str = "SELECT 1 FROM files INDEXED BY files_by_owner
     WHERE file_id = ?1 AND organization_id = ?2";

pub(super) const LOCAL_KEY: &str =
    "SELECT blob_key FROM files WHERE blob_id = ?1 AND storage_location = 'LOCAL'";

/// Asked after a stop that was none: no index is worth it.
const LOCAL_SINCE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM files WHERE storage_provider = 'LOCAL' AND stored_at >= ?1 AND file_id > ?2 ORDER BY file_id"
);

pub(super) const STORED_BYTES: &str =
    "SELECT coalesce(sum(bytes), 0) FROM organization_usage WHERE organization_id = ?1";

pub(super) const USAGE: &str =
    "SELECT storage_location, files, bytes FROM organization_usage WHERE organization_id = ?1";

const INSERT: &str = concat!(
    "INSERT INTO files (",
    columns!(),
    ", purge_marked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
);

/// The row of a file, if it is as a change expects it. `?9` is true if an edit meanwhile does not
/// matter.
pub(super) const EXPECTED: &str = "SELECT rowid, size_bytes, blob_key, metadata FROM files WHERE file_id = ?1 AND version = ?2
     AND status = ?3 AND sync_status = ?4 AND purge_status IS ?5 AND storage_location = ?6 AND purge_claimed = 0
     AND blob_id = ?7 AND (?9 OR edited_at IS ?8)";

/// The note of a placeholder, unless the file has other bytes by now.
pub(super) const NOTE_THUMBHASH: &str =
    "UPDATE files SET thumbhash = ?3 WHERE file_id = ?1 AND sha256 = ?2 AND thumbhash IS NOT ?3";

/// The assignments of a change. `?1` … `?25` are the record's columns; ids, `sub_system` and
/// `created_at` stay as they are.
macro_rules! bytes_and_state {
    () => {
        "UPDATE files SET status = ?7,
     sync_status = ?8, purge_status = ?9, storage_location = ?10, storage_provider = ?11, blob_key = ?12,
     size_bytes = ?13, sha256 = ?14, sniffed_type = ?15, width = ?16, height = ?17, stored_at = ?18, version = ?19,
     updated_at = max(updated_at, ?21), expires_at = ?22,
     thumbhash = CASE WHEN sha256 = ?14 THEN coalesce(thumbhash, ?25) ELSE ?25 END,
     purge_marked_at = CASE WHEN ?9 IS NOT NULL THEN coalesce(purge_marked_at, ?27) END,
     deleted_at = CASE WHEN ?9 IS NOT NULL THEN coalesce(deleted_at, ?27) END,
     deleted_by = CASE WHEN ?9 IS NOT NULL THEN coalesce(deleted_by, ?28) END,
     sync_owner = CASE WHEN sync_status = ?8 AND blob_key = ?12 THEN sync_owner END,
     sync_attempts = CASE WHEN sync_status = ?8 AND blob_key = ?12 THEN sync_attempts ELSE 0 END,
     sync_not_before = CASE WHEN sync_status = ?8 AND blob_key = ?12 THEN sync_not_before ELSE 0 END"
    };
}

/// The change of a whole record.
pub(super) const UPDATE: &str = concat!(
    bytes_and_state!(),
    ", original_name = ?4, mime_type = ?5, ext = ?6, metadata = ?23, edited_at = ?24 WHERE rowid = ?26"
);

/// The change of a record that leaves alone what an edit changes.
pub(super) const MOVE: &str = concat!(bytes_and_state!(), " WHERE rowid = ?26");

pub(super) fn by_id(sql: &Connection, file_id: FileId) -> Result<Option<FileRecord>, Fault> {
    row::first(sql, BY_ID, [id(file_id)], row::record)
}

/// Tells if the file is within `scope`. Looks each of its organizations up, also after a hit.
pub(super) fn is_within(sql: &Connection, file_id: FileId, scope: &Scope) -> Result<bool, Fault> {
    let Scope::Organizations(list) = scope else { return Ok(true) };
    let file_id = id(file_id);
    let mut found = false;
    for organization in list {
        let params = params![file_id, organization.as_str()];
        found |= row::first(sql, IS_OWNED, params, |_| Ok(()))?.is_some();
    }
    Ok(found)
}

pub(super) fn live_local_keys(sql: &Connection, ids: &[BlobId]) -> Result<Vec<BlobKey>, Fault> {
    let mut keys = Vec::new();
    for blob in ids {
        let key = row::first(sql, LOCAL_KEY, [blob.to_string()], |row| {
            row::parse(row, 0).map_err(|source| Fault::Row { what: format!("blob {blob}"), source })
        })?;
        keys.extend(key);
    }
    Ok(keys)
}

pub(super) fn local_since(
    sql: &Connection,
    since: Timestamp,
    after: Option<FileId>,
    limit: usize,
) -> Result<Vec<FileRecord>, Fault> {
    let params = params![since.as_millis(), after.map(id).unwrap_or_default()];
    row::collect_up_to(limit, sql, LOCAL_SINCE, params, row::record)
}

pub(super) fn stored_bytes(sql: &Connection, organization: &OrganizationId) -> Result<u64, Fault> {
    let total = row::first(sql, STORED_BYTES, [organization.as_str()], |row| row::count(row, 0))?;
    Ok(total.unwrap_or(0))
}

pub(super) fn usage(sql: &Connection, organization: &OrganizationId) -> Result<Usage, Fault> {
    let rows = row::collect_whole(sql, USAGE, [organization.as_str()], |row| {
        let location: Location =
            row::parse(row, 0).map_err(|source| Fault::Row { what: "a total".into(), source })?;
        Ok((location, Stored { files: row::count(row, 1)?, bytes: row::count(row, 2)? }))
    })?;

    let mut usage = Usage::default();
    for (location, stored) in rows {
        match location {
            Location::Local => usage.local = stored,
            Location::Cloud => usage.cloud = stored,
        }
    }
    Ok(usage)
}

/// Inserts the records, all or none. The idempotency key comes first: its reply is the answer even
/// if the quota is full by now, of the files of that reply.
pub(super) fn insert(tx: &WriteTx<'_>, insert: &InsertFiles) -> Result<Inserted, Fault> {
    let Some(first) = insert.records.first() else {
        return Ok(Inserted::Done);
    };
    if let Some(entry) = &insert.idempotency
        && idempotency::is_taken(tx.sql, entry, first.created_at)?
    {
        return Ok(Inserted::IdempotencyTaken);
    }
    if let Some(permit) = &insert.permit
        && signing::is_spent(tx.sql, permit, first.created_at)?
    {
        return Ok(Inserted::PermitSpent);
    }

    if !still_holds(tx.sql, &insert.binding)? {
        return Ok(Inserted::PlacementStale);
    }

    let added =
        insert.records.iter().map(|record| record.blob.size_bytes).fold(0, u64::saturating_add);
    if exceeds(tx.sql, &first.organization_id, insert.quota_bytes, added)? {
        return Ok(Inserted::OverQuota);
    }
    if let Some(quota) = insert.quota_files {
        let stored = usage(tx.sql, &first.organization_id)?.total().files;
        if stored.saturating_add(insert.records.len() as u64) > quota {
            return Ok(Inserted::OverFileQuota);
        }
    }

    for record in &insert.records {
        if !intents::stands(tx.sql, &record.blob)? {
            return Ok(Inserted::PlacementStale);
        }
    }

    for record in &insert.records {
        intents::end(tx.sql, &record.blob)?;
        insert_row(tx.sql, record)?;
        terms::put(tx.sql, record)?;
    }
    if let Some(entry) = &insert.idempotency {
        idempotency::put(tx.sql, entry)?;
    }
    if let Some(permit) = &insert.permit {
        signing::spend(tx.sql, permit)?;
    }
    Ok(Inserted::Done)
}

fn insert_row(sql: &Connection, record: &FileRecord) -> Result<(), Fault> {
    let marked_at = record.state.purge().map(|_| record.updated_at.as_millis());
    write(sql, INSERT, record, &[&marked_at])
}

pub(super) fn update(tx: &mut WriteTx<'_>, update: &UpdateFile) -> Result<Updated, Fault> {
    let next = &update.next;
    let Some(old) = expected_row(tx.sql, update)? else {
        return Ok(Updated::Lost);
    };

    if let Some(binding) = &update.binding
        && !still_holds(tx.sql, binding)?
    {
        return Ok(Updated::PlacementStale);
    }

    let grows_by = next.blob.size_bytes.saturating_sub(old.size_bytes);
    if grows_by > 0 && exceeds(tx.sql, &next.organization_id, update.quota_bytes, grows_by)? {
        return Ok(Updated::OverQuota);
    }

    if old.blob_key != next.blob.key.as_str() {
        if !intents::stands(tx.sql, &next.blob)? {
            return Ok(Updated::PlacementStale);
        }
        intents::end(tx.sql, &next.blob)?;
    }

    let now = update.now.as_millis();
    let by = update.deleted_by.as_ref().map(ToString::to_string);
    match update.writes {
        Writes::Bytes => write(tx.sql, MOVE, next, &[&old.rowid, &now, &by])?,
        Writes::Record => {
            write(tx.sql, UPDATE, next, &[&old.rowid, &now, &by])?;
            if old.metadata.as_deref().unwrap_or("{}") != next.metadata.as_json() {
                terms::replace(tx.sql, next)?;
            }
        }
    }
    if let Some(blob) = &update.drop_blob {
        dropped::put(tx.sql, blob)?;
    }
    tx.touch(next.file_id);
    Ok(Updated::Done)
}

/// Notes the placeholder of the blob with this digest. Does nothing if the file has another blob.
pub(super) fn note_thumbhash(
    tx: &mut WriteTx<'_>,
    file_id: FileId,
    sha256: &Sha256,
    thumbhash: &Thumbhash,
) -> Result<(), Fault> {
    let params = params![id(file_id), sha256.0.as_slice(), thumbhash.as_bytes()];
    if row::execute(tx.sql, NOTE_THUMBHASH, params)? > 0 {
        tx.touch(file_id);
    }
    Ok(())
}

/// The row that a change is about to replace.
struct OldRow {
    rowid: i64,
    size_bytes: u64,
    blob_key: String,
    metadata: Option<String>,
}

fn expected_row(sql: &Connection, update: &UpdateFile) -> Result<Option<OldRow>, Fault> {
    let Expected { version, state, blob, edited_at } = update.expected;
    let params = params![
        id(update.next.file_id),
        row::integer(version)?,
        state.status().as_str(),
        state.sync().as_str(),
        state.purge().map(PurgeStatus::as_str),
        state.location().as_str(),
        blob.to_string(),
        edited_at.map(Timestamp::as_millis),
        update.writes == Writes::Bytes,
    ];

    row::first(sql, EXPECTED, params, |row| {
        Ok(OldRow {
            rowid: row.get(0)?,
            size_bytes: row::count(row, 1)?,
            blob_key: row.get(2)?,
            metadata: row.get(3)?,
        })
    })
}

/// Tells if the binding that placed the files is still the active one.
fn still_holds(sql: &Connection, seen: &BindingSeen) -> Result<bool, Fault> {
    let Some(organization) = seen.organization else { return Ok(true) };
    let active = bindings::active(sql, organization)?;
    Ok(active.map(|binding| (binding.provider, binding.sync_enabled)) == seen.active)
}

fn exceeds(
    sql: &Connection,
    organization: &OrganizationId,
    quota_bytes: Option<u64>,
    added: u64,
) -> Result<bool, Fault> {
    let Some(quota) = quota_bytes else { return Ok(false) };
    Ok(stored_bytes(sql, organization)?.saturating_add(added) > quota)
}

/// Runs a statement on a record's columns and some values more.
fn write(
    sql: &Connection,
    statement: &str,
    record: &FileRecord,
    more: &[&dyn ToSql],
) -> Result<(), Fault> {
    row::with_record(record, |columns| {
        let all = columns.iter().chain(more).copied();
        let changed = row::execute(sql, statement, rusqlite::params_from_iter(all))?;
        debug_assert_eq!(changed, 1, "one row, or an error");
        Ok(())
    })
}
