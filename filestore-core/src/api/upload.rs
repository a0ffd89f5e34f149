//! Resumable uploads in JSON. Fields are snake_case.

use serde::{Deserialize, Serialize};

/// A resumable upload, from GET `/uploads/{upload}`, from lists, and from `/admin/uploads`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ResumableUpload {
    /// Upload id: a ULID of 26 upper-case characters. The URL of the upload has a secret token as well.
    pub upload_id: String,
    /// `open`, `completing` (the bytes are here, and the file is being stored), `finished`, `failed` or
    /// `expired`.
    pub state: String,
    /// Number of stored bytes. The next request starts at this offset.
    pub offset: u64,
    /// File size in bytes. Null if the client has not named the size.
    pub length: Option<u64>,
    /// True if the file exists.
    pub complete: bool,
    /// Creation time in RFC 3339 (UTC, milliseconds).
    pub created_at: String,
    /// Time in RFC 3339 at which the upload ends. If the upload has ended, the server forgets it at this time.
    pub expires_at: String,
    /// The file's organization.
    pub organization_id: String,
    /// Given file name. Null if the client gave no name.
    pub original_name: Option<String>,
    /// File id. Null until the file exists.
    pub file_id: Option<String>,
    /// Error code of a failed upload, for example `digest_mismatch`. Null for other uploads.
    pub error: Option<String>,
}

/// One page of the resumable uploads of an organization, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ResumableUploadList {
    /// Uploads of this page.
    pub items: Vec<ResumableUpload>,
    /// Cursor of the next page: pass this value as `cursor`. Null on the last page.
    pub next_cursor: Option<String>,
}
