//! Files in JSON. Fields are snake_case, except in the delete reply.

use serde::{Deserialize, Serialize};

use super::vocabulary::{ErrorCode, PurgeStatus, Status, StorageLocation, SyncStatus};

/// Custom metadata: a JSON object that your application keeps with a file.
pub type Metadata = serde_json::Map<String, serde_json::Value>;

/// A file's record, from uploads, listings and `info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FileRecord {
    /// File id: a ULID of 26 upper-case characters, for example `01JD8QZ4T6X3M2V9B7K5N1R0CE`.
    pub file_id: String,
    /// File name from the uploader, for example `photo.jpg`.
    pub original_name: String,
    /// Media type, for example `image/jpeg`.
    pub mime_type: String,
    /// Content size, in bytes.
    pub file_size: u64,
    /// File name extension in lower case, without the dot. Can be empty.
    pub ext: String,
    /// The current blob's storage key. Each replacement creates a new storage key.
    pub file_path: String,
    /// Progress towards the organization's provider.
    pub sync_status: SyncStatus,
    /// Last change time, in RFC 3339 (UTC, milliseconds), for example
    /// `2026-11-21T08:15:30.123Z`.
    pub updated_at: String,
    /// Lifecycle status: `TEMP`, `THUMBNAIL` or `READY`.
    pub status: Status,
    /// `LOCAL` if the server sends the bytes, `CLOUD` if the server redirects to the provider.
    pub storage_location: StorageLocation,
    /// Code of the provider that stores the bytes, for example `LOCAL`.
    pub storage_provider: String,
    /// Organization that owns the file.
    pub organization_id: String,
    /// Sub-system: an area of your application, for example `invoices`.
    pub sub_system: String,
    /// SHA-256 digest, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Displayed width in pixels. Null if the file is not an image.
    pub width: Option<u32>,
    /// Displayed height in pixels. Null if the file is not an image.
    pub height: Option<u32>,
    /// Content version: 1 after the upload, plus 1 for each replacement.
    pub version: u64,
    /// Upload time in RFC 3339 (UTC, milliseconds).
    pub created_at: String,
    /// Expiry time of a `TEMP` file in RFC 3339. Null for other files.
    pub expires_at: Option<String>,
    /// `SYSTEM_PURGE` if the file is deleted. Null for other files.
    pub purge_status: Option<PurgeStatus>,
    /// Custom metadata: a JSON object that your application keeps with the file. Empty if there is
    /// none.
    #[serde(default)]
    pub metadata: Metadata,
    /// ThumbHash of an image in base64, a blurred placeholder for galleries. Null for other files,
    /// and before filestore makes the first variant.
    #[serde(default)]
    pub thumbhash: Option<String>,
    /// Deletion time in RFC 3339 (UTC, milliseconds). Null if the file is not deleted.
    #[serde(default)]
    pub deleted_at: Option<String>,
    /// Earliest time at which the purge can remove a deleted file, in RFC 3339. Null for other
    /// files. You can restore the file until the purge claims the file.
    #[serde(default)]
    pub purge_due_at: Option<String>,
    /// True if the sync worker is going to copy the file to a provider, or copies it now. If false,
    /// a `PENDING` file is stored where it stays, and becomes `NONE` within seconds. Null if the
    /// server does not know.
    #[serde(default)]
    pub awaits_copy: Option<bool>,
    /// Failed attempts to copy the current content to the organization's provider.
    #[serde(default)]
    pub sync_attempts: u32,
    /// Reason why the last of these attempts failed, for people. Null if no attempt failed.
    #[serde(default)]
    pub sync_error: Option<String>,
}

/// The reply about a file if the key can change the file but not read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FileIdReply {
    /// File id.
    pub file_id: String,
}

impl FileIdReply {
    /// Creates the reply for a file.
    pub fn new(file_id: impl Into<String>) -> Self {
        Self { file_id: file_id.into() }
    }
}

/// The reply to POST `/files/{fileId}/restore`. The reply contains the record only if the key has
/// the scope `read`.
///
/// ```
/// use filestore_core::api::RestoreReply;
///
/// let reply: RestoreReply = serde_json::from_str(r#"{"file_id": "01JD8QZ4T6X3M2V9B7K5N1R0CE"}"#)?;
/// assert_eq!(reply.file_id(), "01JD8QZ4T6X3M2V9B7K5N1R0CE");
/// assert!(reply.record().is_none());
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[non_exhaustive]
pub enum RestoreReply {
    /// The record, if the key has the scope `read`.
    Record(Box<FileRecord>),
    /// The id, for other keys.
    Id(FileIdReply),
}

impl RestoreReply {
    /// Returns the restored file's id.
    pub fn file_id(&self) -> &str {
        match self {
            Self::Record(record) => &record.file_id,
            Self::Id(reply) => &reply.file_id,
        }
    }

    /// Returns the record, or `None` if the key does not have the scope `read`.
    pub fn record(&self) -> Option<&FileRecord> {
        match self {
            Self::Record(record) => Some(record),
            Self::Id(_) => None,
        }
    }
}

impl From<FileRecord> for RestoreReply {
    fn from(record: FileRecord) -> Self {
        Self::Record(Box::new(record))
    }
}

/// The reply to PUT `/files/upload`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ChangeReply {
    /// File id.
    pub file_id: String,
    /// `NONE` after a promotion. After a replacement, the sync status of the record.
    pub sync_status: SyncStatus,
    /// Change time, in RFC 3339 (UTC, milliseconds).
    pub updated_at: String,
}

impl ChangeReply {
    /// Creates the reply for a changed file.
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

/// The reply to PATCH `/files/{fileId}`. The reply contains the record only if the key has the
/// scope `read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum EditReply {
    /// The record after the edit, if the key has the scope `read`.
    Record(Box<FileRecord>),
    /// A summary of the edit, for other keys.
    Change(ChangeReply),
}

impl EditReply {
    /// Returns the record, or `None` if the key does not have the scope `read`.
    pub fn record(&self) -> Option<&FileRecord> {
        match self {
            Self::Record(record) => Some(record),
            Self::Change(_) => None,
        }
    }

    /// Returns the edited file's id.
    pub fn file_id(&self) -> &str {
        match self {
            Self::Record(record) => &record.file_id,
            Self::Change(change) => &change.file_id,
        }
    }
}

/// The body for POST `/files/delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeleteFilesRequest {
    /// 1 to 1000 file ids.
    pub ids: Vec<String>,
}

impl DeleteFilesRequest {
    /// Creates a request that deletes these files.
    pub fn new(ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { ids: ids.into_iter().map(Into::into).collect() }
    }
}

/// The reply to POST `/files/delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeleteFilesReply {
    /// One result for each id, in the request order.
    pub results: Vec<DeleteFileResult>,
}

impl DeleteFilesReply {
    /// Creates the reply from the results.
    pub fn new(results: Vec<DeleteFileResult>) -> Self {
        Self { results }
    }
}

/// One file's result in POST `/files/delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeleteFileResult {
    /// The id from the request.
    pub id: String,
    /// True if the file is deleted.
    pub deleted: bool,
    /// Location of the bytes until the purge removes them: `LOCAL` or `CLOUD`. Null if the file is
    /// not deleted.
    pub storage_location: Option<StorageLocation>,
    /// True while the record of a deleted file exists. You can restore the file until the purge
    /// claims it.
    pub purge_pending: bool,
    /// Error for this file. Null if the file is deleted.
    pub error: Option<DeleteFileError>,
}

/// The reason why POST `/files/delete` did not delete a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeleteFileError {
    /// Stable error code, as in a problem document.
    pub code: ErrorCode,
    /// Explanation for people.
    pub detail: String,
}

impl DeleteFileResult {
    /// Creates the result for a file that is deleted and not yet purged.
    pub fn pending(id: impl Into<String>, storage_location: impl Into<StorageLocation>) -> Self {
        Self {
            id: id.into(),
            deleted: true,
            storage_location: Some(storage_location.into()),
            purge_pending: true,
            error: None,
        }
    }

    /// Creates the result for a file that is not deleted.
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

/// The body for POST `/files/restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RestoreFilesRequest {
    /// 1 to 1000 file ids.
    pub ids: Vec<String>,
}

impl RestoreFilesRequest {
    /// Creates a request that restores these files.
    pub fn new(ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { ids: ids.into_iter().map(Into::into).collect() }
    }
}

/// The reply to POST `/files/restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RestoreFilesReply {
    /// One result for each id, in the request order.
    pub results: Vec<RestoreFileResult>,
}

impl RestoreFilesReply {
    /// Creates the reply from the results.
    pub fn new(results: Vec<RestoreFileResult>) -> Self {
        Self { results }
    }
}

/// One file's result in POST `/files/restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RestoreFileResult {
    /// The id from the request.
    pub id: String,
    /// True if the file is not deleted: restored now or before, or never deleted.
    pub restored: bool,
    /// Error for this file. Null if the file is not deleted.
    pub error: Option<RestoreFileError>,
}

/// The reason why POST `/files/restore` did not restore a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RestoreFileError {
    /// Stable error code, as in a problem document.
    pub code: ErrorCode,
    /// Explanation for people.
    pub detail: String,
}

impl RestoreFileResult {
    /// Creates the result for a file that is not deleted.
    pub fn restored(id: impl Into<String>) -> Self {
        Self { id: id.into(), restored: true, error: None }
    }

    /// Creates the result for a file that is not restored.
    pub fn failed(
        id: impl Into<String>,
        code: impl Into<ErrorCode>,
        detail: impl Into<String>,
    ) -> Self {
        let error = RestoreFileError { code: code.into(), detail: detail.into() };
        Self { id: id.into(), restored: false, error: Some(error) }
    }
}

/// The reply to DELETE `/files/{fileId}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeleteReply {
    /// File id.
    pub file_id: String,
    /// Always true.
    pub deleted: bool,
    /// Location of the bytes until the purge removes them: `LOCAL` or `CLOUD`.
    pub storage_location: StorageLocation,
    /// True while the record exists. You can restore the file until the purge claims it.
    pub purge_pending: bool,
}

impl DeleteReply {
    /// Creates the reply for a file that is not yet purged.
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

    /// Creates the reply for a file that is already purged.
    pub fn purged(file_id: impl Into<String>) -> Self {
        Self {
            file_id: file_id.into(),
            deleted: true,
            storage_location: "UNKNOWN".into(),
            purge_pending: false,
        }
    }
}
