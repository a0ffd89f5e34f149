//! Records: look-ups from memory or from the database, and partial changes.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, params};

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::{FileRecord, Thumbhash};
use crate::domain::file::usage::Usage;
use crate::domain::id::{BlobId, FileId, OrganizationId, Sha256};
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Files, InsertFiles, Inserted, UpdateFile, Updated};

use super::row::{self, columns, id};
use super::{damage, file_writes, usage};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;

pub(in crate::metadata::sqlite) const BY_ID: &str =
    concat!("SELECT ", columns!(), " FROM files WHERE file_id = ?1");

/// A single index look-up. The look-up costs the same for a file of another organization and for a missing
/// file.
pub(in crate::metadata::sqlite) const IS_OWNED: &str =
    "SELECT 1 FROM files INDEXED BY files_by_owner
     WHERE file_id = ?1 AND organization_id = ?2";

pub(in crate::metadata::sqlite) const LOCAL_KEY: &str =
    "SELECT blob_key FROM files WHERE blob_id = ?1 AND storage_location = 'LOCAL'";

/// Only used after an improper stop, so it needs no index.
const LOCAL_SINCE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM files WHERE storage_provider = 'LOCAL' AND stored_at >= ?1 AND file_id > ?2 ORDER BY file_id"
);

/// Stores a placeholder, unless the file has other bytes now.
pub(in crate::metadata::sqlite) const NOTE_THUMBHASH: &str =
    "UPDATE files SET thumbhash = ?3 WHERE file_id = ?1 AND sha256 = ?2 AND thumbhash IS NOT ?3";

#[async_trait]
impl Files for SqliteMetadata {
    async fn file(&self, id: FileId, scope: &Scope) -> Result<Option<Arc<FileRecord>>> {
        self.readers.check()?;

        // A foreign record in memory counts as absent: answered faster than an unknown file, it would
        // tell that it exists.
        match self.caches.records.get(id).filter(|record| scope.covers(&record.organization_id)) {
            Some(record) => Ok(Some(record)),
            None => self.read_file(id, scope).await,
        }
    }

    fn cached_file(&self, id: FileId, scope: &Scope) -> Option<Arc<FileRecord>> {
        self.readers.check().ok()?;
        self.caches.records.get(id).filter(|record| scope.covers(&record.organization_id))
    }

    async fn files(&self, ids: &[FileId], scope: &Scope) -> Result<Vec<Arc<FileRecord>>> {
        let (ids, scope) = (ids.to_vec(), scope.clone());
        self.readers
            .run("reading records", move |sql| {
                let mut found = Vec::with_capacity(ids.len());
                for file_id in ids {
                    if is_within(sql, file_id, &scope)? {
                        let read = row::first(sql, BY_ID, [id(file_id)], row::record);
                        found.extend(damage::pass_over(read)?.flatten().map(Arc::new));
                    }
                }
                Ok(found)
            })
            .await
    }

    async fn live_local_keys(&self, ids: &[BlobId]) -> Result<Vec<BlobKey>> {
        let ids = ids.to_vec();
        self.readers
            .run("looking up blobs", move |sql| {
                let mut keys = Vec::new();
                for blob in ids {
                    let key = row::first(sql, LOCAL_KEY, [blob.to_string()], |row| {
                        row::parse(row, 0)
                            .map_err(|source| Fault::Row { what: format!("blob {blob}"), source })
                    })?;
                    keys.extend(key);
                }
                Ok(keys)
            })
            .await
    }

    async fn local_files_since(
        &self,
        since: Timestamp,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>> {
        self.readers
            .run("looking up files", move |sql| {
                let params = params![since.as_millis(), after.map(id).unwrap_or_default()];
                row::collect_up_to(limit, sql, LOCAL_SINCE, params, row::record)
            })
            .await
    }

    async fn insert_files(&self, insert: InsertFiles) -> Result<Inserted> {
        self.writer.run("inserting files", move |tx| file_writes::insert(tx, &insert)).await
    }

    async fn update_file(&self, update: UpdateFile) -> Result<Updated> {
        self.writer.run("changing a file", move |tx| file_writes::update(tx, &update)).await
    }

    async fn note_thumbhash(
        &self,
        file_id: FileId,
        sha256: &Sha256,
        thumbhash: &Thumbhash,
    ) -> Result<()> {
        let (sha256, thumbhash) = (*sha256, thumbhash.clone());
        self.writer
            .run("noting a placeholder", move |tx| {
                let params = params![id(file_id), sha256.0.as_slice(), thumbhash.as_bytes()];
                if row::execute(tx.sql, NOTE_THUMBHASH, params)? > 0 {
                    tx.touch(file_id);
                }
                Ok(())
            })
            .await
    }

    async fn usage(&self, organization: &OrganizationId) -> Result<Usage> {
        let organization = organization.clone();
        self.readers.run("reading the usage", move |sql| usage::usage(sql, &organization)).await
    }

    async fn stored_bytes(&self, organization: &OrganizationId) -> Result<u64> {
        let organization = organization.clone();
        self.readers
            .run("reading the usage", move |sql| usage::stored_bytes(sql, &organization))
            .await
    }
}

impl SqliteMetadata {
    /// Reads a record within `scope` from the database, and caches it.
    async fn read_file(&self, file_id: FileId, scope: &Scope) -> Result<Option<Arc<FileRecord>>> {
        let (caches, health) = (Arc::clone(&self.caches), Arc::clone(&self.health));
        let scope = scope.clone();
        self.readers
            .run("reading a record", move |sql| {
                if !is_within(sql, file_id, &scope)? {
                    return Ok(None);
                }

                let ticket = caches.records.ticket(file_id);
                let record = row::first(sql, BY_ID, [id(file_id)], row::record)?.map(Arc::new);
                health.damaged.forget(|| format!("file {file_id}"));
                if let Some(record) = &record {
                    caches.records.insert(ticket, record);
                }
                Ok(record)
            })
            .await
    }
}

/// Returns true if the file is within `scope`. Looks up all of its organizations, even after a hit.
pub(in crate::metadata::sqlite) fn is_within(
    sql: &Connection,
    file_id: FileId,
    scope: &Scope,
) -> Result<bool, Fault> {
    let Scope::Organizations(list) = scope else { return Ok(true) };
    let file_id = id(file_id);
    let mut found = false;
    for organization in list {
        let params = params![file_id, organization.as_str()];
        found |= row::first(sql, IS_OWNED, params, |_| Ok(()))?.is_some();
    }
    Ok(found)
}
