//! Files on the wire: snake_case, except the delete reply.

use serde::{Deserialize, Serialize};

use super::vocabulary::{ErrorCode, PurgeStatus, Status, StorageLocation, SyncStatus};

/// The members of a file's custom metadata.
pub type Metadata = serde_json::Map<String, serde_json::Value>;

/// The record of a file, as uploads, listings and `info` return it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FileRecord {
    /// Id of the file: an upper-case ULID of 26 characters.
    pub file_id: String,
    /// Name that the user gave the file.
    pub original_name: String,
    /// Media type, such as `image/jpeg`.
    pub mime_type: String,
    /// Size of the current content, in bytes.
    pub file_size: u64,
    /// File name extension without the dot, in lower case; may be empty.
    pub ext: String,
    /// Key of the current blob; new after every replacement.
    pub file_path: String,
    /// Progress on the way to the organization's provider.
    pub sync_status: SyncStatus,
    /// Time of the last change, ISO 8601 UTC with milliseconds.
    pub updated_at: String,
    /// Stage of the file's life.
    pub status: Status,
    /// Side that serves the bytes.
    pub storage_location: StorageLocation,
    /// Code of the provider that holds the bytes, such as `LOCAL`.
    pub storage_provider: String,
    /// Organization that the file belongs to.
    pub organization_id: String,
    /// Part of the organization's application that the file belongs to.
    pub sub_system: String,
    /// SHA-256 of the bytes, in 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Width in pixels as displayed; null unless the file is an image.
    pub width: Option<u32>,
    /// Height in pixels as displayed; null unless the file is an image.
    pub height: Option<u32>,
    /// Version of the bytes: 1 after the upload, one more per replacement.
    pub version: u64,
    /// Time of the upload, ISO 8601 UTC with milliseconds.
    pub created_at: String,
    /// Time at which a TEMP file expires; null for others.
    pub expires_at: Option<String>,
    /// Mark of a deleted file; null for others.
    pub purge_status: Option<PurgeStatus>,
    /// Object that the application keeps with the file; empty if it keeps none.
    #[serde(default)]
    pub metadata: Metadata,
    /// ThumbHash of a picture, base64: a blurred placeholder for galleries. Null for other files, and until the
    /// first variant was made.
    #[serde(default)]
    pub thumbhash: Option<String>,
}

/// The reply to PUT `/files/upload`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ChangeReply {
    /// Id of the changed file.
    pub file_id: String,
    /// `NONE` after a promotion, whatever the record says; otherwise as in the record.
    pub sync_status: SyncStatus,
    /// Time of the change, ISO 8601 UTC with milliseconds.
    pub updated_at: String,
}

impl ChangeReply {
    /// Makes the reply for a changed file.
    pub fn new(
        file_id: impl Into<String>,
        sync_status: impl Into<SyncStatus>,
        updated_at: impl Into<String>,
    ) -> Self {
        Self {
            file_id: file_id.into(),
            sync_status: sync_status.into(),
            updated_at: updated_at.into(),
        }
    }
}

/// The request of POST `/files/delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeleteFilesRequest {
    /// Ids of the files, 1 to 1000.
    pub ids: Vec<String>,
}

impl DeleteFilesRequest {
    /// Asks for the deletion of files.
    pub fn new(ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { ids: ids.into_iter().map(Into::into).collect() }
    }
}

/// The reply to POST `/files/delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeleteFilesReply {
    /// Outcome for each id, in the order of the request.
    pub results: Vec<DeleteFileResult>,
}

impl DeleteFilesReply {
    /// Makes the reply of its results.
    pub fn new(results: Vec<DeleteFileResult>) -> Self {
        Self { results }
    }
}

/// The outcome of the deletion of one file among several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeleteFileResult {
    /// Id as it was sent.
    pub id: String,
    /// True if the file is deleted.
    pub deleted: bool,
    /// Side that holds the bytes of a deleted file until they are purged; null for others.
    pub storage_location: Option<StorageLocation>,
    /// True while the record of a deleted file exists.
    pub purge_pending: bool,
    /// Reason why the file is not deleted; null if it is.
    pub error: Option<DeleteFileError>,
}

/// The reason why one file among several is not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeleteFileError {
    /// Stable code to branch on, as in a problem document.
    pub code: ErrorCode,
    /// Explanation of what is wrong with this id.
    pub detail: String,
}

impl DeleteFileResult {
    /// Makes the result of a file that is deleted, and still to be purged.
    pub fn pending(id: impl Into<String>, storage_location: impl Into<StorageLocation>) -> Self {
        Self {
            id: id.into(),
            deleted: true,
            storage_location: Some(storage_location.into()),
            purge_pending: true,
            error: None,
        }
    }

    /// Makes the result of a file that is not deleted.
    pub fn failed(
        id: impl Into<String>,
        code: impl Into<ErrorCode>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            deleted: false,
            storage_location: None,
            purge_pending: false,
            error: Some(DeleteFileError { code: code.into(), detail: detail.into() }),
        }
    }
}

/// The reply to DELETE `/files/{fileId}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeleteReply {
    /// Id of the deleted file.
    pub file_id: String,
    /// True in every reply of this kind.
    pub deleted: bool,
    /// Side that holds the bytes until they are purged.
    pub storage_location: StorageLocation,
    /// True while the record exists.
    pub purge_pending: bool,
}

impl DeleteReply {
    /// Makes the reply for a file whose bytes and record are still to be purged.
    pub fn pending(
        file_id: impl Into<String>,
        storage_location: impl Into<StorageLocation>,
    ) -> Self {
        Self {
            file_id: file_id.into(),
            deleted: true,
            storage_location: storage_location.into(),
            purge_pending: true,
        }
    }

    /// Makes the reply for a file whose bytes and record are gone already.
    pub fn purged(file_id: impl Into<String>) -> Self {
        Self {
            file_id: file_id.into(),
            deleted: true,
            storage_location: "UNKNOWN".into(),
            purge_pending: false,
        }
    }
}
