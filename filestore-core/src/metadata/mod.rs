//! Metadata: all SQL behind one trait.
//!
//! [`Metadata`] offers all that the use cases and workers need of a database. Each method is one
//! transaction, or one read from one snapshot; no transaction handle leaves an engine. Every change
//! of a file is a compare-and-set on the state it was decided from ([`Expected`]), so a caller that
//! lost a race learns of it and decides again. `contract` is the suite that every engine passes.
//!
//! # Commit point
//! A call that returns `Ok` is durable (unless the engine was opened with
//! [`Durability::Process`](crate::domain::config::Durability)). Blobs named in it were durable before.
//! A write that fails with [`StorageFull`], [`DatabaseFull`] or [`Busy`] committed nothing; after any other
//! error it may have been committed or not. After [`OutcomeUnknown`] it may also be committed yet
//! ([`Metadata::outcomes_known`]).
//!
//! [`StorageFull`]: crate::domain::error::ErrorKind::StorageFull
//! [`DatabaseFull`]: crate::domain::error::ErrorKind::DatabaseFull
//! [`Busy`]: crate::domain::error::ErrorKind::Busy
//! [`OutcomeUnknown`]: crate::domain::error::ErrorKind::OutcomeUnknown

mod types;
mod inspection;
mod stored;
mod damaged_rows;
mod paging;
pub mod sqlite;
#[cfg(feature = "postgres")]
pub mod copying;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(test)]
pub mod contract;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

pub use inspection::{
    CheckName, CheckRun, DriftedTotal, Inspection, MendLocation, MendedRow, NamedBlob,
    PurgeClaimed, Referrer, Total, WalkedFile, WalkedFiles,
};
pub use types::{
    AfterFailure, BindingOutcome, BindingSeen, DroppedBlob, DueBlob, Expected, Holding,
    IdempotencyEntry, InsertFiles, Inserted, KeyChange, KeyOutcome, Lease, ListedFiles,
    PurgeBacklog, PurgeClaim, Purged, StoredKey, StoredSecret, SyncClaim, SyncCounts, UpdateFile,
    Updated, WriteIntent, Writes,
};

use crate::domain::backlog::ProviderBacklog;
use crate::domain::binding::{Binding, BindingChange, NewBinding};
use crate::domain::clock::Timestamp;
use crate::domain::damage::Damage;
use crate::domain::error::Result;
use crate::domain::id::{
    BlobId, FileId, KeyId, OrganizationId, OrganizationNumber, Sha256, StoreId,
};
use crate::domain::listing::{ListFilter, ListPosition};
use crate::domain::load::QueueLoad;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::receipt::PurgedFile;
use crate::domain::record::{FileRecord, Thumbhash};
use crate::domain::scope::Scope;
use crate::domain::signature::SigningSecret;
use crate::domain::usage::Usage;

/// The metadata of a store, in nine groups. [`Inspection`] has what checks of the store ask.
///
/// | group | methods |
/// |---|---|
/// | files | look-up, listing, insert, change, placeholders, remembered replies, usage |
/// | bindings | look-up, creation, change |
/// | keys | reading all, creation, change, uses |
/// | purges | expiry, claims of deleted files, dropped blobs, receipts |
/// | syncs | settling, claims of files to copy, queueing, counts |
/// | writes | objects on their way to a provider, and the holders of files |
/// | signatures | secrets that sign URLs, signed uploads that were made |
/// | holds | what snapshots under way keep from being removed |
/// | engine | settings, health and closing |
///
/// # Claims
/// A claim carries a [`Lease`]: until it ends no other run gets the same row, and after it the row can
/// be claimed again. Its owner tells runs apart; a call of another owner changes nothing.
#[async_trait]
pub trait Metadata: Inspection {
    // ---------------------------------------------------------------------------------------- Files

    /// Returns the file, if it exists within `scope`; deleted ones included until the purge removed
    /// them.
    async fn file(&self, id: FileId, scope: &Scope) -> Result<Option<Arc<FileRecord>>>;

    /// Returns the file from memory, if the engine happens to hold it: `None` means "ask
    /// [`Self::file`]". Never stale: a change is visible here before the call that made it returns.
    /// For hot paths that want to answer without leaving their thread.
    fn cached_file(&self, id: FileId, scope: &Scope) -> Option<Arc<FileRecord>> {
        let _ = (id, scope);
        None
    }

    /// Lists up to `limit` files after `after` (from the first one on, if `None`), in the order that
    /// [`ListFilter`] says. Costs the same in a large table as in a small one; so a filter that no index
    /// answers may show fewer files than there are, and say where to go on.
    async fn list_files(
        &self,
        filter: &ListFilter,
        scope: &Scope,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> Result<ListedFiles>;

    /// Returns the LOCAL blob key that some record refers to with each of `ids`, for recovery and
    /// for completing a rename; ids that no record refers to are left out.
    async fn live_local_keys(&self, ids: &[BlobId]) -> Result<Vec<BlobKey>>;

    /// Lists up to `limit` files that the service's own disk holds and that were stored at `since` or
    /// later, in the order of their ids above `after`. Reads all rows.
    async fn local_files_since(
        &self,
        since: Timestamp,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>>;

    /// Inserts files, all or none. Checks the remembered key first, so that the bytes of an earlier
    /// request with the same key do not put this one over the quota; replaces an entry that had
    /// expired by the first record's `created_at`. Refuses a blob that some record refers to
    /// already. A blob that a provider holds must have its [`WriteIntent`], which ends here.
    async fn insert_files(&self, insert: InsertFiles) -> Result<Inserted>;

    /// Changes a file if it is still as expected and not claimed by the purge. Marks the file for
    /// the purge when the change deletes it and clears the mark when it restores it. A new blob
    /// that a provider holds must have its [`WriteIntent`], which ends here.
    async fn update_file(&self, update: UpdateFile) -> Result<Updated>;

    /// Notes the placeholder of the file's blob with this digest; nothing else of the record changes.
    /// Does nothing if the file is gone or has other bytes. A change that keeps the bytes keeps it.
    async fn note_thumbhash(
        &self,
        id: FileId,
        sha256: &Sha256,
        thumbhash: &Thumbhash,
    ) -> Result<()>;

    /// Returns the remembered reply to `key` of `organization`, unless expired at `now`.
    async fn idempotency(
        &self,
        organization: &OrganizationId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyEntry>>;

    /// Forgets up to `limit` expired replies; returns how many.
    async fn forget_idempotency(&self, now: Timestamp, limit: usize) -> Result<u64>;

    /// Returns the bytes the organization stores, all states counted until their records are gone.
    async fn stored_bytes(&self, organization: &OrganizationId) -> Result<u64>;

    /// Returns the files and bytes the organization stores, counted as
    /// [`stored_bytes`](Self::stored_bytes) counts. Costs the same however many they are.
    async fn usage(&self, organization: &OrganizationId) -> Result<Usage>;

    // ------------------------------------------------------------------------------------- Bindings

    /// Returns the active binding of the organization.
    async fn active_binding(&self, organization: OrganizationNumber) -> Result<Option<Binding>>;

    /// Lists bindings, newest first (by id, descending); of one organization or of all.
    async fn list_bindings(&self, organization: Option<OrganizationNumber>)
    -> Result<Vec<Binding>>;

    /// Creates an active binding.
    async fn create_binding(&self, binding: NewBinding, now: Timestamp) -> Result<BindingOutcome>;

    /// Changes the active binding, or resumes the newest terminated one if none is active and
    /// `change.is_active` is `Some(true)`. Resuming keeps `id` and `effective_from`, clears
    /// `effective_to`, and needs the resulting provider to be in `active_providers`. An update of
    /// an active binding does not look at `active_providers`: the caller checks `change.provider`.
    async fn change_binding(
        &self,
        organization: OrganizationNumber,
        change: BindingChange,
        active_providers: &[ProviderCode],
        now: Timestamp,
    ) -> Result<BindingOutcome>;

    // ----------------------------------------------------------------------------------------- Keys

    /// Lists all keys, revoked and expired ones included, oldest first.
    async fn keys(&self) -> Result<Vec<StoredKey>>;

    /// Tells if a key was ever made. Rows that cannot be read count as well.
    async fn has_keys(&self) -> Result<bool>;

    /// Makes a key. Where there are `most` already, the oldest that is revoked or has expired by the
    /// key's `created_at` makes room.
    async fn insert_key(&self, key: StoredKey, most: usize) -> Result<KeyOutcome>;

    /// Changes a key.
    async fn change_key(&self, id: KeyId, change: KeyChange) -> Result<KeyOutcome>;

    /// Notes when keys were last used; earlier notes of a later use stay.
    async fn note_key_uses(&self, uses: Vec<(KeyId, Timestamp)>) -> Result<()>;

    // --------------------------------------------------------------------------------------- Purges

    /// Marks up to `limit` TEMP files with `expires_at` ≤ `now` for purge; returns how many.
    async fn expire_temp(&self, now: Timestamp, limit: usize) -> Result<u64>;

    /// Claims up to `limit` deleted files that `holder` holds, marked at or before `marked_before`, in
    /// the order in which they came due: a file after its grace period, one that failed after its
    /// wait. Files that a hold keeps are left out, and while one lasts the unclaimed ones behind it come in
    /// the order in which they were stored. From here on they cannot be restored, even after the lease.
    async fn claim_purges(
        &self,
        lease: Lease<'_>,
        holder: &ProviderCode,
        marked_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<PurgeClaim>>;

    /// Makes the purge leases of `owner` last until `lease_until`.
    async fn renew_purges(&self, owner: &str, lease_until: Timestamp) -> Result<()>;

    /// Releases all purge claims of `owner`. The files stay claimed, and are due at once.
    async fn release_purges(&self, owner: &str) -> Result<()>;

    /// Postpones a purge claimed under `lease` until the dropped blobs of `record` at other providers
    /// are found absent: these come due now. The file is given to a run at the end of the lease at the
    /// latest, and at once if none of these blobs is left. Counts no failure.
    async fn await_dropped(&self, lease: Lease<'_>, record: &FileRecord) -> Result<()>;

    /// Deletes the records of claimed files whose bytes are confirmed absent, with their dropped
    /// LOCAL blobs (those at providers come due by themselves), and writes their receipts; rows not
    /// claimed by `owner` are left alone. Returns how many records are gone.
    async fn finish_purges(&self, owner: &str, purged: &[Purged], now: Timestamp) -> Result<u64>;

    /// Returns what is on record of a purged file, if it was one within `scope`: from the deletion of its
    /// record on, with the blobs that [`finish_purges`](Self::finish_purges) and
    /// [`finish_blobs`](Self::finish_blobs) were told of, before and after.
    async fn receipt(&self, id: FileId, scope: &Scope) -> Result<Option<PurgedFile>>;

    /// Forgets up to `limit` receipts of purges that ended at or before `before`, and as many blobs that
    /// were last found absent by then and are on no later receipt. Returns the larger of both counts.
    async fn forget_receipts(&self, before: Timestamp, limit: usize) -> Result<u64>;

    /// Postpones a claimed purge after a failure: the file stays claimed, and is not given to a run
    /// before `retry_at`.
    async fn postpone_purge(&self, owner: &str, id: FileId, retry_at: Timestamp) -> Result<()>;

    /// Counts what a purge would find at `now`.
    async fn purge_backlog(&self, marked_before: Timestamp, now: Timestamp)
    -> Result<PurgeBacklog>;

    /// Counts the work that waits at `now`, by the provider that has it to do: copies, deleted files
    /// marked at or before `marked_before`, dropped blobs past their grace period. Work that waits
    /// after a failure counts too; providers without any work are left out. Reads no record.
    async fn backlog(
        &self,
        marked_before: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<ProviderBacklog>>;

    /// Lists up to `limit` dropped blobs of `holder` with `not_before` ≤ `now`, oldest first. Removal
    /// is idempotent, so they need no lease.
    async fn due_blobs(
        &self,
        holder: &ProviderCode,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueBlob>>;

    /// Forgets dropped blobs whose bytes are confirmed absent, and notes it for the receipts. Those still within their grace period
    /// stay, and come due once more at its end: a delayed write may land until then. A purge that
    /// waits for one of the blobs goes on. A blob that another run has finished meanwhile is passed over,
    /// also if a later one has got its id.
    async fn finish_blobs(&self, blobs: &[DueBlob], now: Timestamp) -> Result<()>;

    /// Ends the waits after failures of up to `limit` purges, dropped blobs and copies each of
    /// `provider`, which answers again: they are due at `now`. Returns how many.
    async fn end_waits(&self, provider: &ProviderCode, now: Timestamp, limit: usize)
    -> Result<u64>;

    /// Postpones a dropped blob after a failed removal, unless another run has finished it.
    async fn postpone_blob(&self, blob: &DueBlob, retry_at: Timestamp) -> Result<()>;

    // ---------------------------------------------------------------------------------------- Syncs

    /// PENDING → NONE for up to `limit` files whose organization has no active binding to a
    /// provider other than LOCAL, or whose blob is at that binding's provider already. Leaves
    /// `updated_at` alone: nothing a user did changed. Returns the ids.
    async fn settle_sync(&self, limit: usize) -> Result<Vec<FileId>>;

    /// PENDING → SYNCING, under a lease, for up to `limit` files whose wait is over, whose
    /// organization's active binding names one of `targets`, and whose blob is not there yet and not at
    /// one of the `unreadable`.
    /// Organizations take turns, beginning after `after`. Files whose lease has ended are PENDING
    /// again first. Notes the writes of the copies.
    async fn claim_syncs(
        &self,
        lease: Lease<'_>,
        targets: &[ProviderCode],
        unreadable: &[ProviderCode],
        after: Option<&OrganizationId>,
        limit: usize,
    ) -> Result<Vec<SyncClaim>>;

    /// Makes the sync leases of the owner last until the end of `lease`, and renews its noted writes.
    async fn renew_syncs(&self, lease: Lease<'_>) -> Result<()>;

    /// Releases all claims of `owner` as if they had never been made: SYNCING → PENDING.
    async fn release_syncs(&self, owner: &str) -> Result<()>;

    /// Ends a claim after a failed attempt: SYNCING → PENDING or FAILED, as `next` says. Leaves a file
    /// alone that `owner` does not hold any more.
    async fn fail_sync(&self, owner: &str, id: FileId, next: AfterFailure) -> Result<()>;

    /// NONE, SYNCED or FAILED → PENDING for the READY files of `organization` that `target` does
    /// not hold, looking at up to `limit` files with ids above `after`. Returns how many, and the
    /// id to go on after; `None` at the end.
    async fn enqueue_sync(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<(u64, Option<FileId>)>;

    /// FAILED → PENDING, with all attempts ahead, for up to `limit` files; of one organization or
    /// of all. Returns how many.
    async fn retry_sync(&self, organization: Option<&OrganizationId>, limit: usize) -> Result<u64>;

    /// Counts files by sync status, deleted ones left out.
    async fn sync_counts(&self) -> Result<SyncCounts>;

    // --------------------------------------------------------------------------------------- Writes

    /// Notes objects that are about to be written.
    async fn begin_writes(&self, intents: Vec<WriteIntent>) -> Result<()>;

    /// Withdraws noted objects that no record will refer to: makes them dropped blobs, to be
    /// removed from `not_before` on. Leaves keys alone that are not noted.
    async fn withdraw_writes(&self, keys: &[BlobKey], not_before: Timestamp) -> Result<()>;

    /// Renews the noted writes of `owner`: they are as young as if they began at `now`.
    async fn renew_writes(&self, owner: &str, now: Timestamp) -> Result<()>;

    /// Withdraws up to `limit` objects noted, or last renewed, before `begun_before`; returns how
    /// many.
    async fn withdraw_old_writes(
        &self,
        begun_before: Timestamp,
        not_before: Timestamp,
        limit: usize,
    ) -> Result<u64>;

    /// Lists up to `limit` READY files of `organization` with ids above `after` that `target` does
    /// not hold, oldest first, deleted ones left out.
    async fn files_elsewhere(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>>;

    /// Counts what each provider holds for `organization`, by status. Reads every file of it.
    async fn holdings(&self, organization: &OrganizationId) -> Result<Vec<Holding>>;

    /// Lists up to `limit` blobs that `provider` holds, with their sizes. May read every file.
    async fn blobs_at(&self, provider: &ProviderCode, limit: usize) -> Result<Vec<(BlobKey, u64)>>;

    // ----------------------------------------------------------------------------------- Signatures

    /// Returns all secrets that sign or verify URLs, the oldest first.
    async fn signing_secrets(&self) -> Result<Vec<StoredSecret>>;

    /// Lets `new` sign from `now` on, and the one that signed before verify until `old_until`.
    async fn rotate_signing_secret(
        &self,
        new: SigningSecret,
        now: Timestamp,
        old_until: Timestamp,
    ) -> Result<()>;

    /// Forgets a secret at once; returns false if there is none of the name.
    async fn revoke_signing_secret(&self, kid: &str) -> Result<bool>;

    /// Forgets the secrets that are not valid any more at `now`; returns how many.
    async fn forget_signing_secrets(&self, now: Timestamp) -> Result<u64>;

    /// Tells if an upload with the permit was made.
    async fn is_permit_used(&self, nonce: &str) -> Result<bool>;

    /// Forgets up to `limit` spent permits that no upload is taken with any more at `now`; returns how
    /// many.
    async fn forget_permits(&self, now: Timestamp, limit: usize) -> Result<u64>;

    // ---------------------------------------------------------------------------------------- Holds

    /// Takes a hold before a snapshot is read: until it ends, no deleted file is claimed that was not
    /// claimed before, and no dropped blob is listed as due. Holds that have ended by `now` are
    /// forgotten.
    async fn take_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<()>;

    /// Makes a hold last until `until`; false if it has ended by `now`, so that what it held may be gone.
    async fn renew_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<bool>;

    /// Frees the deleted files behind `last_row`, which the snapshot does not name.
    async fn narrow_hold(&self, id: &str, last_row: i64) -> Result<()>;

    /// Ends a hold.
    async fn release_hold(&self, id: &str) -> Result<()>;

    /// Copies all that the engine holds, as it is at one instant, to the new file `path`, while others
    /// read and write. Nothing is flushed. The file is read by the engine's own kind of reader.
    async fn snapshot_to(&self, path: &Path) -> Result<()>;

    // --------------------------------------------------------------------------------------- Engine

    /// Reports the stored rows that were found damaged since the engine was opened. They are passed
    /// over by every other call; a look-up of such a file fails with
    /// [`RecordDamaged`](crate::domain::error::ErrorKind::RecordDamaged).
    fn damage(&self) -> Damage;

    /// Returns how many changes wait for the writer.
    fn queued_writes(&self) -> QueueLoad;

    /// Returns the id of the store, which was made with its database and never changes.
    fn store_id(&self) -> StoreId;

    /// Returns all settings, by name.
    async fn settings(&self) -> Result<BTreeMap<String, String>>;

    /// Stores settings, all or none, in the place of earlier values of the same names; other
    /// settings stay. The name `store_id` is refused.
    async fn put_settings(&self, values: BTreeMap<String, String>) -> Result<()>;

    /// Ends all leases and holds, and SYNCING files are PENDING again: at start, when no other process
    /// can have one.
    async fn clear_leases(&self) -> Result<()>;

    /// Makes failed purges and syncs wait no longer than until `retries`, and dropped blobs no longer
    /// than until `blobs`: at start, as a clock that was ahead may have made them wait for years.
    async fn cap_waits(&self, retries: Timestamp, blobs: Timestamp) -> Result<()>;

    /// Makes all earlier commits durable, if the engine was opened not to flush each of them
    /// ([`Durability::Process`](crate::domain::config::Durability)).
    async fn flush(&self) -> Result<()>;

    /// Waits until of every change that ended in
    /// [`OutcomeUnknown`](crate::domain::error::ErrorKind::OutcomeUnknown) so far it is known whether it
    /// was made. Fails once the engine is closed.
    async fn outcomes_known(&self) -> Result<()> {
        Ok(())
    }

    /// Answers if the database does.
    async fn ping(&self) -> Result<()>;

    /// Resolves once the engine met a fault after which it must be opened again (I/O error or
    /// corruption), with a description of the fault. All calls fail from then on; the process
    /// should end.
    async fn poisoned(&self) -> String;

    /// Finishes queued work, checkpoints and closes. Calls after it fail.
    async fn close(&self);
}
