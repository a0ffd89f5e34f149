//! Purge receipts in JSON.

use serde::{Deserialize, Serialize};

use super::admin::ErasedPlace;

/// The reply to GET `/files/{fileId}/receipt`: a purge receipt and its signature.
///
/// The signature covers all members, also members that this version does not know. So keep
/// `receipt` unchanged, and call [`Self::read`] to get the fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SignedReceipt {
    /// The receipt.
    #[cfg_attr(feature = "schema", schemars(with = "PurgeReceipt"))]
    pub receipt: serde_json::Value,
    /// Ed25519 signature of the receipt in canonical form, 128 hexadecimal digits.
    pub signature: String,
}

impl SignedReceipt {
    /// Joins a receipt and its signature.
    pub fn new(receipt: serde_json::Value, signature: impl Into<String>) -> Self {
        Self { receipt, signature: signature.into() }
    }

    /// Reads the receipt's fields. Does not verify the signature. Fails if `receipt` is not a
    /// purge receipt.
    pub fn read(&self) -> Result<PurgeReceipt, serde_json::Error> {
        PurgeReceipt::deserialize(&self.receipt)
    }
}

/// A purge receipt: a statement that a deleted file is gone. Times are in RFC 3339 (UTC,
/// milliseconds), for example `2026-11-21T08:15:30.123Z`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct PurgeReceipt {
    /// Format version, 1.
    pub format: u32,
    /// Store id.
    pub store_id: String,
    /// The purged file's id.
    pub file_id: String,
    /// Organization that owned the file.
    pub organization_id: String,
    /// Upload time.
    pub created_at: String,
    /// Deletion time.
    pub deleted_at: String,
    /// Caller that deleted the file.
    pub deleted_by: DeletedBy,
    /// Time at which the purge removed the record. All bytes were absent then, except the blobs in
    /// `awaited`.
    pub purged_at: String,
    /// The file's removed blobs, also blobs from before a replacement.
    pub removed: Vec<RemovedBlob>,
    /// Removed blobs that `removed` does not list.
    pub unlisted: u64,
    /// Blobs that the purge still has to remove or check again.
    pub awaited: Vec<AwaitedBlob>,
    /// Result for the quarantine of the data directory.
    pub quarantine: ErasedPlace,
    /// Results for backup destinations: first the configured destinations, then older destinations
    /// with snapshots.
    pub backups: Vec<BackupLook>,
    /// Set if the file is older than the receipts of this store. The receipt does not list bytes
    /// that were replaced before this time, and does not search for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_from: Option<String>,
    /// True if every place was checked and does not contain the file's bytes.
    pub absent_everywhere: bool,
    /// Receipt time.
    pub issued_at: String,
    /// Receipt expiry time. Later, the server returns no receipt for this file.
    pub kept_until: String,
    /// Public key that verifies the signature, 64 hexadecimal digits.
    pub public_key: String,
}

/// The caller that deleted a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct DeletedBy {
    /// `key`, `open_mode`, `admin_socket`, `library`, `expiry`, `erasure` or `unknown`.
    pub kind: String,
    /// Key id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// Key name at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
}

/// A removed blob that was then confirmed as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct RemovedBlob {
    /// Code of the provider that stored the blob.
    pub provider: String,
    /// The blob's storage key.
    pub key: String,
    /// SHA-256 digest, 64 hexadecimal digits. Null if the write was interrupted.
    pub sha256: Option<String>,
    /// Size in bytes. Null if the write was interrupted.
    pub size_bytes: Option<u64>,
    /// Time at which the blob was removed and confirmed as absent.
    pub absent_at: String,
    /// Last time at which a check found the blob absent.
    pub checked_at: String,
}

/// A blob that the purge still has to remove or check again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct AwaitedBlob {
    /// Code of the provider that might store the blob.
    pub provider: String,
    /// The blob's storage key.
    pub key: String,
    /// Earliest time for the next check. Null while a write of this object might still be in
    /// progress.
    pub due_at: Option<String>,
}

/// The result for a backup destination.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct BackupLook {
    /// Destination name.
    pub destination: String,
    /// Id of the checked directory, or of an earlier directory at this path that is not available.
    /// Absent if the id is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_id: Option<String>,
    /// Check time.
    pub checked_at: String,
    /// Snapshots that contain the file's bytes, oldest first.
    pub snapshots: Vec<HoldingSnapshot>,
    /// SHA-256 digests of bytes at the destination that belong to no finished snapshot.
    pub loose: Vec<String>,
    /// Error code if the destination is not available. Null if the check succeeded.
    pub problem: Option<String>,
}

/// A snapshot that contains the file's bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct HoldingSnapshot {
    /// Snapshot id.
    pub snapshot_id: String,
    /// Snapshot time.
    pub created_at: String,
    /// SHA-256 digests in the snapshot.
    pub sha256: Vec<String>,
    /// Planned removal time. Null, because only an operator removes snapshots.
    pub pruned_at: Option<String>,
}

/// A public key for receipts, from GET `/receipt-keys`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ReceiptKeyReply {
    /// Public key, 64 hexadecimal digits.
    pub public_key: String,
    /// Creation time in RFC 3339.
    pub created_at: String,
    /// Retirement time in RFC 3339: from then on, the key signs no receipts. Null for the current
    /// key.
    pub retired_at: Option<String>,
}
