//! Dropped blobs (`blob_gc`): bytes that no record refers to any more, to be removed after their
//! grace period.

use rusqlite::{Connection, Row, params};

use crate::domain::clock::Timestamp;
use crate::domain::id::FileId;
use crate::metadata::{DroppedBlob, DueBlob};

use super::fault::{Fault, Source};
use super::row;

macro_rules! columns {
    () => {
        "file_id, storage_provider, blob_key, not_before"
    };
}

const PUT: &str =
    "INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
     VALUES (?1, ?2, ?3, ?4, ?4)";

pub(super) const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    ", id, attempts FROM blob_gc WHERE not_before <= ?1 ORDER BY not_before LIMIT ?2"
);

pub(super) const COUNT_DUE: &str = "SELECT count(*) FROM blob_gc WHERE not_before <= ?1";

pub(super) const OF_FILE: &str = concat!("SELECT ", columns!(), " FROM blob_gc WHERE file_id = ?1");

/// Deletes only LOCAL rows. Provider rows stay until due: a delayed write may still create the
/// object, or the row may be newer than this purge's look-up.
pub(super) const FORGET_FILE: &str =
    "DELETE FROM blob_gc WHERE file_id = ?1 AND storage_provider = 'LOCAL'";

pub(super) const FINISH: &str = "DELETE FROM blob_gc WHERE id = ?1";

pub(super) const FAIL: &str =
    "UPDATE blob_gc SET not_before = ?2, attempts = attempts + 1 WHERE id = ?1";

pub(super) fn put(sql: &Connection, blob: &DroppedBlob) -> Result<(), Fault> {
    let params = params![
        row::id(blob.file_id),
        blob.provider.as_str(),
        blob.key.as_str(),
        blob.not_before.as_millis(),
    ];
    row::execute(sql, PUT, params).map(drop)
}

pub(super) fn due(sql: &Connection, now: Timestamp, limit: usize) -> Result<Vec<DueBlob>, Fault> {
    row::collect(sql, DUE, params![now.as_millis(), row::limit(limit)], |row| {
        Ok(DueBlob { blob: blob(row)?, id: row.get(4)?, attempts: row.get(5)? })
    })
}

pub(super) fn of_file(sql: &Connection, file: FileId) -> Result<Vec<DroppedBlob>, Fault> {
    row::collect(sql, OF_FILE, [row::id(file)], blob)
}

pub(super) fn forget_file(sql: &Connection, file: FileId) -> Result<(), Fault> {
    row::execute(sql, FORGET_FILE, [row::id(file)]).map(drop)
}

pub(super) fn finish(sql: &Connection, ids: &[i64]) -> Result<(), Fault> {
    ids.iter().try_for_each(|id| row::execute(sql, FINISH, [id]).map(drop))
}

pub(super) fn postpone(sql: &Connection, id: i64, retry_at: Timestamp) -> Result<(), Fault> {
    row::execute(sql, FAIL, params![id, retry_at.as_millis()]).map(drop)
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
    })
}
