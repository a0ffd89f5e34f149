//! The rows that can refer to a blob: records, dropped blobs and write intents.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::tables::row;
use crate::metadata::sqlite::work::{dropped, intents};
use crate::metadata::{DroppedBlob, NamedBlob, Referrer, Referrers};

use super::{exists, walk};

pub(super) const BY_BLOB: &str = "SELECT file_id, storage_provider, blob_key
     FROM files INDEXED BY files_by_blob WHERE blob_id = ?1";

pub(super) const DROPPED: &str = "SELECT 1 FROM blob_gc INDEXED BY blob_gc_by_key
     WHERE blob_key = ?1 AND storage_provider = ?2";

/// Reads all dropped blobs, and each blob's record, if there is one.
const DOOMED_DROPPED: &str = "SELECT f.file_id, f.storage_provider, f.blob_key
     FROM blob_gc g CROSS JOIN files f INDEXED BY files_by_blob
     WHERE f.blob_id = substr(g.blob_key, -26) AND f.blob_key = g.blob_key
     AND f.storage_provider = g.storage_provider AND f.purge_claimed = 0 LIMIT ?1";

const DOOMED_NOTED: &str = "SELECT f.file_id, f.storage_provider, f.blob_key
     FROM write_intents g CROSS JOIN files f INDEXED BY files_by_blob
     WHERE f.blob_id = substr(g.blob_key, -26) AND f.blob_key = g.blob_key
     AND f.storage_provider = g.storage_provider AND f.purge_claimed = 0 LIMIT ?1";

const SPARE_DROPPED: &str = "DELETE FROM blob_gc WHERE blob_key = ?1 AND storage_provider = ?2";

const SPARE_NOTED: &str = "DELETE FROM write_intents WHERE blob_key = ?1 AND storage_provider = ?2";

#[async_trait]
impl Referrers for SqliteMetadata {
    async fn referrers(&self, holder: &ProviderCode, keys: &[BlobKey]) -> Result<Vec<Referrer>> {
        let (holder, keys) = (holder.clone(), keys.to_vec());
        self.readers
            .run("looking for referrers", move |sql| {
                // One snapshot: a blob that goes from a note to its record is seen at one of them.
                let snapshot = sql.unchecked_transaction()?;
                keys.iter().map(|key| of_one(&snapshot, &holder, key)).collect()
            })
            .await
    }

    async fn adopt_orphans(
        &self,
        holder: &ProviderCode,
        keys: &[BlobKey],
        not_before: Timestamp,
    ) -> Result<Vec<bool>> {
        let (holder, keys) = (holder.clone(), keys.to_vec());
        self.writer
            .run("dropping orphans", move |tx| {
                let mut adopted = Vec::with_capacity(keys.len());
                for key in &keys {
                    // An orphan belongs to no file: it gets an id that no file has.
                    let is_orphan = matches!(of_one(tx.sql, &holder, key)?, Referrer::Nobody);
                    if is_orphan {
                        let (file_id, key) = (FileId::generate(not_before), key.clone());
                        let blob = DroppedBlob {
                            file_id,
                            provider: holder.clone(),
                            key,
                            content: None,
                            not_before,
                        };
                        dropped::put(tx.sql, &blob)?;
                    }
                    adopted.push(is_orphan);
                }
                Ok(adopted)
            })
            .await
    }

    async fn doomed_blobs(&self, limit: usize) -> Result<Vec<NamedBlob>> {
        self.readers
            .run("looking for doomed blobs", move |sql| {
                let mut all = row::collect(sql, DOOMED_DROPPED, [row::limit(limit)], named)?;
                let left = limit - all.len();
                all.extend(row::collect(sql, DOOMED_NOTED, [row::limit(left)], named)?);
                Ok(all)
            })
            .await
    }

    async fn spare_blob(&self, blob: &NamedBlob) -> Result<bool> {
        let blob = blob.clone();
        self.writer
            .run("sparing a blob", move |tx| {
                if !walk::still_named(tx.sql, std::slice::from_ref(&blob))?[0] {
                    return Ok(false);
                }
                let params = params![blob.key.as_str(), blob.holder.as_str()];
                let dropped = row::execute(tx.sql, SPARE_DROPPED, params)?;
                Ok(dropped + row::execute(tx.sql, SPARE_NOTED, params)? > 0)
            })
            .await
    }
}

fn of_one(sql: &Connection, holder: &ProviderCode, key: &BlobKey) -> Result<Referrer, Fault> {
    let record = row::first(sql, BY_BLOB, [key.blob_id().to_string()], |row| {
        Ok((lossy(row, 0)?, lossy(row, 1)?, lossy(row, 2)?))
    })?;
    if let Some((_, provider, named)) = &record
        && (provider, named.as_str()) == (&holder.to_string(), key.as_str())
    {
        return Ok(Referrer::Record);
    }

    let params = [key.as_str(), holder.as_str()];
    if exists(sql, DROPPED, params)? {
        return Ok(Referrer::Dropped);
    }
    if exists(sql, intents::STANDS, params)? {
        return Ok(Referrer::Note);
    }
    Ok(match record {
        Some((file_id, holder, key)) => Referrer::Elsewhere { file_id, holder, key },
        None => Referrer::Nobody,
    })
}

/// Reads a text of a row that can be damaged. Invalid UTF-8 matches no name.
fn lossy(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    let value = row.get_ref(column)?;
    Ok(value.as_bytes().map(String::from_utf8_lossy).unwrap_or_default().into_owned())
}

fn named(row: &Row<'_>) -> Result<NamedBlob, Fault> {
    let read = || {
        Ok(NamedBlob {
            file_id: row::parse(row, 0)?,
            holder: row::parse(row, 1)?,
            key: row::parse(row, 2)?,
        })
    };
    read().map_err(|source| Fault::Row { what: "a doomed blob".into(), source })
}
