//! Dropped blobs (`blob_gc`): bytes that no record refers to any more, to be removed after their
//! grace period.
//!
//! A row whose bytes are gone before the end of its grace period (`kept_until`) stays until then as
//! absent, and is removed once more: a write that was delayed may have landed meanwhile.

use tokio_postgres::Row;

use crate::domain::clock::Timestamp;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::metadata::{DroppedBlob, DueBlob};

use super::fault::{Fault, Source};
use super::row::{self, id};
use super::sql::Sql;
use super::{backlog, holds, purge, receipts};

macro_rules! columns {
    () => {
        "file_id, storage_provider, blob_key, not_before, sha256, size_bytes, id"
    };
}

const PUT: &str = "INSERT INTO blob_gc
     (file_id, storage_provider, blob_key, not_before, kept_until, sha256, size_bytes)
     VALUES ($1, $2, $3, $4, $4, $5, $6)";

pub(super) const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    ", attempts FROM blob_gc WHERE storage_provider = $1 AND not_before <= $2
     ORDER BY not_before LIMIT $3 OFFSET $4"
);

pub(super) const COUNT_DUE: &str =
    "SELECT count(*) FROM blob_gc WHERE storage_provider = $1 AND not_before <= $2";

pub(super) const OF_FILES: &str =
    concat!("SELECT ", columns!(), " FROM blob_gc WHERE file_id = ANY ($1) AND NOT is_absent");

/// Deletes only LOCAL rows. Provider rows stay until due: a delayed write may still create the
/// object, or the row may be newer than this purge's look-up.
pub(super) const FORGET_FILES: &str =
    "DELETE FROM blob_gc WHERE file_id = ANY ($1) AND storage_provider = 'LOCAL'";

pub(super) const FILES: &str = "SELECT DISTINCT file_id FROM blob_gc WHERE id = ANY ($1)";

pub(super) const FINISH: &str = "DELETE FROM blob_gc WHERE id = ANY ($1) AND kept_until <= $2";

pub(super) const NOTE_ABSENCE: &str = "UPDATE blob_gc SET is_absent = true, not_before = kept_until, attempts = 0 WHERE id = ANY ($1)";

pub(super) const FAIL: &str =
    "UPDATE blob_gc SET not_before = $2, attempts = attempts + 1 WHERE id = $1";

pub(super) const HASTEN: &str = "UPDATE blob_gc SET not_before = least(not_before, $3)
     WHERE file_id = $1 AND NOT is_absent AND storage_provider NOT IN ('LOCAL', $2)";

pub(super) const END_WAITS: &str = "WITH waiting AS MATERIALIZED (
     SELECT id FROM blob_gc WHERE attempts > 0 AND storage_provider = $1 AND not_before > $2 LIMIT $3
     FOR UPDATE SKIP LOCKED)
     UPDATE blob_gc SET not_before = $2 FROM waiting WHERE blob_gc.id = waiting.id";

pub(super) async fn put(sql: &Sql, blob: &DroppedBlob) -> Result<(), Fault> {
    let not_before = blob.not_before.as_millis();
    let (provider, key) = (blob.provider.as_str(), blob.key.as_str());
    let digest = blob.content.as_ref().map(|content| content.sha256.0.as_slice());
    let size = blob.content.map(|content| row::integer(content.size_bytes)).transpose()?;
    let file_id = id(blob.file_id);
    sql.execute(PUT, &[&file_id, &provider, &key, &not_before, &digest, &size]).await.map(drop)
}

/// Lists up to `limit` blobs that are due. Damaged ones are passed over, and others take their places.
pub(super) async fn due(
    sql: &Sql,
    holder: &ProviderCode,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<DueBlob>, Fault> {
    if holds::last_held_row(sql, now).await? > 0 {
        return Ok(Vec::new());
    }

    let (mut due, mut looked_at) = (Vec::new(), 0);
    while due.len() < limit {
        let wanted = limit - due.len();
        let rows = sql
            .rows(
                DUE,
                &[&holder.as_str(), &now.as_millis(), &row::limit(wanted), &row::limit(looked_at)],
            )
            .await?;
        for row in &rows {
            let read = blob(row).and_then(|blob| {
                Ok(DueBlob { blob, id: row.try_get(6)?, attempts: row::attempts(row, 7)? })
            });
            due.extend(sql.pass_over(read)?);
        }

        looked_at += rows.len();
        if rows.len() < wanted {
            break;
        }
    }
    Ok(due)
}

/// Counts the dropped blobs of all providers that are due at `now`.
pub(super) async fn count_due(sql: &Sql, now: Timestamp) -> Result<u64, Fault> {
    let mut due = 0;
    for holder in backlog::holders(sql, backlog::NEXT_DROPPED).await? {
        let row = sql.first(COUNT_DUE, &[&holder.as_str(), &now.as_millis()]).await?;
        due += row.map_or(Ok(0), |row| row::count(&row, 0))?;
    }
    Ok(due)
}

/// Lists the dropped blobs of `files` whose bytes were not found absent yet: each with the id of its file,
/// a damaged one as an error of its own.
pub(super) async fn of_files(
    sql: &Sql,
    files: &[String],
) -> Result<Vec<(String, Result<DroppedBlob, Fault>)>, Fault> {
    let rows = sql.rows(OF_FILES, &[&files]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, blob(row)))).collect()
}

pub(super) async fn forget_files(sql: &Sql, files: &[String]) -> Result<(), Fault> {
    sql.execute(FORGET_FILES, &[&files]).await.map(drop)
}

/// Makes the dropped blobs of `file` due at `now` that neither LOCAL nor `holder` holds; returns how
/// many there are.
pub(super) async fn hasten(
    sql: &Sql,
    file: FileId,
    holder: &ProviderCode,
    now: Timestamp,
) -> Result<u64, Fault> {
    sql.execute(HASTEN, &[&id(file), &holder.as_str(), &now.as_millis()]).await
}

/// Forgets blobs whose bytes are absent, or notes it while they are within their grace period, and for the
/// receipts. A purge that waits for one of them goes on.
/// No id is given twice, so that a run that comes late finishes no other blob.
pub(super) async fn finish(sql: &Sql, blobs: &[DueBlob], now: Timestamp) -> Result<(), Fault> {
    let ids: Vec<i64> = blobs.iter().map(|due| due.id).collect();
    let mut files = Vec::new();
    for row in sql.rows(FILES, &[&ids]).await? {
        files.push(row.try_get(0)?);
    }
    // Before their blobs, as everybody else does.
    purge::lock(sql, &files).await?;

    receipts::note_dropped(sql, &ids, now).await?;
    sql.execute(FINISH, &[&ids, &now.as_millis()]).await?;
    sql.execute(NOTE_ABSENCE, &[&ids]).await?;
    purge::go_on(sql, &files).await
}

pub(super) async fn postpone(sql: &Sql, id: i64, retry_at: Timestamp) -> Result<(), Fault> {
    sql.execute(FAIL, &[&id, &retry_at.as_millis()]).await.map(drop)
}

/// Ends the waits of up to `limit` blobs of `holder` whose removal failed; returns how many.
pub(super) async fn end_waits(
    sql: &Sql,
    holder: &ProviderCode,
    now: Timestamp,
    limit: usize,
) -> Result<u64, Fault> {
    let rows = row::limit(limit);
    sql.execute(END_WAITS, &[&holder.as_str(), &now.as_millis(), &rows]).await
}

fn blob(row: &Row) -> Result<DroppedBlob, Fault> {
    read(row).map_err(|source| {
        let what = format!("a dropped blob of file {}", row::raw_id(row));
        Fault::Row { what, source }
    })
}

fn read(row: &Row) -> Result<DroppedBlob, Source> {
    Ok(DroppedBlob {
        file_id: row::parse(row, 0)?,
        provider: row::parse(row, 1)?,
        key: row::parse(row, 2)?,
        not_before: row::instant(row, 3)?,
        content: receipts::content(row, 4)?,
    })
}
