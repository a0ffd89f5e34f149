//! Receipts of purges: who deleted a file, which bytes went from where, and what still has them.
//!
//! # Format
//! A receipt is shown as JSON, and signed over its canonical form (see [`super::receipt_key`]), so that
//! whoever has the public key can verify it without the store. The names of its members are written
//! here, by hand: what was signed once must read the same for ever. A receipt has no name, type or
//! metadata of the file, which went with the file.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use super::clock::Timestamp;
use super::erasure::ErasedPlace;
use super::error::Error;
use super::id::{DestinationId, FileId, KeyId, OrganizationId, Sha256, SnapshotId, StoreId};
use super::path::BlobKey;
use super::provider::ProviderCode;
use super::record::Blob;

/// The most removed blobs that a receipt lists.
pub const LISTED_BLOBS: usize = 10_000;

/// The name of destinations that the configuration does not name.
pub const UNNAMED: &str = "not in the configuration";

/// The version of the form of receipts.
const FORMAT: u32 = 1;

/// The one who deleted a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeletedBy {
    /// The holder of a key.
    Key {
        /// The id of the key.
        id: KeyId,
        /// The name of the key at that time.
        name: String,
    },
    /// Anybody: the server had no keys.
    OpenMode,
    /// A process that may open the admin socket.
    AdminSocket,
    /// A program that has the store open.
    Library,
    /// The end of a TEMP file's life.
    Expiry,
    /// The erasure of the organization.
    Erasure,
    /// Somebody, before this was on record.
    Unknown,
}

impl DeletedBy {
    /// Returns the name of the kind.
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

/// Writes the kind; of a key also its id and its name, with a space between.
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

    /// Reads what `Display` writes. A word of a later version is [`Unknown`](Self::Unknown).
    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some((id, name)) = text.strip_prefix("key ").and_then(|rest| rest.split_once(' ')) {
            return Ok(Self::Key { id: id.parse()?, name: name.to_owned() });
        }
        let all = [Self::OpenMode, Self::AdminSocket, Self::Library, Self::Expiry, Self::Erasure];
        Ok(all.into_iter().find(|one| one.kind() == text).unwrap_or(Self::Unknown))
    }
}

/// The digest and the size of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// The SHA-256 of the bytes.
    pub sha256: Sha256,
    /// The number of bytes.
    pub size_bytes: u64,
}

impl Content {
    /// Describes the bytes of a blob.
    pub fn of(blob: &Blob) -> Self {
        Self { sha256: blob.sha256, size_bytes: blob.size_bytes }
    }
}

/// A blob of a purged file, found absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedBlob {
    /// The provider that held the blob.
    pub holder: ProviderCode,
    /// The blob's key.
    pub key: BlobKey,
    /// The bytes; `None` for a write that broke off, which may have left any part of them.
    pub content: Option<Content>,
    /// The instant at which the blob was removed, and its absence confirmed.
    pub absent_at: Timestamp,
    /// The instant at which it was last found absent.
    pub checked_at: Timestamp,
}

/// A blob of a purged file that is to be removed, or looked for once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedBlob {
    /// The provider that may hold the blob.
    pub holder: ProviderCode,
    /// The blob's key.
    pub key: BlobKey,
    /// The instant from which that is done; `None` while a write of it may be under way.
    pub due_at: Option<Timestamp>,
}

/// The part of a receipt that is on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgedFile {
    /// The file.
    pub file_id: FileId,
    /// The organization that owned the file.
    pub organization_id: OrganizationId,
    /// The instant of the first upload.
    pub created_at: Timestamp,
    /// The instant of the deletion.
    pub deleted_at: Timestamp,
    /// The one who deleted the file.
    pub deleted_by: DeletedBy,
    /// The instant at which the record went: all bytes were absent then, but for what is in [`awaited`](Self::awaited).
    pub purged_at: Timestamp,
    /// The blobs that the file had and has dropped, [`LISTED_BLOBS`] at most, in the order of holders
    /// and keys.
    pub removed: Vec<RemovedBlob>,
    /// The number of those that are not listed.
    pub unlisted: u64,
    /// Blobs that are to be removed, or looked for once more.
    pub awaited: Vec<AwaitedBlob>,
}

/// A snapshot that has bytes of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldingSnapshot {
    /// The snapshot.
    pub id: SnapshotId,
    /// The instant of which the snapshot is.
    pub created_at: Timestamp,
    /// The digests of the bytes that it has, in order.
    pub sha256: Vec<Sha256>,
}

/// A destination of backups, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LookedAt {
    /// The name of the destination in the configuration; [`UNNAMED`] for one that is not in it.
    pub destination: String,
    /// The id of the directory that was looked at, or of one that stood there and could not be looked at.
    /// `None` if no id is known.
    pub destination_id: Option<DestinationId>,
    /// The instant at which it was looked at.
    pub checked_at: Timestamp,
    /// The snapshots that have bytes of the file, the oldest first.
    pub snapshots: Vec<HoldingSnapshot>,
    /// The digests of bytes that lie there and belong to no finished snapshot.
    pub loose: Vec<Sha256>,
    /// The reason why the destination could not be looked at: the code of an error.
    pub problem: Option<&'static str>,
}

impl LookedAt {
    /// Leaves out the snapshots in which the bytes can only be another file's: those that were taken
    /// before the file was uploaded, or when its bytes were gone.
    pub(crate) fn keep_those_of(&mut self, file: &PurgedFile) {
        for snapshot in &mut self.snapshots {
            let taken_at = snapshot.created_at;
            snapshot.sha256.retain(|sha256| {
                taken_at >= file.created_at
                    && file.removed.iter().any(|blob| {
                        blob.content.is_some_and(|content| content.sha256 == *sha256)
                            && taken_at <= blob.absent_at
                    })
            });
        }
        self.snapshots.retain(|snapshot| !snapshot.sha256.is_empty());
    }

    /// Tells if the destination was looked at, and has none of the bytes.
    pub fn is_absent(&self) -> bool {
        self.problem.is_none() && self.snapshots.is_empty() && self.loose.is_empty()
    }
}

/// The receipt of a purge.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgeReceipt {
    /// The store that the file was in.
    pub store_id: StoreId,
    /// The instant of this receipt.
    pub issued_at: Timestamp,
    /// The instant from which the store has no receipt any more.
    pub kept_until: Timestamp,
    /// The instant before which the store kept no receipts, for a file that is older: bytes that it
    /// dropped before are not listed, and were looked for nowhere.
    pub history_from: Option<Timestamp>,
    /// The file, and what became of its blobs.
    pub file: PurgedFile,
    /// The quarantine of the data directory.
    pub quarantine: ErasedPlace,
    /// The destinations of backups that the configuration names, in its order; then those that it does
    /// not name any more.
    pub backups: Vec<LookedAt>,
}

impl PurgeReceipt {
    /// Tells if each place was looked at and none has bytes of the file: no holder, not the quarantine, and
    /// no directory that snapshots were taken to.
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

/// Nothing removes a snapshot by itself, so that the time of its end is not known.
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
