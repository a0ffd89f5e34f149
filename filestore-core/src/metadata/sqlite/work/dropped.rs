//! Dropped blobs (`blob_gc`): bytes without a record, to be removed after their grace period.
//!
//! If the bytes are gone before the end of the grace period (`kept_until`), the row stays as absent, and the
//! blob is removed again at the end. A delayed write may have arrived in the meantime.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::report::receipt::RemovedBlob;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Dropped, DroppedBlob, DueBlob, Lease};

use super::{holds, receipts};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};
use crate::metadata::sqlite::tables::row;

macro_rules! columns {
    () => {
        "file_id, storage_provider, blob_key, not_before, sha256, size_bytes"
    };
}

const PUT: &str = "INSERT INTO blob_gc
     (file_id, storage_provider, blob_key, not_before, kept_until, sha256, size_bytes)
     VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)";

pub(in crate::metadata::sqlite) const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    ", id, attempts FROM blob_gc INDEXED BY blob_gc_due
     WHERE storage_provider = ?1 AND not_before <= ?2 ORDER BY not_before"
);

pub(super) const KEPT: &str = "SELECT 1 FROM blob_gc INDEXED BY blob_gc_due
     WHERE storage_provider = ?1 AND is_absent = 0 LIMIT 1";

pub(in crate::metadata::sqlite) const OF_FILE: &str =
    concat!("SELECT ", columns!(), " FROM blob_gc WHERE file_id = ?1 AND is_absent = 0");

/// Deletes only LOCAL rows. Provider rows stay until due: a delayed write may still create the
/// object, or the row may be newer than this purge's look-up.
pub(in crate::metadata::sqlite) const FORGET_FILE: &str =
    "DELETE FROM blob_gc WHERE file_id = ?1 AND storage_provider = 'LOCAL'";

pub(in crate::metadata::sqlite) const FINISH: &str =
    "DELETE FROM blob_gc WHERE id = ?1 AND blob_key = ?2 AND kept_until <= ?3";

pub(in crate::metadata::sqlite) const NOTE_ABSENCE: &str =
    "UPDATE blob_gc SET is_absent = 1, not_before = kept_until, attempts = 0
     WHERE id = ?1 AND blob_key = ?2";

pub(in crate::metadata::sqlite) const FAIL: &str =
    "UPDATE blob_gc SET not_before = ?3, attempts = attempts + 1
     WHERE id = ?1 AND blob_key = ?2";

pub(in crate::metadata::sqlite) const HASTEN: &str =
    "UPDATE blob_gc SET not_before = min(not_before, ?3)
     WHERE file_id = ?1 AND is_absent = 0 AND storage_provider NOT IN ('LOCAL', ?2)";

/// Ends the wait of a claimed file after one of its dropped blobs was removed.
pub(in crate::metadata::sqlite) const GO_ON: &str = "UPDATE files SET purge_not_before = 0
     WHERE file_id = ?1 AND purge_claimed = 1 AND purge_owner IS NULL";

pub(in crate::metadata::sqlite) const FILE: &str =
    concat!("SELECT ", columns!(), " FROM blob_gc WHERE id = ?1 AND blob_key = ?2");

#[async_trait]
impl Dropped for SqliteMetadata {
    async fn due_blobs(
        &self,
        holder: &ProviderCode,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueBlob>> {
        let holder = holder.clone();
        self.readers
            .run("listing dropped blobs", move |sql| {
                if holds::last_held_row(sql, now)? > 0 {
                    return Ok(Vec::new());
                }

                let params = params![holder.as_str(), now.as_millis()];
                row::collect_up_to(limit, sql, DUE, params, |row| {
                    Ok(DueBlob {
                        blob: blob(row)?,
                        id: row.get(6)?,
                        attempts: row.get(7)?,
                        owner: None,
                    })
                })
            })
            .await
    }

    async fn keeps_dropped(&self, holder: &ProviderCode) -> Result<bool> {
        let holder = holder.clone();
        self.readers
            .run("looking for dropped blobs", move |sql| {
                Ok(row::first(sql, KEPT, [holder.as_str()], |_| Ok(()))?.is_some())
            })
            .await
    }

    async fn claim_blobs(
        &self,
        lease: Lease<'_>,
        holder: &ProviderCode,
        limit: usize,
    ) -> Result<Vec<DueBlob>> {
        self.due_blobs(holder, lease.now, limit).await
    }

    async fn finish_blobs(&self, blobs: &[DueBlob], now: Timestamp) -> Result<()> {
        let blobs = blobs.to_vec();
        self.writer
            .run("forgetting dropped blobs", move |tx| {
                blobs.iter().try_for_each(|due| finish(tx.sql, due, now))
            })
            .await
    }

    async fn postpone_blob(&self, blob: &DueBlob, retry_at: Timestamp) -> Result<()> {
        let blob = blob.clone();
        self.writer
            .run("postponing a dropped blob", move |tx| {
                let params = params![blob.id, blob.blob.key.as_str(), retry_at.as_millis()];
                row::execute(tx.sql, FAIL, params).map(drop)
            })
            .await
    }
}

/// Records a blob that a record no longer refers to.
pub(in crate::metadata::sqlite) fn put(sql: &Connection, blob: &DroppedBlob) -> Result<(), Fault> {
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

/// Lists the dropped blobs of `file` that are not confirmed absent yet.
pub(super) fn of_file(sql: &Connection, file: FileId) -> Result<Vec<DroppedBlob>, Fault> {
    row::collect_whole(sql, OF_FILE, [row::id(file)], blob)
}

/// Removes the rows of blobs that a purged file dropped on the local disk.
pub(super) fn forget_file(sql: &Connection, file: FileId) -> Result<(), Fault> {
    row::execute(sql, FORGET_FILE, [row::id(file)]).map(drop)
}

/// Makes the dropped blobs of `file` that are neither LOCAL nor at `holder` due at `now`. Returns their
/// number.
pub(super) fn hasten(
    sql: &Connection,
    file: FileId,
    holder: &ProviderCode,
    now: Timestamp,
) -> Result<usize, Fault> {
    row::execute(sql, HASTEN, params![row::id(file), holder.as_str(), now.as_millis()])
}

/// Removes a blob with absent bytes, or marks the blob as absent within its grace period. A purge that waits
/// for it continues.
///
/// SQLite reuses the id of the newest row after that row is deleted. If two runs are concurrent, the slower
/// run could finish a new blob with existing bytes. Therefore the key must match too.
fn finish(sql: &Connection, due: &DueBlob, now: Timestamp) -> Result<(), Fault> {
    let row = params![due.id, due.blob.key.as_str()];
    let Some(DroppedBlob { file_id, provider, key, content, .. }) =
        row::first(sql, FILE, row, blob)?
    else {
        return Ok(());
    };
    let found = RemovedBlob { holder: provider, key, content, absent_at: now, checked_at: now };
    receipts::note(sql, file_id, &found)?;

    let ended = params![due.id, due.blob.key.as_str(), now.as_millis()];
    if row::execute(sql, FINISH, ended)? == 0 {
        row::execute(sql, NOTE_ABSENCE, row)?;
    }
    go_on(sql, file_id)
}

/// Ends the wait of a claimed file.
pub(super) fn go_on(sql: &Connection, file: FileId) -> Result<(), Fault> {
    row::execute(sql, GO_ON, [row::id(file)]).map(drop)
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
