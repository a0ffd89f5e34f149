//! Records: look-ups, and partial changes.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::{FileRecord, Thumbhash};
use crate::domain::file::usage::Usage;
use crate::domain::id::{BlobId, FileId, OrganizationId, Sha256};
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Files, InsertFiles, Inserted, UpdateFile, Updated};

use super::row::{self, columns, id};
use super::{file_writes, usage};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;

pub(in crate::metadata::postgres) const BY_ID: &str =
    concat!("SELECT ", columns!(), " FROM files WHERE file_id = $1");

/// A single index look-up. The look-up costs the same for a file of another organization and for a missing
/// file.
pub(in crate::metadata::postgres) const WITHIN: &str =
    concat!("SELECT ", columns!(), " FROM files WHERE file_id = $1 AND organization_id = ANY ($2)");

pub(in crate::metadata::postgres) const SEVERAL: &str =
    concat!("SELECT ", columns!(), " FROM files WHERE file_id = ANY ($1)");

/// Like [`WITHIN`] for several files.
pub(in crate::metadata::postgres) const SEVERAL_WITHIN: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM files WHERE file_id = ANY ($1) AND organization_id = ANY ($2)"
);

pub(in crate::metadata::postgres) const LOCAL_KEYS: &str =
    "SELECT blob_key, blob_id FROM files WHERE blob_id = ANY ($1) AND storage_location = 'LOCAL'";

/// Only used after an improper stop, so it needs no index.
const LOCAL_SINCE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM files WHERE storage_provider = 'LOCAL' AND stored_at >= $1 AND file_id > $2
     ORDER BY file_id LIMIT $3"
);

/// Stores a placeholder, unless the file has other bytes now.
pub(in crate::metadata::postgres) const NOTE_THUMBHASH: &str = "UPDATE files SET thumbhash = $3
     WHERE file_id = $1 AND sha256 = $2 AND thumbhash IS DISTINCT FROM $3";

#[async_trait]
impl Files for PostgresMetadata {
    async fn file(&self, file_id: FileId, scope: &Scope) -> Result<Option<Arc<FileRecord>>> {
        let record = self
            .engine
            .read("reading a record", &(id(file_id), scope), |sql, (file_id, scope)| {
                Box::pin(async move {
                    let row = match scope {
                        Scope::All => sql.first(BY_ID, &[file_id]).await?,
                        Scope::Organizations(list) => {
                            let list: Vec<&str> = list.iter().map(OrganizationId::as_str).collect();
                            sql.first(WITHIN, &[file_id, &list]).await?
                        }
                    };
                    row.map(|row| row::record(&row)).transpose()
                })
            })
            .await?;
        self.engine.damaged.forget(|| format!("file {file_id}"));
        Ok(record.map(Arc::new))
    }

    async fn files(&self, ids: &[FileId], scope: &Scope) -> Result<Vec<Arc<FileRecord>>> {
        let ids: Vec<String> = ids.iter().copied().map(id).collect();
        self.engine
            .read("reading records", &(ids, scope), |sql, (ids, scope)| {
                Box::pin(async move {
                    let rows = match scope {
                        Scope::All => sql.rows(SEVERAL, &[ids]).await?,
                        Scope::Organizations(list) => {
                            let list: Vec<&str> = list.iter().map(OrganizationId::as_str).collect();
                            sql.rows(SEVERAL_WITHIN, &[ids, &list]).await?
                        }
                    };
                    let mut found = Vec::with_capacity(rows.len());
                    for row in &rows {
                        found.extend(sql.pass_over(row::record(row))?.map(Arc::new));
                    }
                    Ok(found)
                })
            })
            .await
    }

    async fn live_local_keys(&self, ids: &[BlobId]) -> Result<Vec<BlobKey>> {
        self.engine
            .read("looking up blobs", &ids, |sql, ids| {
                Box::pin(async move {
                    let ids: Vec<String> = ids.iter().map(BlobId::to_string).collect();
                    let rows = sql.rows(LOCAL_KEYS, &[&ids]).await?;
                    let key = |row| {
                        row::parse(row, 0).map_err(|source| {
                            let blob: String = row.try_get(1).unwrap_or_default();
                            Fault::Row { what: format!("blob {blob}"), source }
                        })
                    };
                    rows.iter().map(key).collect()
                })
            })
            .await
    }

    async fn local_files_since(
        &self,
        since: Timestamp,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>> {
        let wanted = (since.as_millis(), after, limit);
        self.engine
            .read_snapshot("looking up files", &wanted, |sql, (since, after, limit)| {
                Box::pin(async move {
                    sql.be_patient().await?;
                    row::records_by_id(sql, LOCAL_SINCE, &[since], *after, *limit).await
                })
            })
            .await
    }

    async fn insert_files(&self, insert: InsertFiles) -> Result<Inserted> {
        let Some(first) = insert.records.first() else { return Ok(Inserted::Done) };
        let organization = first.organization_id.clone();
        self.engine
            .write_of(organization, "inserting files", insert, |sql, insert| {
                Box::pin(file_writes::insert(sql, insert))
            })
            .await
    }

    async fn update_file(&self, update: UpdateFile) -> Result<Updated> {
        let organization = update.next.organization_id.clone();
        self.engine
            .write_of(organization, "changing a file", update, |sql, update| {
                Box::pin(file_writes::update(sql, update))
            })
            .await
    }

    async fn note_thumbhash(
        &self,
        file_id: FileId,
        sha256: &Sha256,
        thumbhash: &Thumbhash,
    ) -> Result<()> {
        let note = (id(file_id), *sha256, thumbhash.clone());
        self.engine
            .write("noting a placeholder", note, |sql, (file_id, sha256, thumbhash)| {
                Box::pin(async move {
                    let (digest, thumbhash) = (sha256.0.as_slice(), thumbhash.as_bytes());
                    sql.execute(NOTE_THUMBHASH, &[file_id, &digest, &thumbhash]).await.map(drop)
                })
            })
            .await
    }

    async fn usage(&self, organization: &OrganizationId) -> Result<Usage> {
        self.engine
            .read_snapshot("reading the usage", organization, |sql, one| {
                Box::pin(usage::usage(sql, one))
            })
            .await
    }

    async fn stored_bytes(&self, organization: &OrganizationId) -> Result<u64> {
        self.engine
            .read("reading the usage", organization, |sql, one| {
                Box::pin(usage::stored_bytes(sql, one))
            })
            .await
    }
}
