//! Dropped blobs (`blob_gc`): bytes without a record, to be removed after their grace period.
//!
//! If the bytes are gone before the end of the grace period (`kept_until`), the row stays as absent, and the
//! blob is removed again at the end. A delayed write may have arrived in the meantime. A run with an expired
//! lease finishes no blobs, because its check of the provider may be older than that end.
//!
//! # Locking
//! Runs of several servers claim at the same time, and skip each other's rows. A claimed row has an owner,
//! and is not due before the end of its lease.

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Dropped, DroppedBlob, DueBlob, Lease};

use super::{holds, receipts};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::{Lock, OwnedLease, Sql};
use crate::metadata::postgres::tables::row::{self, id};

macro_rules! columns {
    () => {
        "file_id, storage_provider, blob_key, not_before, sha256, size_bytes, id"
    };
}

const PUT: &str = "INSERT INTO blob_gc
     (file_id, storage_provider, blob_key, not_before, kept_until, sha256, size_bytes)
     VALUES ($1, $2, $3, $4, $4, $5, $6)";

pub(in crate::metadata::postgres) const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    ", attempts FROM blob_gc WHERE storage_provider = $1 AND not_before <= $2
     ORDER BY not_before LIMIT $3 OFFSET $4"
);

pub(in crate::metadata::postgres) const CLAIMABLE: &str = concat!(
    "SELECT ",
    columns!(),
    ", attempts FROM blob_gc WHERE storage_provider = $1 AND not_before <= $2
     ORDER BY not_before LIMIT $3 OFFSET $4 FOR UPDATE SKIP LOCKED"
);

/// The claim locks the rows.
pub(in crate::metadata::postgres) const CLAIM: &str =
    "UPDATE blob_gc SET owner = $2, not_before = $3 WHERE id = ANY ($1)";

/// Selects the blobs of a run that it still owns, or that are still unowned like before.
pub(in crate::metadata::postgres) const STILL: &str =
    "SELECT b.id FROM unnest($1::bigint[], $2::text[]) AS seen (id, owner)
     JOIN blob_gc AS b ON b.id = seen.id WHERE b.owner IS NOT DISTINCT FROM seen.owner
     ORDER BY b.id FOR UPDATE OF b";

pub(super) const KEPT: &str =
    "SELECT 1 FROM blob_gc WHERE storage_provider = $1 AND NOT is_absent LIMIT 1";

pub(in crate::metadata::postgres) const OF_FILES: &str =
    concat!("SELECT ", columns!(), " FROM blob_gc WHERE file_id = ANY ($1) AND NOT is_absent");

/// Deletes only LOCAL rows. Provider rows stay until due: a delayed write may still create the
/// object, or the row may be newer than this purge's look-up.
pub(in crate::metadata::postgres) const FORGET_FILES: &str =
    "DELETE FROM blob_gc WHERE file_id = ANY ($1) AND storage_provider = 'LOCAL'";

pub(in crate::metadata::postgres) const LOCK_THEM: &str =
    "SELECT 1 FROM files WHERE file_id = ANY ($1) ORDER BY file_id FOR UPDATE";

/// Ends the wait of claimed files after one of their dropped blobs was removed.
pub(in crate::metadata::postgres) const GO_ON: &str = "UPDATE files SET purge_not_before = 0
     WHERE file_id = ANY ($1) AND purge_claimed AND purge_owner IS NULL";

pub(in crate::metadata::postgres) const FILES: &str =
    "SELECT DISTINCT file_id FROM blob_gc WHERE id = ANY ($1)";

pub(in crate::metadata::postgres) const FINISH: &str =
    "DELETE FROM blob_gc WHERE id = ANY ($1) AND kept_until <= $2";

pub(in crate::metadata::postgres) const NOTE_ABSENCE: &str = "UPDATE blob_gc
     SET is_absent = true, not_before = kept_until, attempts = 0, owner = NULL WHERE id = ANY ($1)";

pub(in crate::metadata::postgres) const FAIL: &str =
    "UPDATE blob_gc SET not_before = $2, attempts = attempts + 1, owner = NULL
     WHERE id = $1 AND owner IS NOT DISTINCT FROM $3";

/// A claimed blob is already being removed.
pub(in crate::metadata::postgres) const HASTEN: &str = "UPDATE blob_gc
     SET not_before = CASE WHEN owner IS NULL THEN least(not_before, $3) ELSE not_before END
     WHERE file_id = $1 AND NOT is_absent AND storage_provider NOT IN ('LOCAL', $2)";

#[async_trait]
impl Dropped for PostgresMetadata {
    async fn due_blobs(
        &self,
        holder: &ProviderCode,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueBlob>> {
        self.engine
            .read("listing dropped blobs", &(holder, now, limit), |sql, (holder, now, limit)| {
                Box::pin(list(sql, DUE, holder, *now, *limit))
            })
            .await
    }

    async fn keeps_dropped(&self, holder: &ProviderCode) -> Result<bool> {
        self.engine
            .read("looking for dropped blobs", &holder, |sql, holder| {
                Box::pin(async move { sql.exists(KEPT, &[&holder.as_str()]).await })
            })
            .await
    }

    async fn claim_blobs(
        &self,
        lease: Lease<'_>,
        holder: &ProviderCode,
        limit: usize,
    ) -> Result<Vec<DueBlob>> {
        // Only reads, so that looking in vain costs no transaction.
        let due = self
            .engine
            .read("looking for dropped blobs", &(holder, lease.now), |sql, (holder, now)| {
                Box::pin(list(sql, DUE, holder, *now, 1))
            })
            .await?;
        if due.is_empty() {
            return Ok(Vec::new());
        }

        let wanted = (OwnedLease::of(lease), holder.clone(), limit);
        self.engine
            .write("claiming dropped blobs", wanted, |sql, (lease, holder, limit)| {
                Box::pin(async move {
                    // A hold that is taken waits for this claim: what is dropped behind it is not claimed here.
                    sql.lock_shared(Lock::Holds).await?;
                    let mut claimed = list(sql, CLAIMABLE, holder, lease.now, *limit).await?;
                    let ids: Vec<i64> = claimed.iter().map(|due| due.id).collect();
                    sql.execute(CLAIM, &[&ids, &lease.owner, &lease.until.as_millis()]).await?;

                    for due in &mut claimed {
                        due.owner = Some(lease.owner.clone());
                    }
                    Ok(claimed)
                })
            })
            .await
    }

    async fn finish_blobs(&self, blobs: &[DueBlob], now: Timestamp) -> Result<()> {
        self.engine
            .write("forgetting dropped blobs", (blobs.to_vec(), now), |sql, (blobs, now)| {
                Box::pin(finish(sql, blobs, *now))
            })
            .await
    }

    async fn postpone_blob(&self, blob: &DueBlob, retry_at: Timestamp) -> Result<()> {
        let failed = (blob.id, blob.owner.clone(), retry_at.as_millis());
        self.engine
            .write("postponing a dropped blob", failed, |sql, (id, owner, retry_at)| {
                Box::pin(async move { sql.execute(FAIL, &[id, retry_at, owner]).await.map(drop) })
            })
            .await
    }
}

/// Records a blob that a record no longer refers to.
pub(in crate::metadata::postgres) async fn put(sql: &Sql, blob: &DroppedBlob) -> Result<(), Fault> {
    let not_before = blob.not_before.as_millis();
    let (provider, key) = (blob.provider.as_str(), blob.key.as_str());
    let digest = blob.content.as_ref().map(|content| content.sha256.0.as_slice());
    let size = blob.content.map(|content| row::integer(content.size_bytes)).transpose()?;
    let file_id = id(blob.file_id);
    sql.execute(PUT, &[&file_id, &provider, &key, &not_before, &digest, &size]).await.map(drop)
}

/// Lists due blobs with a query. Skips damaged blobs and continues with others.
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

/// Lists the dropped blobs of `files` that are not confirmed absent yet, each with its file's id. A
/// damaged blob is a separate error.
pub(super) async fn of_files(
    sql: &Sql,
    files: &[String],
) -> Result<Vec<(String, Result<DroppedBlob, Fault>)>, Fault> {
    let rows = sql.rows(OF_FILES, &[&files]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, blob(row)))).collect()
}

/// Removes the rows of blobs that purged files dropped on the local disk.
pub(super) async fn forget_files(sql: &Sql, files: &[String]) -> Result<(), Fault> {
    sql.execute(FORGET_FILES, &[&files]).await.map(drop)
}

/// Makes the dropped blobs of `file` that are neither LOCAL nor at `holder` due at `now`. Returns their
/// number.
pub(super) async fn hasten(
    sql: &Sql,
    file: FileId,
    holder: &ProviderCode,
    now: Timestamp,
) -> Result<u64, Fault> {
    sql.execute(HASTEN, &[&id(file), &holder.as_str(), &now.as_millis()]).await
}

/// Removes blobs with absent bytes, or marks them as absent within their grace period. Records them for the
/// receipts. A purge that waits for one of them continues. Ids are never reused, so a late run cannot finish
/// another blob.
async fn finish(sql: &Sql, blobs: &[DueBlob], now: Timestamp) -> Result<(), Fault> {
    let seen: Vec<i64> = blobs.iter().map(|due| due.id).collect();
    let mut files = Vec::new();
    for row in sql.rows(FILES, &[&seen]).await? {
        files.push(row.try_get(0)?);
    }
    // Before their blobs, as everybody else does.
    lock_files(sql, &files).await?;

    let ids = still(sql, blobs).await?;
    receipts::note_dropped(sql, &ids, now).await?;
    sql.execute(FINISH, &[&ids, &now.as_millis()]).await?;
    sql.execute(NOTE_ABSENCE, &[&ids]).await?;
    go_on(sql, &files).await
}

/// Ends the waits of claimed files.
pub(super) async fn go_on(sql: &Sql, files: &[String]) -> Result<(), Fault> {
    sql.execute(GO_ON, &[&files]).await.map(drop)
}

/// Locks the rows of files.
async fn lock_files(sql: &Sql, files: &[String]) -> Result<(), Fault> {
    sql.execute(LOCK_THEM, &[&files]).await.map(drop)
}

/// Returns the ids of the blobs that no other run has claimed or finished.
async fn still(sql: &Sql, blobs: &[DueBlob]) -> Result<Vec<i64>, Fault> {
    let ids: Vec<i64> = blobs.iter().map(|due| due.id).collect();
    let owners: Vec<Option<&str>> = blobs.iter().map(|due| due.owner.as_deref()).collect();
    let rows = sql.rows(STILL, &[&ids, &owners]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
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
