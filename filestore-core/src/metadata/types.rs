//! Arguments and results of [`Metadata`](super::Metadata).

use crate::domain::binding::Binding;
use crate::domain::clock::Timestamp;
use crate::domain::id::{BlobId, FileId, KeyId, OrganizationId, OrganizationNumber};
use crate::domain::key::{ApiKey, KeyDigest};
use crate::domain::lifecycle::FileState;
use crate::domain::listing::ListPosition;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::receipt::{Content, DeletedBy, RemovedBlob};
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::domain::signature::SigningSecret;
use crate::domain::signed_url::UploadPermit;
use crate::domain::status::{Status, SyncStatus};

/// The state a change was decided from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The record's version.
    pub version: u64,
    /// The record's whole state.
    pub state: FileState,
    /// The record's blob: a move changes neither version nor, from one provider to another, the
    /// state.
    pub blob: BlobId,
    /// The record's last edit, which changes nothing of the above.
    pub edited_at: Option<Timestamp>,
}

impl Expected {
    /// Takes the state that `record` shows.
    pub fn of(record: &FileRecord) -> Self {
        Self {
            version: record.version,
            state: record.state,
            blob: record.blob.key.blob_id(),
            edited_at: record.edited_at,
        }
    }
}

/// A part of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedFiles {
    /// The files, in the order of the listing.
    pub records: Vec<FileRecord>,
    /// The place to go on from; `None` if no file is left. There may be a place although fewer files
    /// are shown than were asked for.
    pub next: Option<ListPosition>,
}

/// The binding that placed an upload; the insert checks that it is still in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingSeen {
    /// The organization's number; `None` if no binding can govern it.
    pub organization: Option<OrganizationNumber>,
    /// The active binding's provider and sync flag, if there was one.
    pub active: Option<(ProviderCode, bool)>,
}

/// Files to insert: one, or a whole batch. All or nothing.
#[derive(Debug, Clone)]
pub struct InsertFiles {
    /// The records, of one organization.
    pub records: Vec<FileRecord>,
    /// The binding that placed the files.
    pub binding: BindingSeen,
    /// The most bytes the organization may store, these files included.
    pub quota_bytes: Option<u64>,
    /// The most files the organization may store, these included.
    pub quota_files: Option<u64>,
    /// The reply to remember, committed with the records.
    pub idempotency: Option<IdempotencyEntry>,
    /// The permit that the upload spends, committed with the records.
    pub permit: Option<UploadPermit>,
}

/// The outcome of an insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inserted {
    /// The records are in.
    Done,
    /// The placement does not hold any more: another binding is active, or the objects written to a
    /// provider for these files were withdrawn. Place the files anew.
    PlacementStale,
    /// The organization would store more than its quota; nothing was inserted.
    OverQuota,
    /// The organization would store more files than its quota; nothing was inserted.
    OverFileQuota,
    /// Another request committed the same idempotency key first; nothing was inserted.
    IdempotencyTaken,
    /// The permit was spent before, or is not valid any more; nothing was inserted.
    PermitSpent,
}

/// A secret that signs URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecret {
    /// The secret with its name.
    pub secret: SigningSecret,
    /// The instant at which the secret was made.
    pub created_at: Timestamp,
    /// The instant from which its URLs are refused; `None` for the one that signs.
    pub valid_until: Option<Timestamp>,
}

impl StoredSecret {
    /// Tests whether URLs of the secret are accepted at `now`.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        self.valid_until.is_none_or(|end| now < end)
    }
}

/// A remembered reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyEntry {
    /// The organization whose key it is.
    pub organization: OrganizationId,
    /// The key as the client sent it, with a prefix for the scope in which it is unique.
    pub key: String,
    /// A digest of the request's fields and items.
    pub fingerprint: [u8; 32],
    /// The files the reply showed, in its order.
    pub file_ids: Vec<FileId>,
    /// The reply's body.
    pub reply: Vec<u8>,
    /// The instant from which the reply is forgotten.
    pub expires_at: Timestamp,
}

/// A key as it is stored: with the digests of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// The key.
    pub key: ApiKey,
    /// The digest of its text.
    pub digest: KeyDigest,
    /// The digest of its text before the last rotation, and the instant from which that is refused.
    pub former: Option<(KeyDigest, Timestamp)>,
}

/// A change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChange {
    /// Refuses the key from `at` on. The first revocation stands.
    Revoke {
        /// The present instant.
        at: Timestamp,
    },
    /// Gives the key other organizations.
    Narrow {
        /// The organizations that the key reaches from now on.
        organizations: Scope,
    },
    /// Gives the key another text.
    Rotate {
        /// The digest of the new text.
        digest: KeyDigest,
        /// The present instant.
        at: Timestamp,
        /// The instant from which the text before is refused.
        former_until: Timestamp,
    },
}

/// The outcome of making or changing a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOutcome {
    /// Done; carries the key as it is now, and the keys that made room for it.
    Done(Box<StoredKey>, Vec<KeyId>),
    /// No key has that id.
    Unknown,
    /// The key is revoked, and stays so.
    Revoked,
    /// There are as many keys as there may be, all of them good.
    Full,
}

/// A change of one file.
#[derive(Debug, Clone)]
pub struct UpdateFile {
    /// The state the change was decided from.
    pub expected: Expected,
    /// The whole record as it shall be (same `file_id`; `organization_id`, `sub_system` and
    /// `created_at` do not change).
    pub next: FileRecord,
    /// The present instant by the store's clock. The grace period of a deletion counts from here, and not
    /// from the record's `updated_at`, which never goes back and so may lie ahead of the clock.
    pub now: Timestamp,
    /// The old blob, to be removed later, if the change drops it.
    pub drop_blob: Option<DroppedBlob>,
    /// As in [`InsertFiles::quota_bytes`]; checked if the change makes the file larger.
    pub quota_bytes: Option<u64>,
    /// As in [`InsertFiles::binding`]; checked if given.
    pub binding: Option<BindingSeen>,
    /// The one who deletes the file, if the change does. The first deletion stands until it is taken back.
    pub deleted_by: Option<DeletedBy>,
    /// The part of `next` that is written.
    pub writes: Writes,
}

/// The part of a record that a change writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// All of it. The change is lost if the file was edited since it was decided.
    Record,
    /// All but name, type, extension and custom metadata, which stay as they are by now, edited or not:
    /// a move of bytes takes long, and an edit has nothing to do with it.
    Bytes,
}

/// The outcome of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Updated {
    /// The record is changed.
    Done,
    /// The file is not in the expected state any more, or claimed by the purge, or gone.
    Lost,
    /// As [`Inserted::PlacementStale`].
    PlacementStale,
    /// The organization would store more than its quota.
    OverQuota,
}

/// The outcome of creating or changing a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindingOutcome {
    /// Done; carries the binding as it is now.
    Done(Binding),
    /// The organization has an active one already.
    AlreadyActive,
    /// The organization has no active one (and none to resume, if asked).
    NoneActive,
    /// Resuming would bring an inactive or unknown provider back; carries its code.
    ProviderInactive(ProviderCode),
}

/// A claim's terms. Until the lease ends, no run but its owner is given the same rows; after it
/// they can be claimed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease<'a> {
    /// The run that claims: each run has a name of its own.
    pub owner: &'a str,
    /// The instant of the claim: rows that wait for a later one are not due.
    pub now: Timestamp,
    /// The end of the lease.
    pub until: Timestamp,
}

/// A deleted file claimed for removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeClaim {
    /// The file.
    pub record: FileRecord,
    /// The blobs that the file dropped and whose bytes were not found absent yet.
    pub dropped: Vec<DroppedBlob>,
    /// The number of failed removals so far.
    pub attempts: u32,
}

/// A claimed file whose bytes are confirmed absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    /// The file.
    pub file_id: FileId,
    /// The blobs that were found absent.
    pub removed: Vec<RemovedBlob>,
}

impl Purged {
    /// Describes a file of which no blob is to be noted.
    #[cfg(test)]
    pub(crate) fn of(file_id: FileId) -> Self {
        Self { file_id, removed: Vec::new() }
    }
}

/// Counts of deleted files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeBacklog {
    /// TEMP files that have expired but are not marked yet.
    pub expired: u64,
    /// Marked files whose grace period is over.
    pub due: u64,
    /// The bytes of the due files.
    pub due_bytes: u64,
    /// Marked files still within their grace period.
    pub waiting: u64,
    /// Dropped blobs whose grace period is over.
    pub due_blobs: u64,
}

/// A blob that no record refers to any more, waiting for its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedBlob {
    /// The file the blob belonged to.
    pub file_id: FileId,
    /// The provider that holds the blob.
    pub provider: ProviderCode,
    /// The blob's key.
    pub key: BlobKey,
    /// The bytes; `None` for a write that broke off.
    pub content: Option<Content>,
    /// The end of the blob's grace period.
    pub not_before: Timestamp,
}

/// A dropped blob that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueBlob {
    /// The id of the row. An engine may give it to another blob later: the row is known by id and key.
    pub id: i64,
    /// The blob.
    pub blob: DroppedBlob,
    /// The number of failed removals so far.
    pub attempts: u32,
    /// The run that has claimed the blob, where the engine keeps claims.
    pub owner: Option<String>,
}

/// A file claimed for a copy to its organization's provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncClaim {
    /// The file, SYNCING by now.
    pub record: FileRecord,
    /// The provider to copy to.
    pub target: ProviderCode,
    /// The key of the copy, which is noted as a [`WriteIntent`].
    pub key: BlobKey,
    /// The number of failed attempts so far.
    pub attempts: u32,
}

/// The fate of a file whose copy failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another attempt, not before the instant; the failed one counts.
    Postpone(Timestamp),
    /// Another attempt, not before the instant; the failed one does not count, because the fault was
    /// the provider's and met every file alike.
    Excuse(Timestamp),
    /// No further attempt: the file is FAILED.
    GiveUp,
}

/// Files by sync status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncCounts {
    /// Files that need no copy.
    pub none: u64,
    /// Files that wait for their copy.
    pub pending: u64,
    /// Files that are being copied.
    pub syncing: u64,
    /// Files that were copied.
    pub synced: u64,
    /// Files whose last attempt failed.
    pub failed: u64,
}

impl SyncCounts {
    /// Returns the count of `status`, to be set.
    pub(crate) fn of_mut(&mut self, status: SyncStatus) -> &mut u64 {
        match status {
            SyncStatus::None => &mut self.none,
            SyncStatus::Pending => &mut self.pending,
            SyncStatus::Syncing => &mut self.syncing,
            SyncStatus::Synced => &mut self.synced,
            SyncStatus::Failed => &mut self.failed,
        }
    }
}

/// An object about to be written to a provider under a key of its own. The intent is committed
/// before the object's first byte leaves, so that neither a failure nor a crash can leave the
/// object there for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteIntent {
    /// The file the object is for.
    pub file_id: FileId,
    /// The provider to write to.
    pub provider: ProviderCode,
    /// The object's key.
    pub key: BlobKey,
    /// The instant of the intent.
    pub begun_at: Timestamp,
    /// The run that writes the object and renews the intent; `None` for a request, which ends within
    /// its deadline. The note ends with the server of either.
    pub owner: Option<String>,
}

/// Files of one organization at one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The provider that holds the bytes.
    pub provider: ProviderCode,
    /// The files' status.
    pub status: Status,
    /// The number of files, deleted ones left out.
    pub files: u64,
    /// The size of the files, in bytes.
    pub bytes: u64,
}
