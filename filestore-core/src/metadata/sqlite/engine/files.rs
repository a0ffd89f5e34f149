//! The records of files, and the replies that are remembered of uploads.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::{BlobId, FileId, OrganizationId, Sha256};
use crate::domain::listing::{ListFilter, ListPosition};
use crate::domain::path::BlobKey;
use crate::domain::record::{FileRecord, Thumbhash};
use crate::domain::scope::Scope;
use crate::domain::usage::Usage;
use crate::metadata::sqlite::{SqliteMetadata, files, idempotency, listing};
use crate::metadata::{
    Files, IdempotencyEntry, InsertFiles, Inserted, ListedFiles, UpdateFile, Updated,
};

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

    async fn list_files(
        &self,
        filter: &ListFilter,
        scope: &Scope,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> Result<ListedFiles> {
        let (filter, scope, after) = (filter.clone(), scope.clone(), after.cloned());
        self.readers
            .run("listing files", move |sql| {
                listing::list(sql, &filter, &scope, after.as_ref(), limit)
            })
            .await
    }

    async fn live_local_keys(&self, ids: &[BlobId]) -> Result<Vec<BlobKey>> {
        let ids = ids.to_vec();
        self.readers.run("looking up blobs", move |sql| files::live_local_keys(sql, &ids)).await
    }

    async fn local_files_since(
        &self,
        since: Timestamp,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>> {
        self.readers
            .run("looking up files", move |sql| files::local_since(sql, since, after, limit))
            .await
    }

    async fn insert_files(&self, insert: InsertFiles) -> Result<Inserted> {
        self.writer.run("inserting files", move |tx| files::insert(tx, &insert)).await
    }

    async fn update_file(&self, update: UpdateFile) -> Result<Updated> {
        self.writer.run("changing a file", move |tx| files::update(tx, &update)).await
    }

    async fn note_thumbhash(
        &self,
        id: FileId,
        sha256: &Sha256,
        thumbhash: &Thumbhash,
    ) -> Result<()> {
        let (sha256, thumbhash) = (*sha256, thumbhash.clone());
        self.writer
            .run("noting a placeholder", move |tx| {
                files::note_thumbhash(tx, id, &sha256, &thumbhash)
            })
            .await
    }

    async fn idempotency(
        &self,
        organization: &OrganizationId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyEntry>> {
        let (organization, key) = (organization.clone(), key.to_owned());
        self.readers
            .run("looking up a reply", move |sql| idempotency::get(sql, &organization, &key, now))
            .await
    }

    async fn forget_idempotency(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.writer
            .run("forgetting replies", move |tx| idempotency::forget(tx.sql, now, limit))
            .await
    }

    async fn stored_bytes(&self, organization: &OrganizationId) -> Result<u64> {
        let organization = organization.clone();
        self.readers
            .run("reading the usage", move |sql| files::stored_bytes(sql, &organization))
            .await
    }

    async fn usage(&self, organization: &OrganizationId) -> Result<Usage> {
        let organization = organization.clone();
        self.readers.run("reading the usage", move |sql| files::usage(sql, &organization)).await
    }
}
