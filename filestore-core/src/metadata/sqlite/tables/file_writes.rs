//! Inserts and changes of records: transactions of the writer.

use rusqlite::{Connection, ToSql, params};

use crate::domain::file::record::FileRecord;
use crate::domain::file::status::PurgeStatus;
use crate::domain::id::OrganizationId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{BindingSeen, Expected, InsertFiles, Inserted, UpdateFile, Updated, Writes};

use super::row::{self, columns, id};
use super::usage::{by_location, stored_bytes};
use super::{bindings, erasures, idempotency, resumables, signing, terms};
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::session::writer::WriteTx;
use crate::metadata::sqlite::work::{dropped, intents};

const INSERT: &str = concat!(
    "INSERT INTO files (",
    columns!(),
    ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
);

/// Selects the row of a file, if it has the expected state. `?9` is true if concurrent edits do not matter.
/// `?10` is true if the change restores a deleted file. A file that an erasure deleted or made due stays
/// deleted.
pub(in crate::metadata::sqlite) const EXPECTED: &str = "SELECT rowid, size_bytes, blob_key, metadata FROM files WHERE file_id = ?1 AND version = ?2
     AND status = ?3 AND sync_status = ?4 AND purge_status IS ?5 AND storage_location = ?6 AND purge_claimed = 0
     AND blob_id = ?7 AND (?9 OR edited_at IS ?8)
     AND NOT (?10 AND (purge_marked_at = 0 OR deleted_by IS 'erasure'))";

/// The assignments of a change. `?1` … `?27` are the record's columns. Ids, `sub_system` and `created_at` do
/// not change. The deletion time is the clock's, `?29`, and the first deletion counts.
macro_rules! bytes_and_state {
    () => {
        "UPDATE files SET status = ?7,
     sync_status = ?8, purge_status = ?9, storage_location = ?10, storage_provider = ?11, blob_key = ?12,
     size_bytes = ?13, sha256 = ?14, sniffed_type = ?15, width = ?16, height = ?17, stored_at = ?18, version = ?19,
     updated_at = max(updated_at, ?21), expires_at = ?22,
     thumbhash = CASE WHEN sha256 = ?14 THEN coalesce(thumbhash, ?25) ELSE ?25 END,
     purge_marked_at = CASE WHEN ?9 IS NOT NULL THEN coalesce(purge_marked_at, ?31) END,
     deleted_at = CASE WHEN ?9 IS NOT NULL THEN coalesce(deleted_at, ?31) END,
     deleted_by = CASE WHEN ?9 IS NOT NULL THEN coalesce(deleted_by, ?32) END,
     sync_owner = CASE WHEN sync_status = ?8 AND blob_key = ?12 THEN sync_owner END,
     sync_attempts = CASE WHEN sync_status = ?8 AND blob_key = ?12 THEN sync_attempts ELSE 0 END,
     sync_error = CASE WHEN sync_status = ?8 AND blob_key = ?12 THEN sync_error END,
     sync_not_before = CASE WHEN sync_status = ?8 AND blob_key = ?12 THEN sync_not_before ELSE 0 END"
    };
}

/// The change of a whole record.
pub(in crate::metadata::sqlite) const UPDATE: &str = concat!(
    bytes_and_state!(),
    ", original_name = ?4, mime_type = ?5, ext = ?6, metadata = ?23, edited_at = ?24 WHERE rowid = ?30"
);

/// The change of a record without the fields of an edit.
pub(in crate::metadata::sqlite) const MOVE: &str =
    concat!(bytes_and_state!(), " WHERE rowid = ?30");

/// Inserts the records, all or none. Checks the idempotency key first. The remembered reply of the key is the
/// answer even if the files of this reply have filled the quota.
pub(super) fn insert(tx: &WriteTx<'_>, insert: &InsertFiles) -> Result<Inserted, Fault> {
    let Some(first) = insert.records.first() else {
        return Ok(Inserted::Done);
    };
    if erasures::is_since(tx.sql, &first.organization_id, insert.era)? {
        return Ok(Inserted::Erased);
    }
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
        let stored = by_location(tx.sql, &first.organization_id)?.total().files;
        if stored.saturating_add(insert.records.len() as u64) > quota {
            return Ok(Inserted::OverFileQuota);
        }
    }

    for record in &insert.records {
        if !intents::stands(tx.sql, &record.blob)? {
            return Ok(Inserted::PlacementStale);
        }
    }

    if let Some(upload) = &insert.upload
        && !resumables::finish(tx.sql, upload, first.file_id)?
    {
        return Ok(Inserted::UploadLost);
    }

    for record in &insert.records {
        intents::end(tx.sql, &record.blob)?;
        write(tx.sql, INSERT, record, &[])?;
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

/// Changes a record if its row has the expected state.
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

    let is_other_blob = old.blob_key != next.blob.key.as_str();
    if is_other_blob && !intents::stands(tx.sql, &next.blob)? {
        return Ok(Updated::PlacementStale);
    }
    if let Some(upload) = &update.upload
        && !resumables::finish(tx.sql, upload, next.file_id)?
    {
        return Ok(Updated::UploadLost);
    }
    if is_other_blob {
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

/// The row before the change.
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
        update.restores(),
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

/// Returns true if the binding that decided the place is still active.
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

/// Runs a statement with a record's columns and some further values.
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
