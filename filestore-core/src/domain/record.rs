//! The file record: all metadata of a file.

use super::clock::Timestamp;
use super::custom_metadata::CustomMetadata;
use super::id::{FileId, OrganizationId, Sha256, SubSystem};
use super::lifecycle::FileState;
use super::path::BlobKey;
use super::provider::ProviderCode;

/// A file's metadata. `state.location()` names the side that serves `blob`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileRecord {
    /// The file's id, which never changes.
    pub file_id: FileId,
    /// The organization that owns the file.
    pub organization_id: OrganizationId,
    /// The part of the organization's application.
    pub sub_system: SubSystem,
    /// The name that the client gave it. Data only, never part of a path.
    pub original_name: String,
    /// The media type that the file is served with, essence and parameters as given.
    pub mime_type: String,
    /// The extension without its dot: lower case `[a-z0-9]{1,10}`, or empty.
    pub ext: String,
    /// The file's current bytes.
    pub blob: Blob,
    /// The file's place in its life, on all four axes.
    pub state: FileState,
    /// The version: 1 for the first blob, one more for each replace.
    pub version: u64,
    /// The instant of the first upload.
    pub created_at: Timestamp,
    /// The instant of the record's last change.
    pub updated_at: Timestamp,
    /// The instant at which a TEMP file expires; `None` for every other status.
    pub expires_at: Option<Timestamp>,
    /// The object that the application keeps with the file.
    pub metadata: CustomMetadata,
    /// The instant of the last edit, later than that of any edit before it; `None` without one. An edit
    /// changes name, type or metadata and neither version nor blob: a copy to a provider takes long, and must
    /// neither undo an edit nor be lost to one.
    pub edited_at: Option<Timestamp>,
}

impl FileRecord {
    /// Describes a file without a name whose first blob is `blob`, created when that was stored.
    pub fn new(
        file_id: FileId,
        organization_id: OrganizationId,
        sub_system: SubSystem,
        state: FileState,
        blob: Blob,
    ) -> Self {
        let created_at = blob.stored_at;
        Self {
            file_id,
            organization_id,
            sub_system,
            original_name: String::new(),
            mime_type: "application/octet-stream".into(),
            ext: String::new(),
            blob,
            state,
            version: 1,
            created_at,
            updated_at: created_at,
            expires_at: None,
            metadata: CustomMetadata::default(),
            edited_at: None,
        }
    }
}

/// The stored bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blob {
    /// The provider that holds the bytes.
    pub provider: ProviderCode,
    /// The blob's key, at whichever provider.
    pub key: BlobKey,
    /// The blob's size, in bytes.
    pub size_bytes: u64,
    /// The SHA-256 of the bytes.
    pub sha256: Sha256,
    /// The media type the bytes themselves show (see [`super::media::sniff`]), if any.
    pub sniffed_type: Option<String>,
    /// The size as displayed (orientation applied), for images that can be read.
    pub dimensions: Option<Dimensions>,
    /// The instant at which the bytes were stored: `Last-Modified` of the content.
    pub stored_at: Timestamp,
    /// The placeholder of a picture of which a variant was made; `None` for others.
    pub thumbhash: Option<Thumbhash>,
}

impl Blob {
    /// Describes bytes of no known type.
    pub fn new(
        provider: ProviderCode,
        key: BlobKey,
        size_bytes: u64,
        sha256: Sha256,
        stored_at: Timestamp,
    ) -> Self {
        Self {
            provider,
            key,
            size_bytes,
            sha256,
            sniffed_type: None,
            dimensions: None,
            stored_at,
            thumbhash: None,
        }
    }
}

/// Width and height in pixels, as displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dimensions {
    /// The width, in pixels.
    pub width: u32,
    /// The height, in pixels.
    pub height: u32,
}

/// A picture in about 25 bytes, blurred: what a gallery paints until the variant comes. Made as
/// <https://evanw.github.io/thumbhash> says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Thumbhash(Box<[u8]>);

impl Thumbhash {
    /// The bytes of its header, which every one has.
    const HEADER_BYTES: usize = 5;
    /// The most bytes that one has.
    const MAX_BYTES: usize = 32;

    /// Takes the bytes of a ThumbHash; `None` if there are too few or too many for one.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (Self::HEADER_BYTES..=Self::MAX_BYTES).contains(&bytes.len()).then(|| Self(bytes.into()))
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
