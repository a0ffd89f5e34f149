//! The methods of [`Metadata`], each a read or a write of one connection.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::backlog::ProviderBacklog;
use crate::domain::binding::{Binding, BindingChange, NewBinding};
use crate::domain::clock::Timestamp;
use crate::domain::damage::Damage;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{
    BlobId, FileId, KeyId, OrganizationId, OrganizationNumber, Sha256, StoreId,
};
use crate::domain::listing::ListPosition;
use crate::domain::load::QueueLoad;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::receipt::PurgedFile;
use crate::domain::record::{FileRecord, Thumbhash};
use crate::domain::signature::SigningSecret;
use crate::domain::usage::Usage;
use crate::metadata::{
    AfterFailure, BindingOutcome, DueBlob, Holding, IdempotencyEntry, InsertFiles, Inserted,
    KeyChange, KeyOutcome, Lease, ListFilter, ListedFiles, Metadata, PurgeBacklog, PurgeClaim,
    Purged, Scope, StoredKey, StoredSecret, SyncClaim, SyncCounts, UpdateFile, Updated,
    WriteIntent,
};

use super::{
    PostgresMetadata, backlog, bindings, dropped, files, holdings, holds, idempotency, intents,
    keys, listing, purge, receipts, row, settings, signing, sync, waits,
};

/// A lease that outlives its call.
struct OwnedLease {
    owner: String,
    now: Timestamp,
    until: Timestamp,
}

impl OwnedLease {
    fn of(lease: Lease<'_>) -> Self {
        Self { owner: lease.owner.to_owned(), now: lease.now, until: lease.until }
    }

    fn lease(&self) -> Lease<'_> {
        Lease { owner: &self.owner, now: self.now, until: self.until }
    }
}

#[async_trait]
impl Metadata for PostgresMetadata {
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

    async fn active_binding(&self, organization: OrganizationNumber) -> Result<Option<Binding>> {
        self.engine
            .read("reading a binding", &organization, |sql, one| {
                Box::pin(bindings::active(sql, *one))
            })
            .await
    }

    async fn list_bindings(
        &self,
        organization: Option<OrganizationNumber>,
    ) -> Result<Vec<Binding>> {
        self.engine
            .read("listing bindings", &organization, |sql, one| Box::pin(bindings::list(sql, *one)))
            .await
    }

    async fn create_binding(&self, binding: NewBinding, now: Timestamp) -> Result<BindingOutcome> {
        self.engine
            .write("creating a binding", (binding, now), |sql, (binding, now)| {
                Box::pin(bindings::create(sql, binding, *now))
            })
            .await
    }

    async fn change_binding(
        &self,
        organization: OrganizationNumber,
        change: BindingChange,
        active_providers: &[ProviderCode],
        now: Timestamp,
    ) -> Result<BindingOutcome> {
        let wanted = (organization, change, active_providers.to_vec(), now);
        self.engine
            .write("changing a binding", wanted, |sql, (organization, change, active, now)| {
                Box::pin(bindings::change(sql, *organization, change, active, *now))
            })
            .await
    }

    async fn keys(&self) -> Result<Vec<StoredKey>> {
        self.engine.read("reading the keys", &(), |sql, ()| Box::pin(keys::list(sql))).await
    }

    async fn has_keys(&self) -> Result<bool> {
        self.engine.read("looking for keys", &(), |sql, ()| Box::pin(keys::any(sql))).await
    }

    async fn insert_key(&self, key: StoredKey, most: usize) -> Result<KeyOutcome> {
        self.engine
            .write("making a key", (key, most), |sql, (key, most)| {
                Box::pin(keys::insert(sql, key, *most))
            })
            .await
    }

    async fn change_key(&self, id: KeyId, change: KeyChange) -> Result<KeyOutcome> {
        self.engine
            .write("changing a key", (id, change), |sql, (id, change)| {
                Box::pin(keys::change(sql, *id, change))
            })
            .await
    }

    async fn note_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()> {
        self.engine
            .write("noting uses of keys", uses, |sql, uses| Box::pin(keys::note_uses(sql, uses)))
            .await
    }

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
            .write("postponing a dropped blob", (blob.id, retry_at), |sql, &(id, retry_at)| {
                Box::pin(dropped::postpone(sql, id, retry_at))
            })
            .await
    }

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

    async fn begin_writes(&self, intents: Vec<WriteIntent>) -> Result<()> {
        self.engine
            .write("noting writes", intents, |sql, intents| Box::pin(intents::begin(sql, intents)))
            .await
    }

    async fn withdraw_writes(&self, keys: &[BlobKey], not_before: Timestamp) -> Result<()> {
        self.engine
            .write("abandoning writes", (keys.to_vec(), not_before), |sql, (keys, not_before)| {
                Box::pin(intents::withdraw(sql, keys, *not_before))
            })
            .await
    }

    async fn renew_writes(&self, owner: &str, now: Timestamp) -> Result<()> {
        self.engine
            .write("renewing writes", (owner.to_owned(), now), |sql, (owner, now)| {
                Box::pin(intents::renew(sql, owner, *now))
            })
            .await
    }

    async fn withdraw_old_writes(
        &self,
        begun_before: Timestamp,
        not_before: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let is_any = self
            .engine
            .read("looking for old writes", &begun_before, |sql, begun_before| {
                Box::pin(intents::is_any_old(sql, *begun_before))
            })
            .await?;
        if !is_any {
            return Ok(0);
        }

        let wanted = (begun_before, not_before, limit);
        self.engine
            .write("abandoning writes", wanted, |sql, &(begun_before, not_before, limit)| {
                Box::pin(intents::withdraw_old(sql, begun_before, not_before, limit))
            })
            .await
    }

    async fn files_elsewhere(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>> {
        let wanted = (organization, target, after, limit);
        self.engine
            .read("listing files elsewhere", &wanted, |sql, (one, target, after, limit)| {
                Box::pin(holdings::elsewhere(sql, one, target, *after, *limit))
            })
            .await
    }

    async fn holdings(&self, organization: &OrganizationId) -> Result<Vec<Holding>> {
        self.engine
            .read_snapshot("counting holdings", organization, |sql, one| {
                Box::pin(holdings::count(sql, one))
            })
            .await
    }

    async fn blobs_at(&self, provider: &ProviderCode, limit: usize) -> Result<Vec<(BlobKey, u64)>> {
        self.engine
            .read_snapshot("looking for blobs", &(provider, limit), |sql, (provider, limit)| {
                Box::pin(holdings::some(sql, provider, *limit))
            })
            .await
    }

    async fn signing_secrets(&self) -> Result<Vec<StoredSecret>> {
        self.engine
            .read("reading the signing secrets", &(), |sql, ()| Box::pin(signing::all(sql)))
            .await
    }

    async fn rotate_signing_secret(
        &self,
        new: SigningSecret,
        now: Timestamp,
        old_until: Timestamp,
    ) -> Result<()> {
        let wanted = (new, now, old_until);
        self.engine
            .write("rotating the signing secret", wanted, |sql, (new, now, old_until)| {
                Box::pin(signing::rotate(sql, new, *now, *old_until))
            })
            .await
    }

    async fn revoke_signing_secret(&self, kid: &str) -> Result<bool> {
        self.engine
            .write("revoking a signing secret", kid.to_owned(), |sql, kid| {
                Box::pin(signing::revoke(sql, kid))
            })
            .await
    }

    async fn forget_signing_secrets(&self, now: Timestamp) -> Result<u64> {
        self.engine
            .write("forgetting secrets", now, |sql, now| Box::pin(signing::forget(sql, *now)))
            .await
    }

    async fn is_permit_used(&self, nonce: &str) -> Result<bool> {
        self.engine
            .read("looking up a permit", &nonce, |sql, nonce| {
                Box::pin(signing::is_used(sql, nonce))
            })
            .await
    }

    async fn forget_permits(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.engine
            .write("forgetting permits", (now, limit), |sql, &(now, limit)| {
                Box::pin(signing::forget_used(sql, now, limit))
            })
            .await
    }

    async fn take_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<()> {
        self.engine
            .write("taking a hold", (id.to_owned(), now, until), |sql, (id, now, until)| {
                Box::pin(holds::take(sql, id, *now, *until))
            })
            .await
    }

    async fn renew_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<bool> {
        self.engine
            .write("renewing a hold", (id.to_owned(), now, until), |sql, (id, now, until)| {
                Box::pin(holds::renew(sql, id, *now, *until))
            })
            .await
    }

    async fn narrow_hold(&self, id: &str, last_row: i64) -> Result<()> {
        self.engine
            .write("narrowing a hold", (id.to_owned(), last_row), |sql, (id, last_row)| {
                Box::pin(holds::narrow(sql, id, *last_row))
            })
            .await
    }

    async fn release_hold(&self, id: &str) -> Result<()> {
        self.engine
            .write("releasing a hold", id.to_owned(), |sql, id| Box::pin(holds::release(sql, id)))
            .await
    }

    async fn snapshot_to(&self, _: &Path) -> Result<()> {
        let message = "the records are in PostgreSQL, which has its own backups: pg_dump, or an archive of its log";
        Err(Error::new(ErrorKind::Unusable, message))
    }

    fn damage(&self) -> Damage {
        self.engine.damaged.damage()
    }

    fn queued_writes(&self) -> QueueLoad {
        self.engine.load()
    }

    fn store_id(&self) -> StoreId {
        self.engine.store
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>> {
        self.engine.read("reading the settings", &(), |sql, ()| Box::pin(settings::all(sql))).await
    }

    async fn put_settings(&self, values: BTreeMap<String, String>) -> Result<()> {
        self.engine
            .write("storing settings", values, |sql, values| Box::pin(settings::put(sql, values)))
            .await
    }

    async fn clear_leases(&self) -> Result<()> {
        self.engine
            .write("ending leases", (), |sql, ()| {
                Box::pin(async move {
                    sql.be_patient().await?;
                    purge::clear_leases(sql).await?;
                    holds::clear(sql).await?;
                    sync::clear_leases(sql).await
                })
            })
            .await
    }

    async fn cap_waits(&self, retries: Timestamp, blobs: Timestamp) -> Result<()> {
        self.engine
            .write("cutting waits short", (retries, blobs), |sql, &(retries, blobs)| {
                Box::pin(waits::cap(sql, retries, blobs))
            })
            .await
    }

    async fn flush(&self) -> Result<()> {
        // A commit that is flushed flushes all before it.
        self.engine
            .write("flushing the database", (), |sql, ()| {
                Box::pin(sql.batch("SET LOCAL synchronous_commit TO on"))
            })
            .await
    }

    async fn outcomes_known(&self) -> Result<()> {
        self.engine.outcomes_known().await
    }

    async fn ping(&self) -> Result<()> {
        self.engine
            .read("asking the database", &(), |sql, ()| {
                Box::pin(async move {
                    sql.be_brief();
                    sql.exists("SELECT 1", &[]).await.map(drop)
                })
            })
            .await
    }

    async fn poisoned(&self) -> String {
        // What PostgreSQL has lost it finds again by itself.
        std::future::pending().await
    }

    async fn close(&self) {
        self.engine.close().await;
    }
}
