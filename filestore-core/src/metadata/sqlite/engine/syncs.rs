//! The copies of files to the providers of their organizations.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::metadata::sqlite::{SqliteMetadata, sync};
use crate::metadata::{AfterFailure, Intents, Lease, SyncClaim, SyncCounts, Syncs};

#[async_trait]
impl Syncs for SqliteMetadata {
    async fn settle_sync(&self, limit: usize) -> Result<Vec<FileId>> {
        let found = self
            .readers
            .run("looking for files to settle", move |sql| sync::find_settled(sql, limit))
            .await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        self.writer.run("settling files", move |tx| sync::settle(tx, &found)).await
    }

    async fn claim_syncs(
        &self,
        lease: Lease<'_>,
        targets: &[ProviderCode],
        unreadable: &[ProviderCode],
        after: Option<&OrganizationId>,
        limit: usize,
    ) -> Result<Vec<SyncClaim>> {
        let Lease { owner, now, until } = lease;
        let (targets, after) = (targets.to_vec(), after.cloned());
        let unreadable = unreadable.to_vec();

        let (found, targets) = self
            .readers
            .run("looking for files to sync", move |sql| {
                let found =
                    sync::find_due(sql, (&targets, &unreadable), after.as_ref(), now, limit)?;
                Ok((found, targets))
            })
            .await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }

        let owner = owner.to_owned();
        self.writer
            .run("claiming files to sync", move |tx| {
                sync::claim(tx, &found, &targets, Lease { owner: &owner, now, until })
            })
            .await
    }

    async fn renew_syncs(&self, lease: Lease<'_>) -> Result<()> {
        let Lease { owner, now, until } = lease;
        let owner = owner.to_owned();
        self.writer
            .run("renewing leases", move |tx| {
                sync::renew(tx.sql, Lease { owner: &owner, now, until })
            })
            .await
    }

    async fn release_syncs(&self, owner: &str) -> Result<()> {
        let owner = owner.to_owned();
        self.writer.run("giving syncs back", move |tx| sync::release(tx, &owner)).await
    }

    async fn fail_sync(&self, owner: &str, id: FileId, next: AfterFailure) -> Result<()> {
        let owner = owner.to_owned();
        self.writer.run("giving a sync back", move |tx| sync::fail(tx, &owner, id, next)).await
    }

    async fn enqueue_sync(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<(u64, Option<FileId>)> {
        // On a reader: where most files are there already, many are looked at for each one found.
        let found = self.files_elsewhere(organization, target, after, limit).await?;
        let next = if found.len() < limit { None } else { found.last().map(|last| last.file_id) };
        if found.is_empty() {
            return Ok((0, next));
        }

        let target = target.clone();
        let queued = self.writer.run("queueing files", move |tx| {
            let ids = found.iter().map(|record| record.file_id);
            sync::enqueue(tx, &target, ids)
        });
        Ok((queued.await?, next))
    }

    async fn retry_sync(&self, organization: Option<&OrganizationId>, limit: usize) -> Result<u64> {
        let organization = organization.cloned();
        self.writer
            .run("queueing failed files", move |tx| sync::retry(tx, organization.as_ref(), limit))
            .await
    }

    async fn sync_counts(&self) -> Result<SyncCounts> {
        self.readers.run("counting files", sync::counts).await
    }
}
