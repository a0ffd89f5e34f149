//! Metadata: all SQL behind one trait.
//!
//! [`Metadata`] is what the use cases and workers need of a database. Each method is one
//! transaction, or one read from one snapshot; no transaction handle leaves an engine. Every change
//! of a file is a compare-and-set on the state it was decided from ([`Expected`]), so a caller that
//! lost a race learns so and decides again. `contract` is the suite that every engine passes.
//!
//! # Commit point
//! A call that returns `Ok` is durable (unless the engine was opened with
//! [`Durability::Process`](crate::domain::config::Durability)). Blobs named in it were durable before.
//! A write that fails with [`StorageFull`](crate::domain::error::ErrorKind::StorageFull) or
//! [`Busy`](crate::domain::error::ErrorKind::Busy) committed nothing; after any other error it may have
//! been committed or not.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::binding::{Binding, BindingChange, NewBinding};
use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::{BlobId, FileId, OrganizationId, OrganizationNumber};
use crate::domain::lifecycle::FileState;
use crate::domain::listing::ListFilter;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::domain::status::Status;

#[cfg(test)]
pub mod contract;
pub mod sqlite;

/// The state a change was decided from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The record's version.
    pub version: u64,
    /// Its whole state.
    pub state: FileState,
    /// Its blob: a move changes neither version nor, from one provider to another, the state.
    pub blob: BlobId,
}

impl Expected {
    /// What `record` shows.
    pub fn of(record: &FileRecord) -> Self {
        Self { version: record.version, state: record.state, blob: record.blob.key.blob_id() }
    }
}

/// The binding an upload was placed by; the insert checks that it still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingSeen {
    /// The organization's binding number; `None` if no binding can govern it.
    pub organization: Option<OrganizationNumber>,
    /// The active binding's provider and sync flag, if there was one.
    pub active: Option<(ProviderCode, bool)>,
}

/// Files to insert: one, or a whole batch. All or nothing.
#[derive(Debug, Clone)]
pub struct InsertFiles {
    /// The records, of one organization.
    pub records: Vec<FileRecord>,
    /// What the placement was decided from.
    pub binding: BindingSeen,
    /// The organization may not store more bytes than this, these files included.
    pub quota_bytes: Option<u64>,
    /// Committed with the records.
    pub idempotency: Option<IdempotencyEntry>,
}

/// What became of an insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inserted {
    /// The records are in.
    Done,
    /// The active binding is another one by now, or what was written to a provider for the files was
    /// given up meanwhile: place them anew.
    BindingChanged,
    /// The organization would store more than its quota; nothing was inserted.
    OverQuota,
    /// Another request committed the same idempotency key first; nothing was inserted.
    IdempotencyTaken,
}

/// A remembered reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyEntry {
    /// Whose key it is: the organization.
    pub organization: OrganizationId,
    /// The key as the client sent it, prefixed by what it is scoped to.
    pub key: String,
    /// A digest of the request's fields and items.
    pub fingerprint: [u8; 32],
    /// The files the reply showed, in its order.
    pub file_ids: Vec<FileId>,
    /// The reply's body.
    pub reply: Vec<u8>,
    /// When it is forgotten.
    pub expires_at: Timestamp,
}

/// A change of one file.
#[derive(Debug, Clone)]
pub struct UpdateFile {
    /// The state it was decided from.
    pub expected: Expected,
    /// The whole record as it shall be (same `file_id`; `organization_id`, `sub_system` and
    /// `created_at` do not change).
    pub next: FileRecord,
    /// The old blob, to be removed later, if the change drops it.
    pub drop_blob: Option<DroppedBlob>,
    /// As in [`InsertFiles::quota_bytes`]; checked if the change makes the file larger.
    pub quota_bytes: Option<u64>,
    /// As in [`InsertFiles::binding`]; checked if given.
    pub binding: Option<BindingSeen>,
}

/// What became of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Updated {
    /// The record is changed.
    Done,
    /// The file is not in the expected state any more, or claimed by the purge, or gone.
    Lost,
    /// The active binding is another one by now, or what was written to a provider for the file was
    /// given up meanwhile.
    BindingChanged,
    /// The organization would store more than its quota.
    OverQuota,
}

/// An object about to be written to a provider under a key of its own. It is known before its first
/// byte leaves, so that neither a failure nor a crash can leave it there for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteIntent {
    /// The file it is for.
    pub file_id: FileId,
    /// Who is to hold it.
    pub provider: ProviderCode,
    /// Under which key.
    pub key: BlobKey,
    /// When.
    pub begun_at: Timestamp,
}

/// A file claimed for a copy to its organization's provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncClaim {
    /// The file, SYNCING by now.
    pub record: FileRecord,
    /// Where it is to go.
    pub target: ProviderCode,
    /// The key of the copy, which is noted as a [`WriteIntent`].
    pub key: BlobKey,
    /// Failed tries so far.
    pub attempts: u32,
}

/// Files of one organization at one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// Who holds the bytes.
    pub provider: ProviderCode,
    /// The files' status.
    pub status: Status,
    /// How many, deleted ones left out.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A blob that no record refers to any more, waiting for its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedBlob {
    /// The file it belonged to.
    pub file_id: FileId,
    /// Who holds it.
    pub provider: ProviderCode,
    /// Under which key.
    pub key: BlobKey,
    /// Not to be removed before.
    pub not_before: Timestamp,
}

/// A dropped blob that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueBlob {
    /// The row's id.
    pub id: i64,
    /// The blob.
    pub blob: DroppedBlob,
    /// Failed removals so far.
    pub attempts: u32,
}

/// A deleted file claimed for removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeClaim {
    /// The file.
    pub record: FileRecord,
    /// Blobs it dropped that are not removed yet.
    pub dropped: Vec<DroppedBlob>,
    /// Failed removals so far.
    pub attempts: u32,
}

/// Counts of deleted files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeBacklog {
    /// TEMP files whose time is over but which are not marked yet.
    pub expired: u64,
    /// Marked files whose grace is over.
    pub due: u64,
    /// Their bytes.
    pub due_bytes: u64,
    /// Marked files still within their grace.
    pub waiting: u64,
    /// Dropped blobs whose grace is over.
    pub due_blobs: u64,
}

/// Counts by sync status, in the order of [`SyncStatus::ALL`](crate::domain::status::SyncStatus).
pub type SyncCounts = [u64; 5];

/// Why a binding was not created or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindingChanged {
    /// Done; the binding as it is now.
    Done(Binding),
    /// The organization has an active one already.
    AlreadyActive,
    /// The organization has no active one (and none to resume, if asked).
    NoneActive,
    /// Resuming would bring an inactive or unknown provider back; carries its code.
    ProviderInactive(ProviderCode),
}

/// The metadata of a store.
#[async_trait]
pub trait Metadata: Send + Sync + 'static {
    /// The file, if it exists within `scope`; deleted ones included until the purge removed them.
    async fn file(&self, id: FileId, scope: &Scope) -> Result<Option<Arc<FileRecord>>>;

    /// The file from memory, if the engine happens to hold it: `None` means "ask [`Self::file`]".
    /// Never stale: a change is visible here before the call that made it returns. For hot paths
    /// that want to answer without leaving their thread.
    fn cached_file(&self, id: FileId, scope: &Scope) -> Option<Arc<FileRecord>> {
        let _ = (id, scope);
        None
    }

    /// Up to `limit` files with ids below `before` (all, if `None`), newest first. Costs the same
    /// in a large table as in a small one.
    async fn list_files(
        &self,
        filter: &ListFilter,
        scope: &Scope,
        before: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>>;

    /// The LOCAL blob key that some record refers to with each of `ids`, for recovery and for
    /// completing a rename; ids that no record refers to are left out.
    async fn live_local_keys(&self, ids: &[BlobId]) -> Result<Vec<BlobKey>>;

    /// Inserts files, all or none. A remembered key is checked first, so that a twin's own bytes do
    /// not put it over the quota; an entry that had expired by the first record's `created_at` is
    /// replaced. Refuses a blob that some record refers to already. A blob that a provider holds must
    /// have its [`WriteIntent`], which ends here.
    async fn insert_files(&self, insert: InsertFiles) -> Result<Inserted>;

    /// Changes a file if it is still as expected and not claimed by the purge. Sets
    /// `purge marked at` when the change deletes the file and clears it when it restores it. A new blob
    /// that a provider holds must have its [`WriteIntent`], which ends here.
    async fn update_file(&self, update: UpdateFile) -> Result<Updated>;

    /// The remembered reply to `key` of `organization`, unless expired at `now`.
    async fn idempotency(
        &self,
        organization: &OrganizationId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyEntry>>;

    /// Forgets up to `limit` expired replies.
    async fn forget_idempotency(&self, now: Timestamp, limit: usize) -> Result<u64>;

    /// Bytes the organization stores, all states counted until their records are gone.
    async fn stored_bytes(&self, organization: &OrganizationId) -> Result<u64>;

    // Bindings.

    /// The active binding of the organization.
    async fn active_binding(&self, organization: OrganizationNumber) -> Result<Option<Binding>>;

    /// Bindings, newest first (by id, descending); of one organization or of all.
    async fn list_bindings(&self, organization: Option<OrganizationNumber>)
    -> Result<Vec<Binding>>;

    /// Creates an active binding.
    async fn create_binding(&self, binding: NewBinding, now: Timestamp) -> Result<BindingChanged>;

    /// Changes the active binding, or resumes the newest terminated one if none is active and
    /// `change.is_active` is `Some(true)`. Resuming keeps `id` and `effective_from`, clears
    /// `effective_to`, and needs the resulting provider to be in `active_providers`. An update of
    /// an active binding checks the provider only where `change.provider` names one (by the caller).
    async fn change_binding(
        &self,
        organization: OrganizationNumber,
        change: BindingChange,
        active_providers: &[ProviderCode],
        now: Timestamp,
    ) -> Result<BindingChanged>;

    // Background work. A claim carries a lease: until it ends nobody else gets the same row, and
    // after it the row can be claimed again. `owner` tells runs apart.

    /// Marks up to `limit` TEMP files with `expires_at` ≤ `now` for purge; returns how many.
    async fn expire_temp(&self, now: Timestamp, limit: usize) -> Result<u64>;

    /// Claims up to `limit` deleted files marked at or before `marked_before`, oldest first. From
    /// here on they cannot be restored, even after the lease.
    async fn claim_purges(
        &self,
        owner: &str,
        marked_before: Timestamp,
        now: Timestamp,
        lease_until: Timestamp,
        limit: usize,
    ) -> Result<Vec<PurgeClaim>>;

    /// Deletes the records of claimed files whose bytes are confirmed absent, with their dropped LOCAL
    /// blobs (those at providers come due by themselves); rows not claimed by `owner` are left alone. Returns how many records are gone.
    async fn finish_purges(&self, owner: &str, ids: &[FileId]) -> Result<u64>;

    /// Gives a claim back after a failure: not to be tried before `retry_at`.
    async fn fail_purge(&self, owner: &str, id: FileId, retry_at: Timestamp) -> Result<()>;

    /// What a purge would find at `now`.
    async fn purge_backlog(&self, marked_before: Timestamp, now: Timestamp)
    -> Result<PurgeBacklog>;

    /// Up to `limit` dropped blobs with `not_before` ≤ `now`, oldest first. Removal is idempotent,
    /// so they need no lease.
    async fn due_blobs(&self, now: Timestamp, limit: usize) -> Result<Vec<DueBlob>>;

    /// Forgets dropped blobs whose bytes are confirmed absent.
    async fn finish_blobs(&self, ids: &[i64]) -> Result<()>;

    /// Postpones a dropped blob after a failed removal.
    async fn fail_blob(&self, id: i64, retry_at: Timestamp) -> Result<()>;

    /// PENDING → NONE for up to `limit` files whose organization has no active binding to a provider
    /// other than LOCAL, or whose blob is at that binding's provider already. `updated_at` is left
    /// alone: nothing a user did changed. Returns the ids.
    async fn settle_sync(&self, limit: usize) -> Result<Vec<FileId>>;

    /// PENDING → SYNCING for up to `limit` files whose organization's active binding names one of
    /// `targets` and whose blob is not there yet, past their wait, under a lease. Organizations take
    /// turns, beginning after `after`. Files whose lease has ended are PENDING again first. Notes the
    /// writes of the copies.
    async fn claim_syncs(
        &self,
        owner: &str,
        targets: &[ProviderCode],
        after: Option<&OrganizationId>,
        now: Timestamp,
        lease_until: Timestamp,
        limit: usize,
    ) -> Result<Vec<SyncClaim>>;

    /// Makes the leases of `owner` last until `lease_until`.
    async fn renew_syncs(&self, owner: &str, lease_until: Timestamp) -> Result<()>;

    /// Gives all claims of `owner` back as if they had never been made: SYNCING → PENDING.
    async fn release_syncs(&self, owner: &str) -> Result<()>;

    /// Gives a claim back after a failure: SYNCING → PENDING, not to be tried before `retry_at`, or
    /// FAILED without one. A file that `owner` does not hold any more is left alone.
    async fn fail_sync(&self, owner: &str, id: FileId, retry_at: Option<Timestamp>) -> Result<()>;

    /// NONE, SYNCED or FAILED → PENDING for the READY files of `organization` that `target` does not
    /// hold, looking at up to `limit` files with ids above `after`. Returns how many, and the id to go
    /// on after; `None` at the end.
    async fn enqueue_sync(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<(u64, Option<FileId>)>;

    /// FAILED → PENDING, with all tries ahead, for up to `limit` files; of one organization or of all.
    /// Returns how many.
    async fn retry_sync(&self, organization: Option<&OrganizationId>, limit: usize) -> Result<u64>;

    // Bytes at providers.

    /// Notes objects that are about to be written.
    async fn begin_writes(&self, intents: Vec<WriteIntent>) -> Result<()>;

    /// Hands noted objects that no record will refer to over to the dropped blobs, to be removed from
    /// `not_before` on. Keys that are not noted are left alone.
    async fn abandon_writes(&self, keys: &[BlobKey], not_before: Timestamp) -> Result<()>;

    /// The same for up to `limit` objects noted before `begun_before`; returns how many.
    async fn abandon_old_writes(
        &self,
        begun_before: Timestamp,
        not_before: Timestamp,
        limit: usize,
    ) -> Result<u64>;

    /// Up to `limit` READY files of `organization` with ids above `after` that `target` does not hold,
    /// oldest first, deleted ones left out.
    async fn files_elsewhere(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<FileRecord>>;

    /// What each provider holds for `organization`, by status. Reads every file of it.
    async fn holdings(&self, organization: &OrganizationId) -> Result<Vec<Holding>>;

    /// Files by sync status, deleted ones left out.
    async fn sync_counts(&self) -> Result<SyncCounts>;

    /// Ends all leases, and SYNCING files are PENDING again: at start, when no other process can hold one.
    async fn clear_leases(&self) -> Result<()>;

    /// Answers if the database does.
    async fn ping(&self) -> Result<()>;

    /// Resolves once the engine met a fault after which it must be opened again (I/O error or
    /// corruption), with what it was. All calls fail from then on; the process should end.
    async fn poisoned(&self) -> String;

    /// Finishes queued work, checkpoints and closes. Calls after it fail.
    async fn close(&self);
}
