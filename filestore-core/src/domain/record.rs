//! The file record: what the service knows of a file.

use super::clock::Timestamp;
use super::id::{FileId, OrganizationId, Sha256, SubSystem};
use super::lifecycle::FileState;
use super::path::BlobKey;
use super::provider::ProviderCode;

/// A file's metadata. `state.location()` says who serves `blob`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecord {
    /// Its id.
    pub file_id: FileId,
    /// The organization it belongs to.
    pub organization_id: OrganizationId,
    /// The part of the organization's application.
    pub sub_system: SubSystem,
    /// The name the user knows it by. Data only, never part of a path.
    pub original_name: String,
    /// The media type it is served with, essence and parameters as given.
    pub mime_type: String,
    /// Without dot: lower case `[a-z0-9]{1,10}`, or empty.
    pub ext: String,
    /// Its current bytes.
    pub blob: Blob,
    /// Where it stands.
    pub state: FileState,
    /// 1 for the first blob, one more for each replace.
    pub version: u64,
    /// When it was first uploaded.
    pub created_at: Timestamp,
    /// When its record last changed.
    pub updated_at: Timestamp,
    /// When a TEMP file goes; `None` for every other status.
    pub expires_at: Option<Timestamp>,
}

/// The stored bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Which provider holds them.
    pub provider: ProviderCode,
    /// Under which key.
    pub key: BlobKey,
    /// How many bytes.
    pub size_bytes: u64,
    /// Their digest.
    pub sha256: Sha256,
    /// The media type the bytes themselves show (see [`super::media::sniff`]), if any.
    pub sniffed_type: Option<String>,
    /// As displayed (orientation applied), for images that can be read.
    pub dimensions: Option<Dimensions>,
    /// When the bytes were stored: `Last-Modified` of the content.
    pub stored_at: Timestamp,
}

/// Width and height in pixels, as displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dimensions {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}
