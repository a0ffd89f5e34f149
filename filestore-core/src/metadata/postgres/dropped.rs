//! Dropped blobs (`blob_gc`): bytes that no record refers to any more, to be removed after their
//! grace period.
//!
//! A row whose bytes are gone before the end of its grace period (`kept_until`) stays until then as
//! absent, and is removed once more: a write that was delayed may have landed meanwhile. So a run whose lease
//! has ended finishes nothing: its look at the provider may be older than that end.
//!
//! # Locking
//! Runs of several servers claim at the same time, and pass over each other's rows. A claimed row has an owner,
//! and is not due before the end of its lease.

use tokio_postgres::Row;

use crate::domain::clock::Timestamp;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::metadata::{DroppedBlob, DueBlob, Lease};

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

pub(super) const CLAIMABLE: &str = concat!(
    "SELECT ",
    columns!(),
    ", attempts FROM blob_gc WHERE storage_provider = $1 AND not_before <= $2
     ORDER BY not_before LIMIT $3 OFFSET $4 FOR UPDATE SKIP LOCKED"
);

/// The rows are locked by the claim.
pub(super) const CLAIM: &str = "UPDATE blob_gc SET owner = $2, not_before = $3 WHERE id = ANY ($1)";

pub(super) const RENEW: &str = "UPDATE blob_gc SET not_before = $2 WHERE owner = $1";

pub(super) const RELEASE: &str = "UPDATE blob_gc SET owner = NULL, not_before = 0 WHERE owner = $1";

pub(super) const CLEAR_LEASES: &str =
    "UPDATE blob_gc SET owner = NULL, not_before = 0 WHERE owner IS NOT NULL";

/// Of the blobs that a run looked at, those that are still its own, or nobody's as they were then.
pub(super) const STILL: &str =
    "SELECT b.id FROM unnest($1::bigint[], $2::text[]) AS seen (id, owner)
     JOIN blob_gc AS b ON b.id = seen.id WHERE b.owner IS NOT DISTINCT FROM seen.owner
     ORDER BY b.id FOR UPDATE OF b";

pub(super) const KEPT: &str =
    "SELECT 1 FROM blob_gc WHERE storage_provider = $1 AND NOT is_absent LIMIT 1";

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

pub(super) const NOTE_ABSENCE: &str = "UPDATE blob_gc
     SET is_absent = true, not_before = kept_until, attempts = 0, owner = NULL WHERE id = ANY ($1)";

pub(super) const FAIL: &str =
    "UPDATE blob_gc SET not_before = $2, attempts = attempts + 1, owner = NULL
     WHERE id = $1 AND owner IS NOT DISTINCT FROM $3";

/// One that is claimed is being removed.
pub(super) const HASTEN: &str = "UPDATE blob_gc
     SET not_before = CASE WHEN owner IS NULL THEN least(not_before, $3) ELSE not_before END
     WHERE file_id = $1 AND NOT is_absent AND storage_provider NOT IN ('LOCAL', $2)";

pub(super) const END_WAITS: &str = "WITH waiting AS MATERIALIZED (
     SELECT id FROM blob_gc WHERE attempts > 0 AND storage_provider = $1 AND not_before > $2
     AND owner IS NULL LIMIT $3 FOR UPDATE SKIP LOCKED)
     UPDATE blob_gc SET not_before = $2 FROM waiting WHERE blob_gc.id = waiting.id";

pub(super) async fn put(sql: &Sql, blob: &DroppedBlob) -> Result<(), Fault> {
    let not_before = blob.not_before.as_millis();
    let (provider, key) = (blob.provider.as_str(), blob.key.as_str());
    let digest = blob.content.as_ref().map(|content| content.sha256.0.as_slice());
    let size = blob.content.map(|content| row::integer(content.size_bytes)).transpose()?;
    let file_id = id(blob.file_id);
    sql.execute(PUT, &[&file_id, &provider, &key, &not_before, &digest, &size]).await.map(drop)
}

/// Lists up to `limit` blobs that are due.
pub(super) async fn due(
    sql: &Sql,
    holder: &ProviderCode,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<DueBlob>, Fault> {
    list(sql, DUE, holder, now, limit).await
}

/// Tells whether a blob of the holder is due.
pub(super) async fn is_any_due(
    sql: &Sql,
    holder: &ProviderCode,
    now: Timestamp,
) -> Result<bool, Fault> {
    Ok(!due(sql, holder, now, 1).await?.is_empty())
}

/// Tells whether a blob of the holder was not found absent yet.
pub(super) async fn are_kept(sql: &Sql, holder: &ProviderCode) -> Result<bool, Fault> {
    Ok(sql.first(KEPT, &[&holder.as_str()]).await?.is_some())
}

/// Claims up to `limit` blobs that are due.
pub(super) async fn claim(
    sql: &Sql,
    lease: Lease<'_>,
    holder: &ProviderCode,
    limit: usize,
) -> Result<Vec<DueBlob>, Fault> {
    let mut claimed = list(sql, CLAIMABLE, holder, lease.now, limit).await?;
    let ids: Vec<i64> = claimed.iter().map(|due| due.id).collect();
    sql.execute(CLAIM, &[&ids, &lease.owner, &lease.until.as_millis()]).await?;

    for due in &mut claimed {
        due.owner = Some(lease.owner.to_owned());
    }
    Ok(claimed)
}

/// Makes the leases of an owner last until an instant.
pub(super) async fn renew(sql: &Sql, owner: &str, until: Timestamp) -> Result<(), Fault> {
    sql.execute(RENEW, &[&owner, &until.as_millis()]).await.map(drop)
}

/// Releases the claims of an owner.
pub(super) async fn release(sql: &Sql, owner: &str) -> Result<(), Fault> {
    sql.execute(RELEASE, &[&owner]).await.map(drop)
}

/// Releases every claim of every owner.
pub(super) async fn clear_leases(sql: &Sql) -> Result<(), Fault> {
    sql.execute(CLEAR_LEASES, &[]).await.map(drop)
}

/// Lists blobs by a query for those that are due. Damaged ones are passed over, and others take their places.
async fn list(
    sql: &Sql,
    query: &str,
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
                query,
                &[&holder.as_str(), &now.as_millis(), &row::limit(wanted), &row::limit(looked_at)],
            )
            .await?;
        for row in &rows {
            let read = blob(row).and_then(|blob| {
                let attempts = row::attempts(row, 7)?;
                Ok(DueBlob { blob, id: row.try_get(6)?, attempts, owner: None })
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
    let seen: Vec<i64> = blobs.iter().map(|due| due.id).collect();
    let mut files = Vec::new();
    for row in sql.rows(FILES, &[&seen]).await? {
        files.push(row.try_get(0)?);
    }
    // Before their blobs, as everybody else does.
    purge::lock(sql, &files).await?;

    let ids = still(sql, blobs).await?;
    receipts::note_dropped(sql, &ids, now).await?;
    sql.execute(FINISH, &[&ids, &now.as_millis()]).await?;
    sql.execute(NOTE_ABSENCE, &[&ids]).await?;
    purge::go_on(sql, &files).await
}

/// Returns the ids of the blobs that no other run has claimed or finished.
async fn still(sql: &Sql, blobs: &[DueBlob]) -> Result<Vec<i64>, Fault> {
    let ids: Vec<i64> = blobs.iter().map(|due| due.id).collect();
    let owners: Vec<Option<&str>> = blobs.iter().map(|due| due.owner.as_deref()).collect();
    let rows = sql.rows(STILL, &[&ids, &owners]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

pub(super) async fn postpone(sql: &Sql, blob: &DueBlob, retry_at: Timestamp) -> Result<(), Fault> {
    sql.execute(FAIL, &[&blob.id, &retry_at.as_millis(), &blob.owner]).await.map(drop)
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
