//! Receipts of purges, and the blobs that were found absent.

use rusqlite::{Connection, Row, params};

use crate::domain::clock::Timestamp;
use crate::domain::id::{FileId, Sha256};
use crate::domain::receipt::{AwaitedBlob, Content, LISTED_BLOBS, PurgedFile, RemovedBlob};
use crate::domain::scope::Scope;
use crate::metadata::Purged;

use super::fault::{Fault, Source};
use super::row;

/// The receipt of a file that `owner` has claimed; one of an earlier life of the same id makes room.
pub(super) const PUT: &str = "INSERT INTO purge_receipts
     (file_id, organization_id, created_at, deleted_at, deleted_by, purged_at)
     SELECT file_id, organization_id, created_at, coalesce(deleted_at, updated_at),
     coalesce(deleted_by, 'unknown'), ?3 FROM files
     WHERE file_id = ?1 AND purge_claimed = 1 AND purge_owner = ?2
     ON CONFLICT (file_id) DO UPDATE SET organization_id = excluded.organization_id,
     created_at = excluded.created_at, deleted_at = excluded.deleted_at,
     deleted_by = excluded.deleted_by, purged_at = excluded.purged_at";

const NOTE: &str = "INSERT INTO removed_blobs (file_id, storage_provider, blob_key, sha256,
     size_bytes, absent_at, checked_at, noted_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
     ON CONFLICT (file_id, storage_provider, blob_key) DO UPDATE SET
     sha256 = coalesce(sha256, excluded.sha256), size_bytes = coalesce(size_bytes, excluded.size_bytes),
     absent_at = min(absent_at, excluded.absent_at),
     checked_at = max(checked_at, excluded.checked_at), noted_at = max(noted_at, excluded.noted_at)";

pub(super) const KEEP: &str =
    "UPDATE removed_blobs SET noted_at = max(noted_at, ?2) WHERE file_id = ?1";

pub(super) const ONE: &str =
    "SELECT file_id, organization_id, created_at, deleted_at, deleted_by, purged_at
     FROM purge_receipts WHERE file_id = ?1";

pub(super) const REMOVED: &str =
    "SELECT storage_provider, blob_key, sha256, size_bytes, absent_at, checked_at
     FROM removed_blobs WHERE file_id = ?1 ORDER BY storage_provider, blob_key LIMIT ?2";

pub(super) const COUNT: &str = "SELECT count(*) FROM removed_blobs WHERE file_id = ?1";

pub(super) const DROPPED: &str =
    "SELECT storage_provider, blob_key, not_before FROM blob_gc WHERE file_id = ?1";

pub(super) const NOTED: &str =
    "SELECT storage_provider, blob_key, NULL FROM write_intents WHERE file_id = ?1";

pub(super) const FORGET: &str = "DELETE FROM purge_receipts WHERE file_id IN
     (SELECT file_id FROM purge_receipts WHERE purged_at <= ?1 ORDER BY purged_at LIMIT ?2)";

pub(super) const FORGET_BLOBS: &str = "DELETE FROM removed_blobs
     WHERE (file_id, storage_provider, blob_key) IN
     (SELECT file_id, storage_provider, blob_key FROM removed_blobs
     WHERE noted_at <= ?1 ORDER BY noted_at LIMIT ?2)";

/// Keeps the blobs of a file that is still there for another day: its own receipt will name them.
pub(super) const SPARE_BLOBS: &str = "UPDATE removed_blobs SET noted_at = ?1 + 86400000
     WHERE (file_id, storage_provider, blob_key) IN
     (SELECT file_id, storage_provider, blob_key FROM removed_blobs
     WHERE noted_at <= ?1 ORDER BY noted_at LIMIT ?2)
     AND EXISTS (SELECT 1 FROM files WHERE files.file_id = removed_blobs.file_id)";

/// Writes the receipt of a file that `owner` has claimed; false if it has not.
pub(super) fn put(
    sql: &Connection,
    owner: &str,
    purged: &Purged,
    now: Timestamp,
) -> Result<bool, Fault> {
    let file = row::id(purged.file_id);
    if row::execute(sql, PUT, params![file, owner, now.as_millis()])? == 0 {
        return Ok(false);
    }

    for blob in &purged.removed {
        note(sql, purged.file_id, blob)?;
    }
    row::execute(sql, KEEP, params![file, now.as_millis()])?;
    Ok(true)
}

/// Notes a blob of a file as absent; a second time moves the instant of the last check alone.
pub(super) fn note(sql: &Connection, file: FileId, blob: &RemovedBlob) -> Result<(), Fault> {
    let size = blob.content.map(|content| row::integer(content.size_bytes)).transpose()?;
    let params = params![
        row::id(file),
        blob.holder.as_str(),
        blob.key.as_str(),
        blob.content.as_ref().map(|content| content.sha256.0.as_slice()),
        size,
        blob.absent_at.as_millis(),
        blob.checked_at.as_millis(),
    ];
    row::execute(sql, NOTE, params).map(drop)
}

/// Reads a receipt with its blobs, from one snapshot.
pub(super) fn get(
    sql: &Connection,
    file: FileId,
    scope: &Scope,
) -> Result<Option<PurgedFile>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let id = row::id(file);
    let found = row::first(&snapshot, ONE, [&id], |row| {
        read(row).map_err(|source| damaged("a receipt", file, source))
    })?;
    let Some(mut purged) = found.filter(|one| scope.covers(&one.organization_id)) else {
        return Ok(None);
    };

    let params = params![id, row::limit(LISTED_BLOBS)];
    purged.removed = row::collect_whole(&snapshot, REMOVED, params, |row| {
        removed(row).map_err(|source| damaged("a removed blob", file, source))
    })?;
    let all = row::first(&snapshot, COUNT, [&id], |row| row::count(row, 0))?.unwrap_or(0);
    purged.unlisted = all.saturating_sub(purged.removed.len() as u64);

    for query in [DROPPED, NOTED] {
        purged.awaited.extend(row::collect_whole(&snapshot, query, [&id], |row| {
            awaited(row).map_err(|source| damaged("a dropped blob", file, source))
        })?);
    }
    Ok(Some(purged))
}

/// Forgets up to `limit` receipts and as many blobs; returns the larger of both counts.
pub(super) fn forget(sql: &Connection, before: Timestamp, limit: usize) -> Result<u64, Fault> {
    let params = params![before.as_millis(), row::limit(limit)];
    let receipts = row::execute(sql, FORGET, params)?;
    let spared = row::execute(sql, SPARE_BLOBS, params)?;
    let rest = row::limit(limit.saturating_sub(spared));
    let blobs = spared + row::execute(sql, FORGET_BLOBS, params![before.as_millis(), rest])?;
    Ok(receipts.max(blobs) as u64)
}

fn damaged(what: &str, file: FileId, source: Source) -> Fault {
    Fault::Row { what: format!("{what} of file {file}"), source }
}

fn read(row: &Row<'_>) -> Result<PurgedFile, Source> {
    Ok(PurgedFile {
        file_id: row::parse(row, 0)?,
        organization_id: row::parse(row, 1)?,
        created_at: Timestamp::from_millis(row.get(2)?),
        deleted_at: Timestamp::from_millis(row.get(3)?),
        deleted_by: row::parse(row, 4)?,
        purged_at: Timestamp::from_millis(row.get(5)?),
        removed: Vec::new(),
        unlisted: 0,
        awaited: Vec::new(),
    })
}

fn removed(row: &Row<'_>) -> Result<RemovedBlob, Source> {
    Ok(RemovedBlob {
        holder: row::parse(row, 0)?,
        key: row::parse(row, 1)?,
        content: content(row, 2)?,
        absent_at: Timestamp::from_millis(row.get(4)?),
        checked_at: Timestamp::from_millis(row.get(5)?),
    })
}

/// Reads digest and size, which are both there or both not.
pub(super) fn content(row: &Row<'_>, column: usize) -> Result<Option<Content>, Source> {
    let Some(sha256) = row.get::<_, Option<[u8; 32]>>(column)? else { return Ok(None) };
    Ok(Some(Content { sha256: Sha256(sha256), size_bytes: row::unsigned(row, column + 1)? }))
}

fn awaited(row: &Row<'_>) -> Result<AwaitedBlob, Source> {
    Ok(AwaitedBlob {
        holder: row::parse(row, 0)?,
        key: row::parse(row, 1)?,
        due_at: row.get::<_, Option<i64>>(2)?.map(Timestamp::from_millis),
    })
}
