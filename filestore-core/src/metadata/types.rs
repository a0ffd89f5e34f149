//! Arguments and results of [`Metadata`](super::Metadata).

use std::collections::BTreeMap;

use crate::domain::access::key::{ApiKey, KeyDigest};
use crate::domain::access::scope::Scope;
use crate::domain::access::signature::SigningSecret;
use crate::domain::access::signed_url::UploadPermit;
use crate::domain::file::lifecycle::FileState;
use crate::domain::file::listing::ListPosition;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::{Status, SyncStatus};
use crate::domain::id::{BlobId, FileId, KeyId, OrganizationId, OrganizationNumber};
use crate::domain::provider::ProviderCode;
use crate::domain::provider::binding::Binding;
use crate::domain::report::erasure::Era;
use crate::domain::report::receipt::{Content, DeletedBy, RemovedBlob};
use crate::domain::time::clock::Timestamp;

use super::resumable::FinishUpload;

/// The state from which a change was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The record's version.
    pub version: u64,
    /// The record's whole state.
    pub state: FileState,
    /// The record's blob. A move between two providers changes neither the version nor the state, but it
    /// changes the blob.
    pub blob: BlobId,
    /// The record's last edit. An edit keeps all other fields.
    pub edited_at: Option<Timestamp>,
}

impl Expected {
    /// Returns the state of `record`.
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
    /// The files, in the listing's order.
    pub records: Vec<FileRecord>,
    /// Position of the next page. `None` if no file is left. A page can have fewer files than requested and still
    /// have a next position.
    pub next: Option<ListPosition>,
}

/// The binding that decided an upload's place. The insert checks that the binding is still valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingSeen {
    /// The organization's number. `None` if the organization cannot have a binding.
    pub organization: Option<OrganizationNumber>,
    /// The active binding's provider and sync flag, if there was one.
    pub active: Option<(ProviderCode, bool)>,
}

/// The files to insert: one file or a whole batch, all or none.
#[derive(Debug, Clone)]
pub struct InsertFiles {
    /// The records. All records belong to one organization.
    pub records: Vec<FileRecord>,
    /// The binding that decided the place of the files.
    pub binding: BindingSeen,
    /// The maximum bytes of the organization, including these files.
    pub quota_bytes: Option<u64>,
    /// The maximum number of files of the organization, including these files.
    pub quota_files: Option<u64>,
    /// The reply to remember. The reply is committed with the records.
    pub idempotency: Option<IdempotencyEntry>,
    /// The permit that the upload uses up. This is committed with the records.
    pub permit: Option<UploadPermit>,
    /// The era in which the work for these files began.
    pub era: Era,
    /// The resumable upload that brought the file, which ends with the insert.
    pub upload: Option<FinishUpload>,
}

/// The insert result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inserted {
    /// The records are stored.
    Done,
    /// The place is no longer valid: another binding is active, or the objects of these files were withdrawn
    /// at the provider. Decide the place again.
    PlacementStale,
    /// The organization would exceed its quota of bytes. Nothing was inserted.
    OverQuota,
    /// The organization would exceed its quota of files. Nothing was inserted.
    OverFileQuota,
    /// Another request committed the same idempotency key first. Nothing was inserted.
    IdempotencyTaken,
    /// The permit was used before, or is no longer valid. Nothing was inserted.
    PermitSpent,
    /// The organization was erased after the work began. Nothing was inserted.
    Erased,
    /// The resumable upload is over, or another request has it; nothing was inserted.
    UploadLost,
}

/// A secret that signs URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecret {
    /// The secret with its name.
    pub secret: SigningSecret,
    /// The secret's creation time.
    pub created_at: Timestamp,
    /// The time at which its URLs expire. `None` for the secret that signs.
    pub valid_until: Option<Timestamp>,
}

impl StoredSecret {
    /// Returns true if URLs of the secret are accepted at `now`.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        self.valid_until.is_none_or(|end| now < end)
    }
}

/// A remembered reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyEntry {
    /// The organization of the idempotency key.
    pub organization: OrganizationId,
    /// The idempotency key as the client sent it, with a prefix for its scope.
    pub key: String,
    /// A digest of the request's fields and items.
    pub fingerprint: [u8; 32],
    /// The files in the reply, in order.
    pub file_ids: Vec<FileId>,
    /// The reply's body.
    pub reply: Vec<u8>,
    /// The reply's expiry time.
    pub expires_at: Timestamp,
}

/// A stored API key, with the digests of its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// The key. Its `old_valid_until` is `None`: `former` contains the time.
    pub key: ApiKey,
    /// The digest of its secret.
    pub digest: KeyDigest,
    /// The digest of the previous secret, and the time at which it expires.
    pub former: Option<(KeyDigest, Timestamp)>,
}

/// A change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChange {
    /// Revokes the key at `at`. If the key is already revoked, the first revocation stays.
    Revoke {
        /// The current time.
        at: Timestamp,
    },
    /// Sets the key's organizations.
    Narrow {
        /// The new organizations of the key.
        organizations: Scope,
        /// The current time.
        at: Timestamp,
    },
    /// Replaces the key's secret.
    Rotate {
        /// The digest of the new secret.
        digest: KeyDigest,
        /// The current time.
        at: Timestamp,
        /// The time at which the previous secret expires.
        former_until: Timestamp,
    },
}

/// The result of creating or changing a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOutcome {
    /// Success, with the current key and the keys that it displaced.
    Done(Box<StoredKey>, Vec<KeyId>),
    /// No key has that id.
    Unknown,
    /// The key is revoked, and stays revoked.
    Revoked,
    /// The maximum number of keys is reached, and all of them are valid.
    Full,
}

/// A change of one file.
#[derive(Debug, Clone)]
pub struct UpdateFile {
    /// The state from which the change was decided.
    pub expected: Expected,
    /// The whole record after the change. `file_id`, `organization_id`, `sub_system` and `created_at` must
    /// not change.
    pub next: FileRecord,
    /// The current time of the store's clock. The grace period of a deletion counts from here. The grace
    /// period does not count from the record's `updated_at`, which never goes back and can therefore be ahead
    /// of the clock.
    pub now: Timestamp,
    /// The old blob, to be removed later, if the change replaces it.
    pub drop_blob: Option<DroppedBlob>,
    /// Like [`InsertFiles::quota_bytes`]. Checked if the change makes the file larger.
    pub quota_bytes: Option<u64>,
    /// Like [`InsertFiles::binding`]. Checked if set.
    pub binding: Option<BindingSeen>,
    /// The caller that deletes the file, if the change is a deletion. The first deletion counts until the
    /// file is restored.
    pub deleted_by: Option<DeletedBy>,
    /// The part of `next` to write.
    pub writes: Writes,
    /// As in [`InsertFiles::upload`].
    pub upload: Option<FinishUpload>,
}

impl UpdateFile {
    /// Returns true if the change restores a deleted file.
    pub(crate) fn restores(&self) -> bool {
        self.expected.state.is_deleted() && !self.next.state.is_deleted()
    }
}

/// The part of a record that a change writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// The whole record. The change fails if the file was edited since it was decided.
    Record,
    /// Everything except name, type, extension and custom metadata, which keep their current values. A move
    /// of bytes takes long, and must not conflict with an edit.
    Bytes,
}

/// The update result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Updated {
    /// The record is changed.
    Done,
    /// The file is no longer in the expected state, is claimed by the purge, or no longer exists.
    Lost,
    /// Like [`Inserted::PlacementStale`].
    PlacementStale,
    /// The organization would exceed its quota.
    OverQuota,
    /// As [`Inserted::UploadLost`].
    UploadLost,
}

/// The result of creating or changing a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindingOutcome {
    /// Success, with the current binding.
    Done(Binding),
    /// The organization already has an active binding.
    AlreadyActive,
    /// The organization has no active binding, or no binding to resume if that was requested.
    NoneActive,
    /// Resuming would activate an inactive or unknown provider, with this code.
    ProviderInactive(ProviderCode),
}

/// The terms of a claim. Until the lease ends, only its owner gets the same rows. After that, the rows can be
/// claimed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease<'a> {
    /// The unique name of the run that claims.
    pub owner: &'a str,
    /// The claim time. Rows with a later due time are not claimed.
    pub now: Timestamp,
    /// The lease end.
    pub until: Timestamp,
}

/// The kind of claimed work. An owner's claims all have one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claims {
    /// Deleted files to purge.
    Purges,
    /// Dropped blobs to remove.
    Dropped,
    /// Files to copy.
    Syncs,
}

/// The providers between which files can be copied now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyProviders<'p> {
    /// The providers that take copies.
    pub(crate) targets: &'p [ProviderCode],
    /// The providers whose files cannot be read.
    pub(crate) unreadable: &'p [ProviderCode],
}

impl CopyProviders<'_> {
    /// Returns true if a file can be copied from `holder` to `target`.
    pub(crate) fn connect(self, holder: &ProviderCode, target: &ProviderCode) -> bool {
        self.targets.contains(target) && !self.unreadable.contains(holder)
    }
}

/// The deleted files that a purge can claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueFiles<'a> {
    /// The latest deletion mark of a due file: the end of its grace period. A file that was claimed before is
    /// always due, because a restore is no longer possible.
    pub marked_before: Timestamp,
    /// Only this organization's files are due. `None` means all organizations.
    pub organization: Option<&'a OrganizationId>,
}

impl DueFiles<'_> {
    /// Selects the files of all organizations with a mark at or before `marked_before`.
    pub fn marked_before(marked_before: Timestamp) -> Self {
        Self { marked_before, organization: None }
    }
}

/// A deleted file, claimed for removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeClaim {
    /// The file.
    pub record: FileRecord,
    /// The replaced blobs of the file without a confirmed absence.
    pub dropped: Vec<DroppedBlob>,
    /// The number of failed removals so far.
    pub attempts: u32,
}

/// A claimed file with bytes that are confirmed absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    /// The file.
    pub file_id: FileId,
    /// The blobs with a confirmed absence.
    pub removed: Vec<RemovedBlob>,
}

impl Purged {
    /// Describes a file without removed blobs to record.
    #[cfg(test)]
    pub(crate) fn of(file_id: FileId) -> Self {
        Self { file_id, removed: Vec::new() }
    }
}

/// The numbers of deleted files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgeBacklog {
    /// Expired TEMP files without a deletion mark.
    pub expired: u64,
    /// Marked files after their grace period, and files that a run has claimed.
    pub due: u64,
    /// The size of the due files, in bytes.
    pub due_bytes: u64,
    /// The due files by holder.
    pub due_at: BTreeMap<ProviderCode, u64>,
    /// Marked files within their grace period.
    pub waiting: u64,
    /// The size of the waiting files, in bytes.
    pub waiting_bytes: u64,
    /// The earliest mark of a waiting file.
    pub first_mark: Option<Timestamp>,
    /// Dropped blobs after their grace period.
    pub due_blobs: u64,
}

impl PurgeBacklog {
    /// Adds due files of `holder`, and their bytes.
    pub(super) fn add_due(&mut self, holder: ProviderCode, (files, bytes): (u64, u64)) {
        self.due += files;
        self.due_bytes += bytes;
        if files > 0 {
            *self.due_at.entry(holder).or_default() += files;
        }
    }

    /// Adds waiting files, their bytes, and their first mark in milliseconds.
    pub(super) fn add_waiting(&mut self, (files, bytes): (u64, u64), first_mark: Option<i64>) {
        self.waiting += files;
        self.waiting_bytes += bytes;
        let marks = first_mark.map(Timestamp::from_millis).into_iter().chain(self.first_mark);
        self.first_mark = marks.min();
    }
}

/// A blob without a record, waiting for its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedBlob {
    /// The file to which the blob belonged.
    pub file_id: FileId,
    /// The provider with the blob.
    pub provider: ProviderCode,
    /// The blob's key.
    pub key: BlobKey,
    /// The bytes. `None` for an interrupted write.
    pub content: Option<Content>,
    /// The end of the blob's grace period.
    pub not_before: Timestamp,
}

/// A dropped blob, due for removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueBlob {
    /// The row's id. An engine can reuse it later for another blob, so id and key together identify the
    /// row.
    pub id: i64,
    /// The blob.
    pub blob: DroppedBlob,
    /// The number of failed removals so far.
    pub attempts: u32,
    /// The run that has claimed the blob, if the engine stores claims.
    pub owner: Option<String>,
}

/// A file, claimed for a copy to its organization's provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncClaim {
    /// The file. The claimed file is SYNCING.
    pub record: FileRecord,
    /// The target provider.
    pub target: ProviderCode,
    /// The copy's key. The key is recorded as a [`WriteIntent`].
    pub key: BlobKey,
    /// The number of failed attempts so far.
    pub attempts: u32,
}

/// The next step of a file after a failed copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another attempt, not before this time. The failed attempt counts.
    Postpone(Timestamp),
    /// Another attempt, not before this time. The failed attempt does not count, because the provider was at
    /// fault for all files.
    Excuse(Timestamp),
    /// No further attempt. The file is FAILED since this time.
    GiveUp(Timestamp),
}

/// The number of files in each sync status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncCounts {
    /// Files that need no copy.
    pub none: u64,
    /// Files that wait for their copy.
    pub pending: u64,
    /// Files with a running copy.
    pub syncing: u64,
    /// Copied files.
    pub synced: u64,
    /// Files with no attempts left.
    pub failed: u64,
}

impl SyncCounts {
    /// Returns a mutable reference to the count of `status`.
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

/// A planned object at a provider, under a new key. The intent is committed before the
/// first byte is sent. A failure or a crash can therefore not leave the object there forever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteIntent {
    /// The file of the object.
    pub file_id: FileId,
    /// The target provider.
    pub provider: ProviderCode,
    /// The object's key.
    pub key: BlobKey,
    /// The intent time.
    pub begun_at: Timestamp,
    /// The run that writes the object and renews the intent. `None` for a request, which ends within its
    /// deadline. The intent ends with the server of either.
    pub owner: Option<String>,
}

/// Files of one organization at one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The provider with the bytes.
    pub provider: ProviderCode,
    /// The files' status.
    pub status: Status,
    /// The number of files, without deleted files.
    pub files: u64,
    /// The size of the files, in bytes.
    pub bytes: u64,
}
