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
use crate::metadata::sqlite::{SqliteMetadata, backlog, dropped, purge, receipts, sync};
use crate::metadata::{DueBlob, Lease, PurgeBacklog, PurgeClaim, Purged, Purges};

#[async_trait]
impl Purges for SqliteMetadata {
    async fn expire_temp(&self, now: Timestamp, limit: usize) -> Result<u64> {
        let looking = self
            .readers
            .run("looking for expired files", move |sql| purge::is_any_expired(sql, now));
        if !looking.await? {
            return Ok(0);
        }
        self.writer.run("expiring files", move |tx| purge::expire_temp(tx, now, limit)).await
    }

    async fn claim_purges(
        &self,
        lease: Lease<'_>,
        holder: &ProviderCode,
        marked_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<PurgeClaim>> {
        let Lease { owner, now, until } = lease;
        let (owner, holder) = (owner.to_owned(), holder.clone());

        let looked_at = holder.clone();
        let is_due = self
            .readers
            .run("looking for deleted files", move |sql| {
                purge::is_any_due(sql, &looked_at, marked_before, now)
            })
            .await?;
        if !is_due {
            return Ok(Vec::new());
        }

        self.writer
            .run("claiming deleted files", move |tx| {
                let lease = Lease { owner: &owner, now, until };
                purge::claim(tx.sql, lease, &holder, marked_before, limit)
            })
            .await
    }

    async fn renew_purges(&self, owner: &str, lease_until: Timestamp) -> Result<()> {
        let owner = owner.to_owned();
        self.writer
            .run("renewing leases", move |tx| purge::renew(tx.sql, &owner, lease_until))
            .await
    }

    async fn release_purges(&self, owner: &str) -> Result<()> {
        let owner = owner.to_owned();
        self.writer.run("releasing purges", move |tx| purge::release(tx.sql, &owner)).await
    }

    async fn await_dropped(&self, lease: Lease<'_>, record: &FileRecord) -> Result<()> {
        let Lease { owner, now, until } = lease;
        let (owner, record) = (owner.to_owned(), record.clone());
        self.writer
            .run("postponing a purge", move |tx| {
                purge::await_dropped(tx.sql, Lease { owner: &owner, now, until }, &record)
            })
            .await
    }

    async fn finish_purges(&self, owner: &str, purged: &[Purged], now: Timestamp) -> Result<u64> {
        let (owner, purged) = (owner.to_owned(), purged.to_vec());
        self.writer.run("deleting records", move |tx| purge::finish(tx, &owner, &purged, now)).await
    }

    async fn receipt(&self, id: FileId, scope: &Scope) -> Result<Option<PurgedFile>> {
        let scope = scope.clone();
        self.readers.run("reading a receipt", move |sql| receipts::get(sql, id, &scope)).await
    }

    async fn forget_receipts(&self, before: Timestamp, limit: usize) -> Result<u64> {
        self.writer
            .run("forgetting receipts", move |tx| receipts::forget(tx.sql, before, limit))
            .await
    }

    async fn postpone_purge(&self, owner: &str, id: FileId, retry_at: Timestamp) -> Result<()> {
        let owner = owner.to_owned();
        self.writer
            .run("postponing a purge", move |tx| purge::postpone(tx.sql, &owner, id, retry_at))
            .await
    }

    async fn purge_backlog(
        &self,
        marked_before: Timestamp,
        now: Timestamp,
    ) -> Result<PurgeBacklog> {
        self.readers
            .run("counting deleted files", move |sql| purge::backlog(sql, marked_before, now))
            .await
    }

    async fn backlog(
        &self,
        marked_before: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<ProviderBacklog>> {
        self.readers
            .run("counting what waits", move |sql| backlog::count(sql, marked_before, now))
            .await
    }

    async fn due_blobs(
        &self,
        holder: &ProviderCode,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueBlob>> {
        let holder = holder.clone();
        self.readers
            .run("listing dropped blobs", move |sql| dropped::due(sql, &holder, now, limit))
            .await
    }

    async fn keeps_dropped(&self, holder: &ProviderCode) -> Result<bool> {
        let holder = holder.clone();
        self.readers
            .run("looking for dropped blobs", move |sql| dropped::are_kept(sql, &holder))
            .await
    }

    async fn finish_blobs(&self, blobs: &[DueBlob], now: Timestamp) -> Result<()> {
        let blobs = blobs.to_vec();
        self.writer
            .run("forgetting dropped blobs", move |tx| dropped::finish(tx.sql, &blobs, now))
            .await
    }

    async fn end_waits(
        &self,
        provider: &ProviderCode,
        now: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let provider = provider.clone();
        self.writer
            .run("ending waits", move |tx| {
                Ok(purge::end_waits(tx.sql, &provider, now, limit)?
                    + dropped::end_waits(tx.sql, &provider, now, limit)?
                    + sync::end_waits(tx.sql, &provider, now, limit)?)
            })
            .await
    }

    async fn postpone_blob(&self, blob: &DueBlob, retry_at: Timestamp) -> Result<()> {
        let blob = blob.clone();
        self.writer
            .run("postponing a dropped blob", move |tx| dropped::postpone(tx.sql, &blob, retry_at))
            .await
    }
}
