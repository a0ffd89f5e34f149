//! Purge receipts, and blobs that are confirmed absent.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::id::{FileId, Sha256};
use crate::domain::report::receipt::{AwaitedBlob, Content, LISTED_BLOBS, PurgedFile, RemovedBlob};
use crate::domain::time::clock::Timestamp;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};
use crate::metadata::sqlite::tables::row;
use crate::metadata::{Purged, Receipts};

/// Writes the receipt of a file that `owner` has claimed. The new receipt replaces a receipt from an earlier
/// life of the same id.
pub(in crate::metadata::sqlite) const PUT: &str = "INSERT INTO purge_receipts
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

pub(in crate::metadata::sqlite) const KEEP: &str =
    "UPDATE removed_blobs SET noted_at = max(noted_at, ?2) WHERE file_id = ?1";

pub(in crate::metadata::sqlite) const ONE: &str =
    "SELECT file_id, organization_id, created_at, deleted_at, deleted_by, purged_at
     FROM purge_receipts WHERE file_id = ?1";

pub(in crate::metadata::sqlite) const REMOVED: &str =
    "SELECT storage_provider, blob_key, sha256, size_bytes, absent_at, checked_at
     FROM removed_blobs WHERE file_id = ?1 ORDER BY storage_provider, blob_key LIMIT ?2";

pub(in crate::metadata::sqlite) const COUNT: &str =
    "SELECT count(*) FROM removed_blobs WHERE file_id = ?1";

pub(in crate::metadata::sqlite) const DROPPED: &str =
    "SELECT storage_provider, blob_key, not_before FROM blob_gc WHERE file_id = ?1";

pub(in crate::metadata::sqlite) const NOTED: &str =
    "SELECT storage_provider, blob_key, NULL FROM write_intents WHERE file_id = ?1";

pub(in crate::metadata::sqlite) const FORGET: &str = "DELETE FROM purge_receipts WHERE file_id IN
     (SELECT file_id FROM purge_receipts WHERE purged_at <= ?1 ORDER BY purged_at LIMIT ?2)";

pub(in crate::metadata::sqlite) const FORGET_BLOBS: &str = "DELETE FROM removed_blobs
     WHERE (file_id, storage_provider, blob_key) IN
     (SELECT file_id, storage_provider, blob_key FROM removed_blobs
     WHERE noted_at <= ?1 ORDER BY noted_at LIMIT ?2)";

/// Keeps the blobs of an existing file for another day, because its own receipt will name them.
pub(in crate::metadata::sqlite) const SPARE_BLOBS: &str =
    "UPDATE removed_blobs SET noted_at = ?1 + 86400000
     WHERE (file_id, storage_provider, blob_key) IN
     (SELECT file_id, storage_provider, blob_key FROM removed_blobs
     WHERE noted_at <= ?1 ORDER BY noted_at LIMIT ?2)
     AND EXISTS (SELECT 1 FROM files WHERE files.file_id = removed_blobs.file_id)";

#[async_trait]
impl Receipts for SqliteMetadata {
    async fn receipt(&self, id: FileId, scope: &Scope) -> Result<Option<PurgedFile>> {
        let (file, scope) = (id, scope.clone());
        self.readers
            .run("reading a receipt", move |sql| {
                // One snapshot for the receipt and its blobs.
                let snapshot = sql.unchecked_transaction()?;
                let id = row::id(file);
                let found = row::first(&snapshot, ONE, [&id], |row| {
                    read(row).map_err(|source| damaged("a receipt", file, source))
                })?;
                let Some(mut purged) = found.filter(|one| scope.covers(&one.organization_id))
                else {
                    return Ok(None);
                };

                let params = params![id, row::limit(LISTED_BLOBS)];
                purged.removed = row::collect_whole(&snapshot, REMOVED, params, |row| {
                    removed(row).map_err(|source| damaged("a removed blob", file, source))
                })?;
                let all =
                    row::first(&snapshot, COUNT, [&id], |row| row::count(row, 0))?.unwrap_or(0);
                purged.unlisted = all.saturating_sub(purged.removed.len() as u64);

                for query in [DROPPED, NOTED] {
                    purged.awaited.extend(row::collect_whole(&snapshot, query, [&id], |row| {
                        awaited(row).map_err(|source| damaged("a dropped blob", file, source))
                    })?);
                }
                Ok(Some(purged))
            })
            .await
    }

    async fn forget_receipts(&self, before: Timestamp, limit: usize) -> Result<u64> {
        self.writer
            .run("forgetting receipts", move |tx| {
                let params = params![before.as_millis(), row::limit(limit)];
                let receipts = row::execute(tx.sql, FORGET, params)?;
                let spared = row::execute(tx.sql, SPARE_BLOBS, params)?;
                let rest = row::limit(limit.saturating_sub(spared));
                let params = params![before.as_millis(), rest];
                let blobs = spared + row::execute(tx.sql, FORGET_BLOBS, params)?;
                Ok(receipts.max(blobs) as u64)
            })
            .await
    }
}

/// Writes the receipt of a file that `owner` has claimed. Returns false if `owner` has not claimed it.
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

/// Records a blob of a file as absent. A second call changes only the time of the last check.
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

/// Reads digest and size. Either both are set, or neither.
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
