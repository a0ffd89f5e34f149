//! The record of a file.

use std::time::Duration;

use super::custom_metadata::CustomMetadata;
use super::lifecycle::FileState;
use super::path::BlobKey;
use super::status::SyncStatus;
use crate::domain::id::{FileId, OrganizationId, Sha256, SubSystem};
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;

/// A file's record: id, name, type, size, state.
///
/// For example, `record.blob.size_bytes` is the size, and `record.state.status()` is the status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileRecord {
    /// File id. Never changes.
    pub file_id: FileId,
    /// Organization that owns the file.
    pub organization_id: OrganizationId,
    /// Sub-system.
    pub sub_system: SubSystem,
    /// File name from the uploader. Never part of a path.
    pub original_name: String,
    /// Media type, from the uploader or detected. [`serving::decide`](crate::web::serving::decide)
    /// creates the `Content-Type`. Records of older versions can have text that is not a media
    /// type.
    pub mime_type: String,
    /// File name extension without the dot: lower case `[a-z0-9]{1,10}`, or empty.
    pub ext: String,
    /// Current blob.
    pub blob: Blob,
    /// Status, sync status, purge status and location.
    pub state: FileState,
    /// Content version: 1 for the first blob, plus 1 for each replacement.
    pub version: u64,
    /// Upload time.
    pub created_at: Timestamp,
    /// Last change time.
    pub updated_at: Timestamp,
    /// Expiry time for a TEMP file. `None` for other files.
    pub expires_at: Option<Timestamp>,
    /// Custom metadata.
    pub metadata: CustomMetadata,
    /// Time of the last edit of name, type or metadata. Each edit has a later time than all edits
    /// before. `None` if the file was never edited. A copy to a provider takes a long time, and
    /// compares this time, so that edits are not lost.
    pub edited_at: Option<Timestamp>,
    /// Set for a deleted file. `None` for other files.
    pub deletion: Option<Deletion>,
    /// Failed attempts to copy the current blob to the organization's provider.
    pub sync_attempts: u32,
    /// Reason why the last of these attempts failed, for people. `None` if no attempt failed.
    pub sync_error: Option<String>,
}

impl FileRecord {
    /// Creates a record without a name. The upload time is the time of `blob`.
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
            deletion: None,
            sync_attempts: 0,
            sync_error: None,
        }
    }

    /// Tests whether the sync worker is going to copy the blob, or copies it now, if the
    /// organization is bound to `bound`. A PENDING file without a provider to go to becomes NONE
    /// within seconds.
    pub fn awaits_copy(&self, bound: Option<&ProviderCode>) -> bool {
        match self.state.sync() {
            SyncStatus::Syncing => true,
            SyncStatus::Pending => {
                let goes_to = bound.filter(|provider| !provider.is_local());
                !self.state.is_deleted() && goes_to.is_some_and(|to| *to != self.blob.provider)
            }
            SyncStatus::None | SyncStatus::Synced | SyncStatus::Failed => false,
        }
    }

    /// Returns the time from which the purge can claim a deleted file. `None` for other files.
    pub fn purge_due_at(&self, purge_grace: Duration) -> Option<Timestamp> {
        self.deletion.map(|deletion| deletion.due_at(purge_grace))
    }
}

/// A file's deletion. A restore removes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deletion {
    /// Deletion time, by the store's clock.
    pub deleted_at: Timestamp,
    /// Start of the grace period. Equals `deleted_at`, until an erasure of the organization moves
    /// it back.
    pub marked_at: Timestamp,
}

impl Deletion {
    /// Describes a deletion at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self { deleted_at: now, marked_at: now }
    }

    /// Returns the end of the grace period, or the deletion time if there is no grace period.
    pub fn due_at(self, purge_grace: Duration) -> Timestamp {
        self.marked_at.plus(purge_grace).max(self.deleted_at)
    }
}

/// A blob: the stored bytes of one version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blob {
    /// Provider that stores the bytes.
    pub provider: ProviderCode,
    /// Storage key: the name of the blob at its provider.
    pub key: BlobKey,
    /// Size, in bytes.
    pub size_bytes: u64,
    /// SHA-256 digest.
    pub sha256: Sha256,
    /// Media type detected from the bytes (see [`super::media::sniff`]), if any.
    pub sniffed_type: Option<String>,
    /// Displayed size (with orientation applied), for images.
    pub dimensions: Option<Dimensions>,
    /// Time at which the bytes were stored: `Last-Modified` of the content.
    pub stored_at: Timestamp,
    /// Placeholder of an image with at least one variant. `None` for other files.
    pub thumbhash: Option<Thumbhash>,
}

impl Blob {
    /// Describes bytes without a detected type.
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

/// Displayed width and height, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dimensions {
    /// Width, in pixels.
    pub width: u32,
    /// Height, in pixels.
    pub height: u32,
}

/// A ThumbHash: a blurred picture in about 25 bytes, for galleries to show before the variant
/// arrives. See <https://evanw.github.io/thumbhash>.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Thumbhash(Box<[u8]>);

impl Thumbhash {
    /// Header size, in bytes.
    const HEADER_BYTES: usize = 5;
    /// Maximum size, in bytes.
    const MAX_BYTES: usize = 32;

    /// Creates a ThumbHash from bytes. `None` if the length is not valid.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (Self::HEADER_BYTES..=Self::MAX_BYTES).contains(&bytes.len()).then(|| Self(bytes.into()))
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_file_awaits_its_copy_only_if_it_has_somewhere_else_to_go() {
        let now = Timestamp::from_millis(1_795_248_930_123);
        let organization: OrganizationId = "42".parse().unwrap();
        let part: SubSystem = "docs".parse().unwrap();
        let key = BlobKey::new(&organization, &part, now, crate::domain::id::BlobId::generate(now));
        let local = ProviderCode::local();
        let blob = Blob::new(local.clone(), key, 1, Sha256([0; 32]), now);
        let state = FileState::uploaded(crate::domain::file::status::Location::Local);
        let file = FileRecord::new(FileId::generate(now), organization, part, state, blob);

        let cloud: ProviderCode = "s3".parse().unwrap();
        assert!(file.awaits_copy(Some(&cloud)));
        assert!(!file.awaits_copy(None) && !file.awaits_copy(Some(&local)));

        let mut there = file.clone();
        there.blob.provider = cloud.clone();
        assert!(!there.awaits_copy(Some(&cloud)), "its bytes are there already");

        let mut copied = file.clone();
        copied.state = file.state.claim().unwrap();
        assert!(copied.awaits_copy(None), "its copy is under way");

        let mut deleted = file;
        deleted.state = deleted.state.delete();
        assert!(!deleted.awaits_copy(Some(&cloud)));
    }

    #[test]
    fn a_deletion_is_due_after_the_grace_and_at_once_if_an_erasure_waits_for_nothing() {
        let now = Timestamp::from_millis(1_795_248_930_123);
        let day = Duration::from_hours(24);
        assert_eq!(Deletion::at(now).due_at(day), now.plus(day));
        assert_eq!(Deletion::at(now).due_at(Duration::ZERO), now);

        let hastened = Deletion { marked_at: Timestamp::from_millis(0), ..Deletion::at(now) };
        assert_eq!(hastened.due_at(day), now);
    }
}
