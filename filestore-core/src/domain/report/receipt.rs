//! Purge receipts: who deleted a file, the removed blobs, and the places that still contain the
//! bytes.
//!
//! # Format
//! A receipt is JSON with a signature over its canonical form (see [`super::receipt_key`]). Anyone
//! with the public key can verify a receipt without the store. Member names are written by hand
//! here, because a signed receipt must never change. A receipt contains no name, type or metadata
//! of the file.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use super::erasure::ErasedPlace;
use crate::domain::error::Error;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::Blob;
use crate::domain::id::{
    DestinationId, FileId, KeyId, OrganizationId, Sha256, SnapshotId, StoreId,
};
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;

/// Maximum removed blobs in a receipt.
pub const LISTED_BLOBS: usize = 10_000;

/// Name for destinations outside the configuration.
pub const UNNAMED: &str = "not in the configuration";

/// Format version of receipts.
const FORMAT: u32 = 1;

/// The caller that deleted a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeletedBy {
    /// An API key.
    Key {
        /// Key id.
        id: KeyId,
        /// Key name at that time.
        name: String,
    },
    /// Any caller: the server had no keys.
    OpenMode,
    /// A process with access to the admin socket.
    AdminSocket,
    /// A program that has opened the store.
    Library,
    /// The expiry of a TEMP file.
    Expiry,
    /// The erasure of the organization.
    Erasure,
    /// Not known: the file was deleted by an older version.
    Unknown,
}

impl DeletedBy {
    /// Returns the kind name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Key { .. } => "key",
            Self::OpenMode => "open_mode",
            Self::AdminSocket => "admin_socket",
            Self::Library => "library",
            Self::Expiry => "expiry",
            Self::Erasure => "erasure",
            Self::Unknown => "unknown",
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Key { id, name } => {
                json!({"kind": self.kind(), "key_id": id.to_string(), "key_name": name})
            }
            _ => json!({"kind": self.kind()}),
        }
    }
}

/// Writes the kind. For a key, also id and name, with a space between.
impl fmt::Display for DeletedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { id, name } => write!(f, "key {id} {name}"),
            _ => f.write_str(self.kind()),
        }
    }
}

impl FromStr for DeletedBy {
    type Err = Error;

    /// Reads the text that `Display` writes. A word of a later version becomes
    /// [`Unknown`](Self::Unknown).
    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some((id, name)) = text.strip_prefix("key ").and_then(|rest| rest.split_once(' ')) {
            return Ok(Self::Key { id: id.parse()?, name: name.to_owned() });
        }
        let all = [Self::OpenMode, Self::AdminSocket, Self::Library, Self::Expiry, Self::Erasure];
        Ok(all.into_iter().find(|one| one.kind() == text).unwrap_or(Self::Unknown))
    }
}

/// The digest and size of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// SHA-256 digest.
    pub sha256: Sha256,
    /// Size, in bytes.
    pub size_bytes: u64,
}

impl Content {
    /// Describes a blob.
    pub fn of(blob: &Blob) -> Self {
        Self { sha256: blob.sha256, size_bytes: blob.size_bytes }
    }
}

/// A removed blob that was then confirmed as absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedBlob {
    /// Provider that stored the blob.
    pub holder: ProviderCode,
    /// Storage key.
    pub key: BlobKey,
    /// Digest and size. `None` if the write was interrupted: then any part of the bytes might have
    /// been stored.
    pub content: Option<Content>,
    /// Time at which the blob was removed and confirmed as absent.
    pub absent_at: Timestamp,
    /// Last time at which a check found the blob absent.
    pub checked_at: Timestamp,
}

/// A blob that the purge still has to remove or check again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedBlob {
    /// Provider that might store the blob.
    pub holder: ProviderCode,
    /// Storage key.
    pub key: BlobKey,
    /// Earliest time for the next check. `None` while a write might still run.
    pub due_at: Option<Timestamp>,
}

/// The stored part of a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgedFile {
    /// File id.
    pub file_id: FileId,
    /// Organization that owned the file.
    pub organization_id: OrganizationId,
    /// Upload time.
    pub created_at: Timestamp,
    /// Deletion time.
    pub deleted_at: Timestamp,
    /// Caller that deleted the file.
    pub deleted_by: DeletedBy,
    /// Time at which the purge removed the record. All bytes were absent then, except the blobs in
    /// [`awaited`](Self::awaited).
    pub purged_at: Timestamp,
    /// Removed blobs, also from before a replacement. At most [`LISTED_BLOBS`], sorted by provider
    /// and storage key.
    pub removed: Vec<RemovedBlob>,
    /// Removed blobs outside the list, as a number.
    pub unlisted: u64,
    /// Blobs that the purge still has to remove or check again.
    pub awaited: Vec<AwaitedBlob>,
}

/// A snapshot that contains the file's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldingSnapshot {
    /// Snapshot id.
    pub id: SnapshotId,
    /// Snapshot time.
    pub created_at: Timestamp,
    /// Digests in the snapshot, sorted.
    pub sha256: Vec<Sha256>,
}

/// The result for a backup destination.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LookedAt {
    /// Destination name. [`UNNAMED`] if it is not in the configuration.
    pub destination: String,
    /// Id of the checked directory, or of an earlier directory at this path, now unavailable.
    /// `None` if the id is unknown.
    pub destination_id: Option<DestinationId>,
    /// Check time.
    pub checked_at: Timestamp,
    /// Snapshots that contain the file's bytes, oldest first.
    pub snapshots: Vec<HoldingSnapshot>,
    /// Digests of bytes at the destination that belong to no finished snapshot and might be from
    /// this file.
    pub loose: Vec<Sha256>,
    /// Error code if the destination is not available.
    pub problem: Option<&'static str>,
}

/// Bytes at a destination that belong to no finished snapshot: from a running or interrupted run,
/// or from a snapshot during its removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LooseContent {
    /// The bytes' digest.
    pub sha256: Sha256,
    /// Earliest possible arrival time.
    pub arrived_from: Timestamp,
    /// Latest possible time of the database copy in the run that wrote the bytes.
    pub named_until: Timestamp,
}

impl PurgedFile {
    /// Tests whether a snapshot from `taken_at` can have these bytes because of this file: a blob
    /// of the file existed then. Otherwise the bytes are from another file, and the receipt must
    /// not mention them.
    fn had(&self, sha256: Sha256, taken_at: Timestamp) -> bool {
        self.existed(sha256).any(|(from, until)| from <= taken_at && taken_at <= until)
    }

    /// Tests whether bytes without a snapshot can be from this file: the run that wrote them can
    /// list a blob of the file, and the bytes arrived before that blob was absent.
    pub(crate) fn may_have_left(&self, loose: &LooseContent) -> bool {
        self.existed(loose.sha256)
            .any(|(from, until)| from <= loose.named_until && loose.arrived_from <= until)
    }

    /// Lists the times at which the file had bytes with this digest.
    fn existed(&self, sha256: Sha256) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let alike = self
            .removed
            .iter()
            .filter(move |blob| blob.content.is_some_and(|content| content.sha256 == sha256));
        // The bytes of a replacement are younger than the file.
        alike.map(|blob| (self.created_at.max(blob.key.blob_id().made_at()), blob.absent_at))
    }
}

impl LookedAt {
    /// Removes snapshots with bytes that can only be from other files.
    pub(crate) fn keep_those_of(&mut self, file: &PurgedFile) {
        for snapshot in &mut self.snapshots {
            let taken_at = snapshot.created_at;
            snapshot.sha256.retain(|sha256| file.had(*sha256, taken_at));
        }
        self.snapshots.retain(|snapshot| !snapshot.sha256.is_empty());
    }

    /// Tests whether the destination was checked and contains none of these bytes.
    pub fn is_absent(&self) -> bool {
        self.problem.is_none() && self.snapshots.is_empty() && self.loose.is_empty()
    }
}

/// A purge receipt: a statement that a deleted file is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgeReceipt {
    /// Store id.
    pub store_id: StoreId,
    /// Receipt time.
    pub issued_at: Timestamp,
    /// The receipt's expiry time. Later, the store returns no receipt for this file.
    pub kept_until: Timestamp,
    /// Set if the file is older than this store's receipts. The receipt does not list bytes
    /// that were replaced before this time, and does not search for them.
    pub history_from: Option<Timestamp>,
    /// The file and its blobs.
    pub file: PurgedFile,
    /// Result for the quarantine of the data directory.
    pub quarantine: ErasedPlace,
    /// Results for backup destinations: first the configured destinations, then older destinations.
    pub backups: Vec<LookedAt>,
}

impl PurgeReceipt {
    /// Tests whether filestore looked for the file's bytes at every provider, in the quarantine and in all
    /// backups, and found them nowhere.
    pub fn is_absent_everywhere(&self) -> bool {
        self.history_from.is_none()
            && self.file.awaited.is_empty()
            && self.file.unlisted == 0
            && self.quarantine.is_absent
            && self.backups.iter().all(LookedAt::is_absent)
    }

    /// Writes the receipt as it is signed, with the public key that verifies it.
    pub(crate) fn to_json(&self, public_key: &str) -> Value {
        let Self { store_id, issued_at, kept_until, history_from, file, quarantine, backups } =
            self;
        let mut receipt = json!({
            "format": FORMAT,
            "store_id": store_id.to_string(),
            "file_id": file.file_id.to_string(),
            "organization_id": file.organization_id.to_string(),
            "created_at": file.created_at.to_string(),
            "deleted_at": file.deleted_at.to_string(),
            "deleted_by": file.deleted_by.to_json(),
            "purged_at": file.purged_at.to_string(),
            "removed": file.removed.iter().map(removed).collect::<Vec<_>>(),
            "unlisted": file.unlisted,
            "awaited": file.awaited.iter().map(awaited).collect::<Vec<_>>(),
            "quarantine": {
                "place": quarantine.place,
                "absent": quarantine.is_absent,
                "detail": quarantine.detail,
            },
            "backups": backups.iter().map(looked_at).collect::<Vec<_>>(),
            "absent_everywhere": self.is_absent_everywhere(),
            "issued_at": issued_at.to_string(),
            "kept_until": kept_until.to_string(),
            "public_key": public_key,
        });
        if let Some(from) = history_from {
            receipt["history_from"] = json!(from.to_string());
        }
        receipt
    }
}

fn removed(blob: &RemovedBlob) -> Value {
    json!({
        "provider": blob.holder.as_str(),
        "key": blob.key.as_str(),
        "sha256": blob.content.map(|content| content.sha256.to_hex()),
        "size_bytes": blob.content.map(|content| content.size_bytes),
        "absent_at": blob.absent_at.to_string(),
        "checked_at": blob.checked_at.to_string(),
    })
}

fn awaited(blob: &AwaitedBlob) -> Value {
    json!({
        "provider": blob.holder.as_str(),
        "key": blob.key.as_str(),
        "due_at": blob.due_at.map(|at| at.to_string()),
    })
}

fn looked_at(found: &LookedAt) -> Value {
    let mut looked = json!({
        "destination": found.destination,
        "checked_at": found.checked_at.to_string(),
        "snapshots": found.snapshots.iter().map(snapshot).collect::<Vec<_>>(),
        "loose": hex(&found.loose),
        "problem": found.problem,
    });
    if let Some(id) = found.destination_id {
        looked["destination_id"] = json!(id.to_string());
    }
    looked
}

/// Writes a snapshot. `pruned_at` is null, because only an operator removes snapshots.
fn snapshot(held: &HoldingSnapshot) -> Value {
    json!({
        "snapshot_id": held.id.to_string(),
        "created_at": held.created_at.to_string(),
        "sha256": hex(&held.sha256),
        "pruned_at": null,
    })
}

fn hex(digests: &[Sha256]) -> Vec<String> {
    digests.iter().map(|sha256| sha256.to_hex()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_deleted_reads_back_as_it_was_written() {
        let at = Timestamp::from_millis(1);
        let named = DeletedBy::Key { id: KeyId::generate(at), name: "night job 2".into() };
        for by in [
            named,
            DeletedBy::OpenMode,
            DeletedBy::AdminSocket,
            DeletedBy::Library,
            DeletedBy::Expiry,
            DeletedBy::Erasure,
            DeletedBy::Unknown,
        ] {
            assert_eq!(by.to_string().parse::<DeletedBy>().unwrap(), by);
        }
        assert_eq!("of a later version".parse::<DeletedBy>().unwrap(), DeletedBy::Unknown);
    }
}
