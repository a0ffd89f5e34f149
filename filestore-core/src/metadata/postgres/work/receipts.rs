//! Purge receipts, and blobs that are confirmed absent.
//!
//! # Locking
//! A row of `removed_blobs` is written only under the lock of its file's row, as long as that row exists.
//! Several rows are written in key order.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::id::{FileId, Sha256};
use crate::domain::report::receipt::{AwaitedBlob, Content, LISTED_BLOBS, PurgedFile, RemovedBlob};
use crate::domain::time::clock::Timestamp;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::Sql;
use crate::metadata::postgres::tables::row::{self, id};
use crate::metadata::{Purged, Receipts};

/// A blob can be named twice, but a statement can touch a row only once.
macro_rules! note {
    ($from:literal) => {
        concat!(
            "INSERT INTO removed_blobs AS known (file_id, storage_provider, blob_key, sha256, size_bytes,
     absent_at, checked_at, noted_at)
     SELECT file_id, storage_provider, blob_key, (array_agg(sha256 ORDER BY sha256 NULLS LAST))[1],
     (array_agg(size_bytes ORDER BY sha256 NULLS LAST))[1], min(absent_at), max(checked_at), max(checked_at) ",
            $from,
            " GROUP BY file_id, storage_provider, blob_key ORDER BY file_id, storage_provider, blob_key
     ON CONFLICT (file_id, storage_provider, blob_key) DO UPDATE SET
     sha256 = coalesce(known.sha256, excluded.sha256),
     size_bytes = coalesce(known.size_bytes, excluded.size_bytes),
     absent_at = least(known.absent_at, excluded.absent_at),
     checked_at = greatest(known.checked_at, excluded.checked_at),
     noted_at = greatest(known.noted_at, excluded.noted_at)"
        )
    };
}

const NOTE: &str = note!(
    "FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bigint[])
     AS found (file_id, storage_provider, blob_key, sha256, size_bytes, absent_at, checked_at)"
);

/// Records dropped blobs as absent.
pub(in crate::metadata::postgres) const NOTE_DROPPED: &str = note!(
    "FROM (SELECT file_id, storage_provider, blob_key, sha256, size_bytes, $2::bigint AS absent_at,
     $2::bigint AS checked_at FROM blob_gc WHERE id = ANY ($1)) AS found"
);

pub(in crate::metadata::postgres) const KEEP: &str =
    "UPDATE removed_blobs SET noted_at = greatest(noted_at, $2) WHERE file_id = ANY ($1)";

pub(in crate::metadata::postgres) const ONE: &str =
    "SELECT file_id, organization_id, created_at, deleted_at, deleted_by, purged_at
     FROM purge_receipts WHERE file_id = $1";

pub(in crate::metadata::postgres) const REMOVED: &str =
    "SELECT storage_provider, blob_key, sha256, size_bytes, absent_at, checked_at
     FROM removed_blobs WHERE file_id = $1 ORDER BY storage_provider, blob_key LIMIT $2";

pub(in crate::metadata::postgres) const COUNT: &str =
    "SELECT count(*) FROM removed_blobs WHERE file_id = $1";

pub(in crate::metadata::postgres) const DROPPED: &str =
    "SELECT storage_provider, blob_key, not_before FROM blob_gc WHERE file_id = $1";

pub(in crate::metadata::postgres) const NOTED: &str =
    "SELECT storage_provider, blob_key, NULL::bigint FROM write_intents WHERE file_id = $1";

pub(in crate::metadata::postgres) const FORGET: &str = "WITH old AS MATERIALIZED (
     SELECT file_id FROM purge_receipts WHERE purged_at <= $1 ORDER BY purged_at LIMIT $2
     FOR UPDATE SKIP LOCKED)
     DELETE FROM purge_receipts USING old WHERE purge_receipts.file_id = old.file_id";

pub(in crate::metadata::postgres) const FORGET_BLOBS: &str = "WITH old AS MATERIALIZED (
     SELECT file_id, storage_provider, blob_key FROM removed_blobs WHERE noted_at <= $1
     ORDER BY noted_at LIMIT $2 FOR UPDATE SKIP LOCKED)
     DELETE FROM removed_blobs USING old WHERE removed_blobs.file_id = old.file_id
     AND removed_blobs.storage_provider = old.storage_provider AND removed_blobs.blob_key = old.blob_key";

/// Keeps the blobs of an existing file for another day, because its own receipt will name them.
pub(super) const SPARE_BLOBS: &str = "WITH old AS MATERIALIZED (
     SELECT file_id, storage_provider, blob_key FROM removed_blobs WHERE noted_at <= $1
     ORDER BY noted_at LIMIT $2 FOR UPDATE SKIP LOCKED)
     UPDATE removed_blobs SET noted_at = $1 + 86400000 FROM old WHERE removed_blobs.file_id = old.file_id
     AND removed_blobs.storage_provider = old.storage_provider AND removed_blobs.blob_key = old.blob_key
     AND EXISTS (SELECT 1 FROM files WHERE files.file_id = old.file_id)";

#[async_trait]
impl Receipts for PostgresMetadata {
    async fn receipt(&self, file: FileId, scope: &Scope) -> Result<Option<PurgedFile>> {
        self.engine
            .read_snapshot("reading a receipt", &(file, scope), |sql, &(file, scope)| {
                Box::pin(async move {
                    let id = id(file);
                    let row = sql.first(ONE, &[&id]).await?;
                    let found = row
                        .map(|row| read(&row).map_err(|source| damaged("a receipt", file, source)));
                    let Some(mut purged) =
                        found.transpose()?.filter(|one| scope.covers(&one.organization_id))
                    else {
                        return Ok(None);
                    };

                    for row in sql.rows(REMOVED, &[&id, &row::limit(LISTED_BLOBS)]).await? {
                        let blob = removed(&row)
                            .map_err(|source| damaged("a removed blob", file, source))?;
                        purged.removed.push(blob);
                    }
                    let all =
                        sql.first(COUNT, &[&id]).await?.map_or(Ok(0), |row| row::count(&row, 0))?;
                    purged.unlisted = all.saturating_sub(purged.removed.len() as u64);

                    for query in [DROPPED, NOTED] {
                        for row in sql.rows(query, &[&id]).await? {
                            let blob = awaited(&row)
                                .map_err(|source| damaged("a dropped blob", file, source))?;
                            purged.awaited.push(blob);
                        }
                    }
                    Ok(Some(purged))
                })
            })
            .await
    }

    async fn forget_receipts(&self, before: Timestamp, limit: usize) -> Result<u64> {
        let old = (before.as_millis(), row::limit(limit));
        self.engine
            .write("forgetting receipts", old, |sql, &(before, rows)| {
                Box::pin(async move {
                    let receipts = sql.execute(FORGET, &[&before, &rows]).await?;
                    let spared = sql.execute(SPARE_BLOBS, &[&before, &rows]).await?;
                    let rest = rows - i64::try_from(spared).unwrap_or(rows);
                    let blobs = spared + sql.execute(FORGET_BLOBS, &[&before, &rest]).await?;
                    Ok(receipts.max(blobs))
                })
            })
            .await
    }
}

/// Records the blobs of files with new receipts.
pub(super) async fn note(sql: &Sql, gone: &[&Purged], now: Timestamp) -> Result<(), Fault> {
    let named = || gone.iter().flat_map(|one| one.removed.iter().map(|blob| (one.file_id, blob)));
    let files: Vec<String> = named().map(|(file, _)| id(file)).collect();
    if !files.is_empty() {
        let holders: Vec<&str> = named().map(|(_, blob)| blob.holder.as_str()).collect();
        let keys: Vec<&str> = named().map(|(_, blob)| blob.key.as_str()).collect();
        let (digests, sizes) = contents(named().map(|(_, blob)| blob.content.as_ref()))?;
        let absent: Vec<i64> = named().map(|(_, blob)| blob.absent_at.as_millis()).collect();
        let checked: Vec<i64> = named().map(|(_, blob)| blob.checked_at.as_millis()).collect();
        sql.execute(NOTE, &[&files, &holders, &keys, &digests, &sizes, &absent, &checked]).await?;
    }

    let all: Vec<String> = gone.iter().map(|one| id(one.file_id)).collect();
    sql.execute(KEEP, &[&all, &now.as_millis()]).await.map(drop)
}

/// Records dropped blobs as absent, by row id.
pub(super) async fn note_dropped(sql: &Sql, rows: &[i64], now: Timestamp) -> Result<(), Fault> {
    sql.execute(NOTE_DROPPED, &[&rows, &now.as_millis()]).await.map(drop)
}

/// The columns of a content: digest and size, either both set or both empty.
type Columns<'c> = (Vec<Option<&'c [u8]>>, Vec<Option<i64>>);

fn contents<'c>(all: impl Iterator<Item = Option<&'c Content>>) -> Result<Columns<'c>, Fault> {
    let (mut digests, mut sizes) = (Vec::new(), Vec::new());
    for content in all {
        digests.push(content.map(|content| content.sha256.0.as_slice()));
        sizes.push(content.map(|content| row::integer(content.size_bytes)).transpose()?);
    }
    Ok((digests, sizes))
}

/// Reads digest and size. Either both are set, or neither.
pub(super) fn content(row: &Row, column: usize) -> Result<Option<Content>, Source> {
    let Some(digest) = row.try_get::<_, Option<&[u8]>>(column)? else { return Ok(None) };
    let sha256 = Sha256(digest.try_into().map_err(|_| "no SHA-256")?);
    Ok(Some(Content { sha256, size_bytes: row::unsigned(row, column + 1)? }))
}

fn damaged(what: &str, file: FileId, source: Source) -> Fault {
    Fault::Row { what: format!("{what} of file {file}"), source }
}

fn read(row: &Row) -> Result<PurgedFile, Source> {
    Ok(PurgedFile {
        file_id: row::parse(row, 0)?,
        organization_id: row::parse(row, 1)?,
        created_at: row::instant(row, 2)?,
        deleted_at: row::instant(row, 3)?,
        deleted_by: row::parse(row, 4)?,
        purged_at: row::instant(row, 5)?,
        removed: Vec::new(),
        unlisted: 0,
        awaited: Vec::new(),
    })
}

fn removed(row: &Row) -> Result<RemovedBlob, Source> {
    Ok(RemovedBlob {
        holder: row::parse(row, 0)?,
        key: row::parse(row, 1)?,
        content: content(row, 2)?,
        absent_at: row::instant(row, 4)?,
        checked_at: row::instant(row, 5)?,
    })
}

fn awaited(row: &Row) -> Result<AwaitedBlob, Source> {
    Ok(AwaitedBlob {
        holder: row::parse(row, 0)?,
        key: row::parse(row, 1)?,
        due_at: row::instant_or_none(row, 2)?,
    })
}
