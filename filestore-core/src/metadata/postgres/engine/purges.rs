//! The removal of deleted files and of dropped blobs, and its receipts.

use async_trait::async_trait;

use crate::domain::backlog::ProviderBacklog;
use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::receipt::PurgedFile;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::metadata::postgres::{PostgresMetadata, backlog, dropped, purge, receipts, sync};
use crate::metadata::{DueBlob, Lease, PurgeBacklog, PurgeClaim, Purged, Purges};

use super::OwnedLease;

#[async_trait]
impl Purges for PostgresMetadata {
    async fn expire_temp(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.engine
            .write("expiring files", (now, limit), |sql, &(now, limit)| {
                Box::pin(purge::expire_temp(sql, now, limit))
            })
            .await
    }

    async fn claim_purges(
        &self,
        lease: Lease<'_>,
        holder: &ProviderCode,
        marked_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<PurgeClaim>> {
        let wanted = (holder, marked_before, lease.now);
        let is_due = self
            .engine
            .read("looking for deleted files", &wanted, |sql, (holder, before, now)| {
                Box::pin(purge::is_any_due(sql, holder, *before, *now))
            })
            .await?;
        if !is_due {
            return Ok(Vec::new());
        }

        let wanted = (OwnedLease::of(lease), holder.clone(), marked_before, limit);
        self.engine
            .write("claiming deleted files", wanted, |sql, (lease, holder, before, limit)| {
                Box::pin(purge::claim(sql, lease.lease(), holder, *before, *limit))
            })
            .await
    }

    async fn renew_purges(&self, owner: &str, lease_until: Timestamp) -> Result<()> {
        let renewal = (owner.to_owned(), lease_until);
        self.engine
            .write("renewing leases", renewal, |sql, (owner, until)| {
                Box::pin(purge::renew(sql, owner, *until))
            })
            .await
    }

    async fn release_purges(&self, owner: &str) -> Result<()> {
        self.engine
            .write("releasing purges", owner.to_owned(), |sql, owner| {
                Box::pin(purge::release(sql, owner))
            })
            .await
    }

    async fn await_dropped(&self, lease: Lease<'_>, record: &FileRecord) -> Result<()> {
        let wait = (OwnedLease::of(lease), record.clone());
        self.engine
            .write("postponing a purge", wait, |sql, (lease, record)| {
                Box::pin(purge::await_dropped(sql, lease.lease(), record))
            })
            .await
    }

    async fn finish_purges(&self, owner: &str, purged: &[Purged], now: Timestamp) -> Result<u64> {
        let finished = (owner.to_owned(), purged.to_vec(), now);
        self.engine
            .write("deleting records", finished, |sql, (owner, purged, now)| {
                Box::pin(purge::finish(sql, owner, purged, *now))
            })
            .await
    }

    async fn receipt(&self, id: FileId, scope: &Scope) -> Result<Option<PurgedFile>> {
        self.engine
            .read_snapshot("reading a receipt", &(id, scope), |sql, (id, scope)| {
                Box::pin(receipts::get(sql, *id, scope))
            })
            .await
    }

    async fn forget_receipts(&self, before: Timestamp, limit: usize) -> Result<u64> {
        self.engine
            .write("forgetting receipts", (before, limit), |sql, &(before, limit)| {
                Box::pin(receipts::forget(sql, before, limit))
            })
            .await
    }

    async fn postpone_purge(&self, owner: &str, id: FileId, retry_at: Timestamp) -> Result<()> {
        let failed = (owner.to_owned(), id, retry_at);
        self.engine
            .write("postponing a purge", failed, |sql, (owner, id, retry_at)| {
                Box::pin(purge::postpone(sql, owner, *id, *retry_at))
            })
            .await
    }

    async fn purge_backlog(
        &self,
        marked_before: Timestamp,
        now: Timestamp,
    ) -> Result<PurgeBacklog> {
        self.engine
            .read_snapshot(
                "counting deleted files",
                &(marked_before, now),
                |sql, &(before, now)| Box::pin(purge::backlog(sql, before, now)),
            )
            .await
    }

    async fn backlog(
        &self,
        marked_before: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<ProviderBacklog>> {
        self.engine
            .read_snapshot("counting what waits", &(marked_before, now), |sql, &(before, now)| {
                Box::pin(backlog::count(sql, before, now))
            })
            .await
    }

    async fn due_blobs(
        &self,
        holder: &ProviderCode,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueBlob>> {
        self.engine
            .read("listing dropped blobs", &(holder, now, limit), |sql, (holder, now, limit)| {
                Box::pin(dropped::due(sql, holder, *now, *limit))
            })
            .await
    }

    async fn keeps_dropped(&self, holder: &ProviderCode) -> Result<bool> {
        self.engine
            .read("looking for dropped blobs", &holder, |sql, holder| {
                Box::pin(dropped::are_kept(sql, holder))
            })
            .await
    }

    async fn claim_blobs(
        &self,
        lease: Lease<'_>,
        holder: &ProviderCode,
        limit: usize,
    ) -> Result<Vec<DueBlob>> {
        let is_due = self
            .engine
            .read("looking for dropped blobs", &(holder, lease.now), |sql, (holder, now)| {
                Box::pin(dropped::is_any_due(sql, holder, *now))
            })
            .await?;
        if !is_due {
            return Ok(Vec::new());
        }

        let wanted = (OwnedLease::of(lease), holder.clone(), limit);
        self.engine
            .write("claiming dropped blobs", wanted, |sql, (lease, holder, limit)| {
                Box::pin(dropped::claim(sql, lease.lease(), holder, *limit))
            })
            .await
    }

    async fn renew_blobs(&self, owner: &str, lease_until: Timestamp) -> Result<()> {
        let renewal = (owner.to_owned(), lease_until);
        self.engine
            .write("renewing leases", renewal, |sql, (owner, until)| {
                Box::pin(dropped::renew(sql, owner, *until))
            })
            .await
    }

    async fn release_blobs(&self, owner: &str) -> Result<()> {
        self.engine
            .write("releasing dropped blobs", owner.to_owned(), |sql, owner| {
                Box::pin(dropped::release(sql, owner))
            })
            .await
    }

    async fn finish_blobs(&self, blobs: &[DueBlob], now: Timestamp) -> Result<()> {
        self.engine
            .write("forgetting dropped blobs", (blobs.to_vec(), now), |sql, (blobs, now)| {
                Box::pin(dropped::finish(sql, blobs, *now))
            })
            .await
    }

    async fn end_waits(
        &self,
        provider: &ProviderCode,
        now: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        self.engine
            .write("ending waits", (provider.clone(), now, limit), |sql, (provider, now, limit)| {
                Box::pin(async move {
                    Ok(purge::end_waits(sql, provider, *now, *limit).await?
                        + dropped::end_waits(sql, provider, *now, *limit).await?
                        + sync::end_waits(sql, provider, *now, *limit).await?)
                })
            })
            .await
    }

    async fn postpone_blob(&self, blob: &DueBlob, retry_at: Timestamp) -> Result<()> {
        self.engine
            .write(
                "postponing a dropped blob",
                (blob.clone(), retry_at),
                |sql, (blob, retry_at)| Box::pin(dropped::postpone(sql, blob, *retry_at)),
            )
            .await
    }
}
