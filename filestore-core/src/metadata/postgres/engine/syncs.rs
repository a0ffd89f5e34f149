//! The copies of files to the providers of their organizations.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::metadata::postgres::{PostgresMetadata, row, sync};
use crate::metadata::{AfterFailure, Intents as _, Lease, SyncClaim, SyncCounts, Syncs};

use super::OwnedLease;

#[async_trait]
impl Syncs for PostgresMetadata {
    async fn settle_sync(&self, limit: usize) -> Result<Vec<FileId>> {
        let found = self
            .engine
            .read_snapshot("looking for files to settle", &limit, |sql, limit| {
                Box::pin(sync::find_settled(sql, *limit))
            })
            .await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        self.engine
            .write("settling files", found, |sql, found| Box::pin(sync::settle(sql, found)))
            .await
    }

    async fn claim_syncs(
        &self,
        lease: Lease<'_>,
        targets: &[ProviderCode],
        unreadable: &[ProviderCode],
        after: Option<&OrganizationId>,
        limit: usize,
    ) -> Result<Vec<SyncClaim>> {
        let wanted = ((targets, unreadable), after, lease.now, limit);
        let found = self
            .engine
            .read_snapshot(
                "looking for files to sync",
                &wanted,
                |sql, (providers, after, now, limit)| {
                    Box::pin(sync::find_due(sql, *providers, *after, *now, *limit))
                },
            )
            .await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }

        let wanted = (found, targets.to_vec(), OwnedLease::of(lease));
        self.engine
            .write("claiming files to sync", wanted, |sql, (found, targets, lease)| {
                Box::pin(sync::claim(sql, found, targets, lease.lease()))
            })
            .await
    }

    async fn renew_syncs(&self, lease: Lease<'_>) -> Result<()> {
        self.engine
            .write("renewing leases", OwnedLease::of(lease), |sql, lease| {
                Box::pin(sync::renew(sql, lease.lease()))
            })
            .await
    }

    async fn release_syncs(&self, owner: &str) -> Result<()> {
        self.engine
            .write("giving syncs back", owner.to_owned(), |sql, owner| {
                Box::pin(sync::release(sql, owner))
            })
            .await
    }

    async fn fail_sync(&self, owner: &str, id: FileId, next: AfterFailure) -> Result<()> {
        self.engine
            .write("giving a sync back", (owner.to_owned(), id, next), |sql, (owner, id, next)| {
                Box::pin(sync::fail(sql, owner, *id, *next))
            })
            .await
    }

    async fn enqueue_sync(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<(u64, Option<FileId>)> {
        let found = self.files_elsewhere(organization, target, after, limit).await?;
        let next = if found.len() < limit { None } else { found.last().map(|last| last.file_id) };
        if found.is_empty() {
            return Ok((0, next));
        }

        let ids: Vec<FileId> = found.iter().map(|record| record.file_id).collect();
        let queued = self.engine.write(
            "queueing files",
            (target.clone(), row::ids(&ids)),
            |sql, (target, ids)| Box::pin(sync::enqueue(sql, target, ids)),
        );
        Ok((queued.await?, next))
    }

    async fn retry_sync(&self, organization: Option<&OrganizationId>, limit: usize) -> Result<u64> {
        self.engine
            .write("queueing failed files", (organization.cloned(), limit), |sql, (one, limit)| {
                Box::pin(sync::retry(sql, one.as_ref(), *limit))
            })
            .await
    }

    async fn sync_counts(&self) -> Result<SyncCounts> {
        self.engine.read("counting files", &(), |sql, ()| Box::pin(sync::counts(sql))).await
    }
}
