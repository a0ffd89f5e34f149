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
use crate::metadata::postgres::{PostgresMetadata, files, idempotency, listing};
use crate::metadata::{
    Files, IdempotencyEntry, InsertFiles, Inserted, ListedFiles, UpdateFile, Updated,
};

#[async_trait]
impl Files for PostgresMetadata {
    async fn file(&self, id: FileId, scope: &Scope) -> Result<Option<Arc<FileRecord>>> {
        let record = self
            .engine
            .read("reading a record", &(id, scope), |sql, (id, scope)| {
                Box::pin(files::by_id(sql, *id, scope))
            })
            .await?;
        self.engine.damaged.forget(|| format!("file {id}"));
        Ok(record.map(Arc::new))
    }

    async fn list_files(
        &self,
        filter: &ListFilter,
        scope: &Scope,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> Result<ListedFiles> {
        let wanted = (filter, scope, after, limit);
        self.engine
            .read("listing files", &wanted, |sql, (filter, scope, after, limit)| {
                Box::pin(listing::list(sql, filter, scope, *after, *limit))
            })
            .await
    }

    async fn live_local_keys(&self, ids: &[BlobId]) -> Result<Vec<BlobKey>> {
        self.engine
            .read("looking up blobs", &ids, |sql, ids| Box::pin(files::live_local_keys(sql, ids)))
            .await
    }

    async fn local_files_since(
        &self,
        since: Timestamp,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>> {
        self.engine
            .read_snapshot(
                "looking up files",
                &(since, after, limit),
                |sql, &(since, after, limit)| {
                    Box::pin(files::local_since(sql, since, after, limit))
                },
            )
            .await
    }

    async fn insert_files(&self, insert: InsertFiles) -> Result<Inserted> {
        let Some(first) = insert.records.first() else { return Ok(Inserted::Done) };
        let organization = first.organization_id.clone();
        self.engine
            .write_of(organization, "inserting files", insert, |sql, insert| {
                Box::pin(files::insert(sql, insert))
            })
            .await
    }

    async fn update_file(&self, update: UpdateFile) -> Result<Updated> {
        let organization = update.next.organization_id.clone();
        self.engine
            .write_of(organization, "changing a file", update, |sql, update| {
                Box::pin(files::update(sql, update))
            })
            .await
    }

    async fn note_thumbhash(
        &self,
        id: FileId,
        sha256: &Sha256,
        thumbhash: &Thumbhash,
    ) -> Result<()> {
        let note = (id, *sha256, thumbhash.clone());
        self.engine
            .write("noting a placeholder", note, |sql, (id, sha256, thumbhash)| {
                Box::pin(files::note_thumbhash(sql, *id, sha256, thumbhash))
            })
            .await
    }

    async fn idempotency(
        &self,
        organization: &OrganizationId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyEntry>> {
        let wanted = (organization, key, now);
        self.engine
            .read("looking up a reply", &wanted, |sql, (organization, key, now)| {
                Box::pin(idempotency::get(sql, organization, key, *now))
            })
            .await
    }

    async fn forget_idempotency(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.engine
            .write("forgetting replies", (now, limit), |sql, &(now, limit)| {
                Box::pin(idempotency::forget(sql, now, limit))
            })
            .await
    }

    async fn stored_bytes(&self, organization: &OrganizationId) -> Result<u64> {
        self.engine
            .read("reading the usage", organization, |sql, one| {
                Box::pin(files::stored_bytes(sql, one))
            })
            .await
    }

    async fn usage(&self, organization: &OrganizationId) -> Result<Usage> {
        self.engine
            .read("reading the usage", organization, |sql, one| Box::pin(files::usage(sql, one)))
            .await
    }
}
