//! Write intents: objects at providers without a record yet.

use async_trait::async_trait;
use rusqlite::{Connection, params};

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::Blob;
use crate::domain::time::clock::Timestamp;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::tables::row;
use crate::metadata::{Intents, WriteIntent};

const BEGIN: &str =
    "INSERT INTO write_intents (blob_key, storage_provider, file_id, begun_at, owner)
     VALUES (?1, ?2, ?3, ?4, ?5)";

pub(in crate::metadata::sqlite) const STANDS: &str =
    "SELECT 1 FROM write_intents WHERE blob_key = ?1 AND storage_provider = ?2";

pub(in crate::metadata::sqlite) const END: &str = "DELETE FROM write_intents WHERE blob_key = ?1";

pub(in crate::metadata::sqlite) const HAND_OVER: &str =
    "INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
     SELECT file_id, storage_provider, blob_key, ?2, ?2 FROM write_intents WHERE blob_key = ?1";

pub(in crate::metadata::sqlite) const OLD: &str =
    "SELECT blob_key FROM write_intents INDEXED BY write_intents_by_age
     WHERE begun_at < ?1 ORDER BY begun_at LIMIT ?2";

/// Renewed intents count as new, as if their writes had just begun.
pub(in crate::metadata::sqlite) const RENEW: &str =
    "UPDATE write_intents SET begun_at = ?2 WHERE owner = ?1";

#[async_trait]
impl Intents for SqliteMetadata {
    async fn begin_writes(&self, intents: Vec<WriteIntent>) -> Result<()> {
        self.writer.run("noting writes", move |tx| begin(tx.sql, &intents)).await
    }

    async fn withdraw_writes(&self, keys: &[BlobKey], not_before: Timestamp) -> Result<()> {
        let keys = keys.to_vec();
        self.writer
            .run("abandoning writes", move |tx| {
                for key in &keys {
                    let params = params![key.as_str(), not_before.as_millis()];
                    row::execute(tx.sql, HAND_OVER, params)?;
                }
                forget(tx.sql, &keys)
            })
            .await
    }

    async fn renew_writes(&self, owner: &str, now: Timestamp) -> Result<()> {
        let owner = owner.to_owned();
        self.writer.run("renewing writes", move |tx| renew(tx.sql, &owner, now)).await
    }

    async fn withdraw_old_writes(
        &self,
        begun_before: Timestamp,
        not_before: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        // On a reader, so that looking in vain costs the writer nothing.
        let keys = self
            .readers
            .run("looking for old writes", move |sql| {
                let params = params![begun_before.as_millis(), row::limit(limit)];
                row::collect(sql, OLD, params, |row| {
                    let key = row::parse(row, 0);
                    key.map_err(|source| Fault::Row { what: "a write intent".into(), source })
                })
            })
            .await?;
        if keys.is_empty() {
            return Ok(0);
        }

        self.withdraw_writes(&keys, not_before).await.map(|()| keys.len() as u64)
    }
}

/// Records objects.
pub(super) fn begin(sql: &Connection, intents: &[WriteIntent]) -> Result<(), Fault> {
    for intent in intents {
        let params = params![
            intent.key.as_str(),
            intent.provider.as_str(),
            row::id(intent.file_id),
            intent.begun_at.as_millis(),
            intent.owner.as_deref(),
        ];
        row::execute(sql, BEGIN, params)?;
    }
    Ok(())
}

/// Returns true if a record can refer to the blob. LOCAL blobs need no intent.
pub(in crate::metadata::sqlite) fn stands(sql: &Connection, blob: &Blob) -> Result<bool, Fault> {
    if !is_noted(blob) {
        return Ok(true);
    }
    let found = row::first(sql, STANDS, [blob.key.as_str(), blob.provider.as_str()], |_| Ok(()))?;
    Ok(found.is_some())
}

/// Ends the intent of a blob that gets its record now.
pub(in crate::metadata::sqlite) fn end(sql: &Connection, blob: &Blob) -> Result<(), Fault> {
    if is_noted(blob) { forget(sql, std::slice::from_ref(&blob.key)) } else { Ok(()) }
}

/// Returns true if the write of a blob has an intent. Blobs on the local disk are staged instead.
fn is_noted(blob: &Blob) -> bool {
    !blob.provider.is_local()
}

fn forget(sql: &Connection, keys: &[BlobKey]) -> Result<(), Fault> {
    keys.iter().try_for_each(|key| row::execute(sql, END, [key.as_str()]).map(drop))
}

/// Renews the intents of `owner`, as if the writes began at `now`.
pub(super) fn renew(sql: &Connection, owner: &str, now: Timestamp) -> Result<(), Fault> {
    row::execute(sql, RENEW, params![owner, now.as_millis()]).map(drop)
}
