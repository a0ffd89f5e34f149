//! Walks over records and write intents, page by page.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::tables::damage;
use crate::metadata::sqlite::tables::row;
use crate::metadata::sqlite::tables::row::{COLUMNS, columns};
use crate::metadata::{NamedBlob, PurgeClaimed, Walk, WalkedFile, WalkedFiles};

use super::exists;

pub(super) const WALK: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_claimed FROM files WHERE file_id > ?1 ORDER BY file_id LIMIT ?2"
);

pub(super) const NAMED: &str = "SELECT 1 FROM files WHERE file_id = ?1 AND blob_key = ?2
     AND storage_provider = ?3 AND purge_claimed = 0";

pub(super) const KNOWN: &str = "SELECT 1 FROM files WHERE file_id = ?1";

pub(super) const OLD_WRITES: &str =
    "SELECT storage_provider, blob_key FROM write_intents INDEXED BY write_intents_by_age
     WHERE begun_at < ?1 ORDER BY begun_at LIMIT ?2";

#[async_trait]
impl Walk for SqliteMetadata {
    async fn walk_files(&self, after: &str, limit: usize) -> Result<WalkedFiles> {
        let after = after.to_owned();
        self.readers
            .run("walking over the records", move |sql| {
                let mut statement = sql.prepare_cached(WALK)?;
                let mut rows = statement.query(params![after, row::limit(limit)])?;

                let (mut page, mut last) = (WalkedFiles::default(), String::new());
                while let Some(row) = rows.next()? {
                    last = raw_id(row)?;
                    page.files.push(walked(row, &last)?);
                }
                page.next = (page.files.len() == limit).then_some(last);
                Ok(page)
            })
            .await
    }

    async fn still_named(&self, blobs: &[NamedBlob]) -> Result<Vec<bool>> {
        let blobs = blobs.to_vec();
        self.readers.run("looking blobs up", move |sql| still_named(sql, &blobs)).await
    }

    async fn known_files(&self, ids: &[FileId]) -> Result<Vec<bool>> {
        let ids = ids.to_vec();
        self.readers
            .run("looking files up", move |sql| {
                ids.iter().map(|id| exists(sql, KNOWN, [row::id(*id)])).collect()
            })
            .await
    }

    async fn old_writes(
        &self,
        begun_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<(ProviderCode, BlobKey)>> {
        self.readers
            .run("looking for old writes", move |sql| {
                row::collect(
                    sql,
                    OLD_WRITES,
                    params![begun_before.as_millis(), row::limit(limit)],
                    |row| {
                        let read =
                            row::parse(row, 0).and_then(|holder| Ok((holder, row::parse(row, 1)?)));
                        read.map_err(|source| Fault::Row { what: "a write intent".into(), source })
                    },
                )
            })
            .await
    }
}

/// Reads the stored text of the id. The walk continues after it, valid or not.
fn raw_id(row: &Row<'_>) -> Result<String, Fault> {
    Ok(String::from_utf8_lossy(row.get_ref(0)?.as_bytes().unwrap_or_default()).into_owned())
}

fn walked(row: &Row<'_>, file_id: &str) -> Result<WalkedFile, Fault> {
    let fault = match row::record(row) {
        Ok(record) => {
            let is_claimed: bool = row.get(COLUMNS)?;
            let claimed = if is_claimed { PurgeClaimed::Yes } else { PurgeClaimed::No };
            return Ok(WalkedFile::Sound(Box::new(record), claimed));
        }
        Err(fault) => fault,
    };

    let reason = fault.to_string();
    damage::pass_over(Err::<(), _>(fault))?;
    Ok(WalkedFile::Damaged { file_id: file_id.to_owned(), reason })
}

pub(super) fn still_named(sql: &Connection, blobs: &[NamedBlob]) -> Result<Vec<bool>, Fault> {
    let mut named = Vec::with_capacity(blobs.len());
    for blob in blobs {
        let params = params![row::id(blob.file_id), blob.key.as_str(), blob.holder.as_str()];
        named.push(exists(sql, NAMED, params)?);
    }
    Ok(named)
}
