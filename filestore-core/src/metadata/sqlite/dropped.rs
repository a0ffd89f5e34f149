//! Dropped blobs (`blob_gc`): bytes that no record refers to any more, to be removed after their
//! grace period.
//!
//! A row whose bytes are gone before the end of its grace period (`kept_until`) stays until then as
//! absent, and is removed once more: a write that was delayed may have landed meanwhile.

use rusqlite::{Connection, Row, params};

use crate::domain::clock::Timestamp;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::receipt::RemovedBlob;
use crate::metadata::{DroppedBlob, DueBlob};

use super::fault::{Fault, Source};
use super::{backlog, holds, purge, receipts, row};

macro_rules! columns {
    () => {
        "file_id, storage_provider, blob_key, not_before, sha256, size_bytes"
    };
}

const PUT: &str = "INSERT INTO blob_gc
     (file_id, storage_provider, blob_key, not_before, kept_until, sha256, size_bytes)
     VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)";

pub(super) const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    ", id, attempts FROM blob_gc INDEXED BY blob_gc_due
     WHERE storage_provider = ?1 AND not_before <= ?2 ORDER BY not_before"
);

pub(super) const KEPT: &str = "SELECT 1 FROM blob_gc INDEXED BY blob_gc_due
     WHERE storage_provider = ?1 AND is_absent = 0 LIMIT 1";

pub(super) const COUNT_DUE: &str = "SELECT count(*) FROM blob_gc INDEXED BY blob_gc_due
     WHERE storage_provider = ?1 AND not_before <= ?2";

pub(super) const OF_FILE: &str =
    concat!("SELECT ", columns!(), " FROM blob_gc WHERE file_id = ?1 AND is_absent = 0");

/// Deletes only LOCAL rows. Provider rows stay until due: a delayed write may still create the
/// object, or the row may be newer than this purge's look-up.
pub(super) const FORGET_FILE: &str =
    "DELETE FROM blob_gc WHERE file_id = ?1 AND storage_provider = 'LOCAL'";

pub(super) const FINISH: &str =
    "DELETE FROM blob_gc WHERE id = ?1 AND blob_key = ?2 AND kept_until <= ?3";

pub(super) const NOTE_ABSENCE: &str =
    "UPDATE blob_gc SET is_absent = 1, not_before = kept_until, attempts = 0
     WHERE id = ?1 AND blob_key = ?2";

pub(super) const FAIL: &str = "UPDATE blob_gc SET not_before = ?3, attempts = attempts + 1
     WHERE id = ?1 AND blob_key = ?2";

pub(super) const HASTEN: &str = "UPDATE blob_gc SET not_before = min(not_before, ?3)
     WHERE file_id = ?1 AND is_absent = 0 AND storage_provider NOT IN ('LOCAL', ?2)";

pub(super) const FILE: &str =
    concat!("SELECT ", columns!(), " FROM blob_gc WHERE id = ?1 AND blob_key = ?2");

pub(super) const END_WAITS: &str = "UPDATE blob_gc SET not_before = ?2
     WHERE id IN (SELECT id FROM blob_gc INDEXED BY blob_gc_failed
     WHERE attempts > 0 AND storage_provider = ?1 AND not_before > ?2 LIMIT ?3)";

pub(super) fn put(sql: &Connection, blob: &DroppedBlob) -> Result<(), Fault> {
    let size = blob.content.map(|content| row::integer(content.size_bytes)).transpose()?;
    let params = params![
        row::id(blob.file_id),
        blob.provider.as_str(),
        blob.key.as_str(),
        blob.not_before.as_millis(),
        blob.content.as_ref().map(|content| content.sha256.0.as_slice()),
        size,
    ];
    row::execute(sql, PUT, params).map(drop)
}

pub(super) fn due(
    sql: &Connection,
    holder: &ProviderCode,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<DueBlob>, Fault> {
    if holds::last_held_row(sql, now)? > 0 {
        return Ok(Vec::new());
    }

    let params = params![holder.as_str(), now.as_millis()];
    row::collect_up_to(limit, sql, DUE, params, |row| {
        Ok(DueBlob { blob: blob(row)?, id: row.get(6)?, attempts: row.get(7)?, owner: None })
    })
}

/// Tells whether a blob of the holder was not found absent yet.
pub(super) fn are_kept(sql: &Connection, holder: &ProviderCode) -> Result<bool, Fault> {
    Ok(row::first(sql, KEPT, params![holder.as_str()], |_| Ok(()))?.is_some())
}

/// Counts the dropped blobs of all providers that are due at `now`.
pub(super) fn count_due(sql: &Connection, now: Timestamp) -> Result<u64, Fault> {
    let mut due = 0;
    for holder in backlog::holders(sql, backlog::NEXT_DROPPED)? {
        let params = params![holder.as_str(), now.as_millis()];
        due += row::first(sql, COUNT_DUE, params, |row| row::count(row, 0))?.unwrap_or(0);
    }
    Ok(due)
}

/// Lists the dropped blobs of `file` whose bytes were not found absent yet.
pub(super) fn of_file(sql: &Connection, file: FileId) -> Result<Vec<DroppedBlob>, Fault> {
    row::collect_whole(sql, OF_FILE, [row::id(file)], blob)
}

pub(super) fn forget_file(sql: &Connection, file: FileId) -> Result<(), Fault> {
    row::execute(sql, FORGET_FILE, [row::id(file)]).map(drop)
}

/// Makes the dropped blobs of `file` due at `now` that neither LOCAL nor `holder` holds; returns how
/// many there are.
pub(super) fn hasten(
    sql: &Connection,
    file: FileId,
    holder: &ProviderCode,
    now: Timestamp,
) -> Result<usize, Fault> {
    row::execute(sql, HASTEN, params![row::id(file), holder.as_str(), now.as_millis()])
}

/// Forgets blobs whose bytes are absent, or notes it while they are within their grace period. A purge
/// that waits for one of them goes on.
///
/// SQLite gives the id of the newest row again once that is deleted. Of two runs at once, the slower one
/// would finish a blob that it has never seen, and whose bytes are still there; so the key has to fit too.
pub(super) fn finish(sql: &Connection, blobs: &[DueBlob], now: Timestamp) -> Result<(), Fault> {
    for due in blobs {
        let row = params![due.id, due.blob.key.as_str()];
        let Some(DroppedBlob { file_id, provider, key, content, .. }) =
            row::first(sql, FILE, row, blob)?
        else {
            continue;
        };
        let found = RemovedBlob { holder: provider, key, content, absent_at: now, checked_at: now };
        receipts::note(sql, file_id, &found)?;

        let ended = params![due.id, due.blob.key.as_str(), now.as_millis()];
        if row::execute(sql, FINISH, ended)? == 0 {
            row::execute(sql, NOTE_ABSENCE, row)?;
        }
        row::execute(sql, purge::GO_ON, [row::id(file_id)])?;
    }
    Ok(())
}

pub(super) fn postpone(sql: &Connection, due: &DueBlob, retry_at: Timestamp) -> Result<(), Fault> {
    let params = params![due.id, due.blob.key.as_str(), retry_at.as_millis()];
    row::execute(sql, FAIL, params).map(drop)
}

/// Ends the waits of up to `limit` blobs of `holder` whose removal failed; returns how many.
pub(super) fn end_waits(
    sql: &Connection,
    holder: &ProviderCode,
    now: Timestamp,
    limit: usize,
) -> Result<u64, Fault> {
    let params = params![holder.as_str(), now.as_millis(), row::limit(limit)];
    row::execute(sql, END_WAITS, params).map(|ended| ended as u64)
}

fn blob(row: &Row<'_>) -> Result<DroppedBlob, Fault> {
    read(row).map_err(|source| {
        let id = row.get(0).unwrap_or_else(|_| String::from("?"));
        Fault::Row { what: format!("a dropped blob of file {id}"), source }
    })
}

fn read(row: &Row<'_>) -> Result<DroppedBlob, Source> {
    Ok(DroppedBlob {
        file_id: row::parse(row, 0)?,
        provider: row::parse(row, 1)?,
        key: row::parse(row, 2)?,
        not_before: Timestamp::from_millis(row.get(3)?),
        content: receipts::content(row, 4)?,
    })
}
