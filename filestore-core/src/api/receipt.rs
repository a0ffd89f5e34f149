//! Receipts of purges on the wire.

use serde::{Deserialize, Serialize};

use super::admin::ErasedPlace;

/// The reply to GET `/files/{fileId}/receipt`: a receipt as it was signed, and the signature.
///
/// The receipt is kept as it was sent, with members that this version does not know: these are signed
/// as well. [`Self::read`] shows it by its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SignedReceipt {
    /// Receipt.
    #[cfg_attr(feature = "schema", schemars(with = "PurgeReceipt"))]
    pub receipt: serde_json::Value,
    /// Ed25519 signature of the receipt's canonical form, 128 hexadecimal digits.
    pub signature: String,
}

impl SignedReceipt {
    /// Joins a receipt and its signature.
    pub fn new(receipt: serde_json::Value, signature: impl Into<String>) -> Self {
        Self { receipt, signature: signature.into() }
    }

    /// Reads the receipt by its fields. Verifies nothing.
    pub fn read(&self) -> Result<PurgeReceipt, serde_json::Error> {
        PurgeReceipt::deserialize(&self.receipt)
    }
}

/// The receipt of a purge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct PurgeReceipt {
    /// Version of the form, 1.
    pub format: u32,
    /// Id of the store that the file was in.
    pub store_id: String,
    /// File that was purged.
    pub file_id: String,
    /// Organization that owned the file.
    pub organization_id: String,
    /// Time of the first upload.
    pub created_at: String,
    /// Time of the deletion.
    pub deleted_at: String,
    /// Caller who deleted the file.
    pub deleted_by: DeletedBy,
    /// Time at which the record went: all bytes were absent then, but for what is `awaited`.
    pub purged_at: String,
    /// Blobs that the file had or has dropped, and that were removed.
    pub removed: Vec<RemovedBlob>,
    /// Number of such blobs that are not listed.
    pub unlisted: u64,
    /// Blobs that are to be removed, or looked for once more.
    pub awaited: Vec<AwaitedBlob>,
    /// Quarantine of the data directory.
    pub quarantine: ErasedPlace,
    /// Destinations of backups that the configuration names, then others that snapshots were taken to.
    pub backups: Vec<BackupLook>,
    /// Time before which the store kept no receipts, for a file that is older: bytes that it dropped before
    /// are not listed, and were looked for nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_from: Option<String>,
    /// True if every place was looked at and none has bytes of the file.
    pub absent_everywhere: bool,
    /// Time of this receipt.
    pub issued_at: String,
    /// Time from which the service has no receipt any more.
    pub kept_until: String,
    /// Key that verifies the signature, 64 hexadecimal digits.
    pub public_key: String,
}

/// The one who deleted a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct DeletedBy {
    /// `key`, `open_mode`, `admin_socket`, `library`, `expiry`, `erasure` or `unknown`.
    pub kind: String,
    /// Id of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// Name of the key at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
}

/// A blob that was found absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct RemovedBlob {
    /// Code of the provider that held the blob.
    pub provider: String,
    /// Key of the blob.
    pub key: String,
    /// SHA-256 of the bytes; null for a write that broke off.
    pub sha256: Option<String>,
    /// Number of bytes; null likewise.
    pub size_bytes: Option<u64>,
    /// Time at which the blob was removed and found absent.
    pub absent_at: String,
    /// Time at which it was last found absent.
    pub checked_at: String,
}

/// A blob that is to be removed, or looked for once more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct AwaitedBlob {
    /// Code of the provider that may hold the blob.
    pub provider: String,
    /// Key of the blob.
    pub key: String,
    /// Time from which that is done; null while a write may be under way.
    pub due_at: Option<String>,
}

/// A destination of backups, as it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct BackupLook {
    /// Name of the destination.
    pub destination: String,
    /// Id of the directory that was looked at, or of one that stood there and could not be looked at. Absent
    /// if no id is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_id: Option<String>,
    /// Time at which it was looked at.
    pub checked_at: String,
    /// Snapshots that have bytes of the file, the oldest first.
    pub snapshots: Vec<HoldingSnapshot>,
    /// SHA-256 of bytes that lie there and belong to no finished snapshot.
    pub loose: Vec<String>,
    /// Code of the error for which the destination could not be looked at; null if it was.
    pub problem: Option<String>,
}

/// A snapshot that has bytes of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct HoldingSnapshot {
    /// Id of the snapshot.
    pub snapshot_id: String,
    /// Time of which the snapshot is.
    pub created_at: String,
    /// SHA-256 of the bytes that it has.
    pub sha256: Vec<String>,
    /// Time at which the snapshot will be removed; null, as only an operator removes one.
    pub pruned_at: Option<String>,
}

/// A public key of receipts, as GET `/receipt-keys` lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ReceiptKeyReply {
    /// Key, 64 hexadecimal digits.
    pub public_key: String,
    /// Time at which the key was made.
    pub created_at: String,
    /// Time from which the key signs nothing more; null for the one that signs.
    pub retired_at: Option<String>,
}
