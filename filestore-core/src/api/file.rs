//! Files on the wire: snake_case, except the delete reply.

use serde::{Deserialize, Serialize};

/// A file record (contract §2.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Upper-case ULID.
    pub file_id: String,
    /// The name the user knows it by.
    pub original_name: String,
    /// Media type.
    pub mime_type: String,
    /// Bytes.
    pub file_size: u64,
    /// Without dot, may be empty.
    pub ext: String,
    /// The blob's current key.
    pub file_path: String,
    /// `NONE`, `PENDING`, `SYNCING`, `SYNCED` or `FAILED`.
    pub sync_status: String,
    /// ISO 8601 UTC with milliseconds.
    pub updated_at: String,
    /// `TEMP`, `THUMBNAIL` or `READY`.
    pub status: String,
    /// `LOCAL` or `CLOUD`.
    pub storage_location: String,
    /// A provider code.
    pub storage_provider: String,
    /// The organization.
    pub organization_id: String,
    /// The part of its application.
    pub sub_system: String,
    /// 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Pixels as displayed; null unless an image.
    pub width: Option<u32>,
    /// Pixels as displayed; null unless an image.
    pub height: Option<u32>,
    /// 1, one more per replace.
    pub version: u64,
    /// ISO 8601 UTC with milliseconds.
    pub created_at: String,
    /// When a TEMP file goes; null otherwise.
    pub expires_at: Option<String>,
    /// null or `SYSTEM_PURGE`.
    pub purge_status: Option<String>,
}

/// The reply to PUT `/files/upload`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeReply {
    /// The changed file.
    pub file_id: String,
    /// `NONE` after a promotion (fixed), else the record's.
    pub sync_status: String,
    /// ISO 8601 UTC with milliseconds.
    pub updated_at: String,
}

/// The reply to DELETE `/files/{fileId}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteReply {
    /// The deleted file.
    pub file_id: String,
    /// Always true.
    pub deleted: bool,
    /// `LOCAL` or `CLOUD`.
    pub storage_location: String,
    /// True while the record exists.
    pub purge_pending: bool,
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListReply {
    /// Newest first.
    pub items: Vec<FileRecord>,
    /// Pass it back as `cursor` for the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// The reply to GET `/health-checks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthReply {
    /// A word to people.
    pub message: String,
}

/// The reply to GET `/health-checks/ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyReply {
    /// A word to people.
    pub message: String,
    /// `ok` or what is wrong.
    pub database: String,
    /// `ok` or what is wrong.
    pub storage: String,
}
