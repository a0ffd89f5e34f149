//! The contents of snapshots: bytes with a digest and a size.

use super::copy::Copying;
use crate::domain::file::path::BlobKey;
use crate::domain::id::SnapshotId;

/// A content in a backup destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// The expected digest and size.
    pub expected: Copying,
    /// The run that stored the content, if object names contain it.
    pub by: Option<SnapshotId>,
}

/// A content to look for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The digest and the content's size.
    pub expected: Copying,
    /// The content as recorded by the newest finished snapshot.
    pub vouched: Option<Stored>,
}

/// A found content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The content.
    pub stored: Stored,
    /// How the content got there.
    pub how: FoundHow,
}

/// How a content got into the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundHow {
    /// The content was already there.
    Reused,
    /// The content was a second name of a file, and is now a copy.
    Unshared,
}

/// A content on the local disk.
#[derive(Debug, Clone)]
pub struct OnDisk {
    /// The digest and size of the content.
    pub expected: Copying,
    /// The keys of the blobs with this content.
    pub keys: Vec<BlobKey>,
}
