//! The methods of [`Metadata`], each a read on a connection of the pool or a job of the writer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::backlog::ProviderBacklog;
use crate::domain::binding::{Binding, BindingChange, NewBinding};
use crate::domain::clock::Timestamp;
use crate::domain::config::Durability;
use crate::domain::damage::Damage;
use crate::domain::error::{Error, Result};
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
use crate::tasks;

use crate::metadata::{
    AfterFailure, BindingOutcome, DueBlob, Holding, IdempotencyEntry, InsertFiles, Inserted,
    KeyChange, KeyOutcome, Lease, ListFilter, ListedFiles, Metadata, PurgeBacklog, PurgeClaim,
    Purged, Scope, StoredKey, StoredSecret, SyncClaim, SyncCounts, UpdateFile, Updated,
    WriteIntent,
};

use super::fault::Fault;
use super::{
    SqliteMetadata, backlog, bindings, dropped, files, holdings, holds, idempotency, intents, keys,
    listing, purge, receipts, reread, settings, signing, snapshot, sync, waits,
};

#[async_trait]
impl Metadata for SqliteMetadata {
    async fn file(&self, id: FileId, scope: &Scope) -> Result<Option<Arc<FileRecord>>> {
        self.readers.check()?;

        // A foreign record in memory counts as absent: answered faster than an unknown file, it would
        // tell that it exists.
        match self.cache.get(id).filter(|record| scope.covers(&record.organization_id)) {
            Some(record) => Ok(Some(record)),
            None => self.read_file(id, scope).await,
        }
    }

    fn cached_file(&self, id: FileId, scope: &Scope) -> Option<Arc<FileRecord>> {
        self.readers.check().ok()?;
        self.cache.get(id).filter(|record| scope.covers(&record.organization_id))
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

    async fn active_binding(&self, organization: OrganizationNumber) -> Result<Option<Binding>> {
        self.readers.run("reading a binding", move |sql| bindings::active(sql, organization)).await
    }

    async fn list_bindings(
        &self,
        organization: Option<OrganizationNumber>,
    ) -> Result<Vec<Binding>> {
        self.readers.run("listing bindings", move |sql| bindings::list(sql, organization)).await
    }

    async fn create_binding(&self, binding: NewBinding, now: Timestamp) -> Result<BindingOutcome> {
        self.writer
            .run("creating a binding", move |tx| bindings::create(tx.sql, &binding, now))
            .await
    }

    async fn change_binding(
        &self,
        organization: OrganizationNumber,
        change: BindingChange,
        active_providers: &[ProviderCode],
        now: Timestamp,
    ) -> Result<BindingOutcome> {
        let providers = active_providers.to_vec();
        self.writer
            .run("changing a binding", move |tx| {
                bindings::change(tx.sql, organization, &change, &providers, now)
            })
            .await
    }

    async fn keys(&self) -> Result<Vec<StoredKey>> {
        self.readers.run("reading the keys", keys::list).await
    }

    async fn has_keys(&self) -> Result<bool> {
        self.readers.run("looking for keys", keys::any).await
    }

    async fn insert_key(&self, key: StoredKey, most: usize) -> Result<KeyOutcome> {
        self.writer.run("making a key", move |tx| keys::insert(tx.sql, &key, most)).await
    }

    async fn change_key(&self, id: KeyId, change: KeyChange) -> Result<KeyOutcome> {
        self.writer.run("changing a key", move |tx| keys::change(tx.sql, id, change.clone())).await
    }

    async fn note_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()> {
        self.writer.run("noting uses of keys", move |tx| keys::note_uses(tx.sql, &uses)).await
    }

    async fn expire_temp(&self, now: Timestamp, limit: usize) -> Result<u64> {
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

    async fn begin_writes(&self, intents: Vec<WriteIntent>) -> Result<()> {
        self.writer.run("noting writes", move |tx| intents::begin(tx.sql, &intents)).await
    }

    async fn withdraw_writes(&self, keys: &[BlobKey], not_before: Timestamp) -> Result<()> {
        let keys = keys.to_vec();
        self.writer
            .run("abandoning writes", move |tx| intents::withdraw(tx.sql, &keys, not_before))
            .await
    }

    async fn renew_writes(&self, owner: &str, now: Timestamp) -> Result<()> {
        let owner = owner.to_owned();
        self.writer.run("renewing writes", move |tx| intents::renew(tx.sql, &owner, now)).await
    }

    async fn withdraw_old_writes(
        &self,
        begun_before: Timestamp,
        not_before: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let keys = self
            .readers
            .run("looking for old writes", move |sql| intents::old(sql, begun_before, limit))
            .await?;
        if keys.is_empty() {
            return Ok(0);
        }

        self.withdraw_writes(&keys, not_before).await.map(|()| keys.len() as u64)
    }

    async fn files_elsewhere(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>> {
        let (organization, target) = (organization.clone(), target.clone());
        self.readers
            .run("listing files elsewhere", move |sql| {
                holdings::elsewhere(sql, &organization, &target, after, limit)
            })
            .await
    }

    async fn holdings(&self, organization: &OrganizationId) -> Result<Vec<Holding>> {
        let organization = organization.clone();
        self.readers.run("counting holdings", move |sql| holdings::count(sql, &organization)).await
    }

    async fn blobs_at(&self, provider: &ProviderCode, limit: usize) -> Result<Vec<(BlobKey, u64)>> {
        let provider = provider.clone();
        self.readers
            .run("looking for blobs", move |sql| holdings::some(sql, &provider, limit))
            .await
    }

    async fn sync_counts(&self) -> Result<SyncCounts> {
        self.readers.run("counting files", sync::counts).await
    }

    async fn signing_secrets(&self) -> Result<Vec<StoredSecret>> {
        self.readers.run("reading the signing secrets", signing::all).await
    }

    async fn rotate_signing_secret(
        &self,
        new: SigningSecret,
        now: Timestamp,
        old_until: Timestamp,
    ) -> Result<()> {
        self.writer
            .run("rotating the signing secret", move |tx| {
                signing::rotate(tx.sql, &new, now, old_until)
            })
            .await
    }

    async fn revoke_signing_secret(&self, kid: &str) -> Result<bool> {
        let kid = kid.to_owned();
        self.writer.run("revoking a signing secret", move |tx| signing::revoke(tx.sql, &kid)).await
    }

    async fn forget_signing_secrets(&self, now: Timestamp) -> Result<u64> {
        self.writer.run("forgetting secrets", move |tx| signing::forget(tx.sql, now)).await
    }

    async fn is_permit_used(&self, nonce: &str) -> Result<bool> {
        let nonce = nonce.to_owned();
        self.readers.run("looking up a permit", move |sql| signing::is_used(sql, &nonce)).await
    }

    async fn forget_permits(&self, now: Timestamp, limit: usize) -> Result<u64> {
        self.writer
            .run("forgetting permits", move |tx| signing::forget_used(tx.sql, now, limit))
            .await
    }

    async fn take_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<()> {
        let id = id.to_owned();
        self.writer.run("taking a hold", move |tx| holds::take(tx.sql, &id, now, until)).await
    }

    async fn renew_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<bool> {
        let id = id.to_owned();
        self.writer.run("renewing a hold", move |tx| holds::renew(tx.sql, &id, now, until)).await
    }

    async fn narrow_hold(&self, id: &str, last_row: i64) -> Result<()> {
        let id = id.to_owned();
        self.writer.run("narrowing a hold", move |tx| holds::narrow(tx.sql, &id, last_row)).await
    }

    async fn release_hold(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.writer.run("releasing a hold", move |tx| holds::release(tx.sql, &id)).await
    }

    async fn snapshot_to(&self, path: &Path) -> Result<()> {
        self.readers.check()?;
        let (live, copy) = (self.path.clone(), path.to_owned());
        tasks::blocking(move || snapshot::copy(&live, &copy))
            .await
            .unwrap_or_else(|lost| Err(Error::internal("copying the database", lost)))
    }

    fn damage(&self) -> Damage {
        self.health.damaged.damage()
    }

    fn queued_writes(&self) -> QueueLoad {
        self.writer.load()
    }

    fn store_id(&self) -> StoreId {
        self.store_id
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>> {
        self.readers.run("reading the settings", settings::all).await
    }

    async fn put_settings(&self, values: BTreeMap<String, String>) -> Result<()> {
        self.writer.run("storing settings", move |tx| settings::put(tx.sql, &values)).await
    }

    async fn clear_leases(&self) -> Result<()> {
        self.writer
            .run("ending leases", |tx| {
                purge::clear_leases(tx.sql)?;
                holds::clear(tx.sql)?;
                sync::clear_leases(tx)
            })
            .await
    }

    async fn cap_waits(&self, retries: Timestamp, blobs: Timestamp) -> Result<()> {
        self.writer.run("cutting waits short", move |tx| waits::cap(tx.sql, retries, blobs)).await
    }

    async fn flush(&self) -> Result<()> {
        if self.durability == Durability::Full {
            return Ok(());
        }
        let path = self.path.clone();
        self.readers
            .run("flushing the database", move |_| reread::flush_log(&path).map_err(Fault::Flush))
            .await
    }

    async fn ping(&self) -> Result<()> {
        self.readers
            .run("asking the database", |sql| {
                Ok(sql.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?)
            })
            .await
    }

    async fn poisoned(&self) -> String {
        self.health.poisoned().await
    }

    async fn close(&self) {
        self.readers.close();
        self.writer.close().await;
    }
}
