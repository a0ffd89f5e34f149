//! The requests of a command to a target, as the user typed them.

use std::str::FromStr;

use bytes::Bytes;
use filestore_core::api::{
    CreateBackup, FileRecord, FsckRunRequest, Metadata, MigrateRunRequest, OrganizationNumber,
};

use super::item::Item;

/// The owner of a new file: an organization and a sub-system.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) organization_id: String,
    pub(crate) sub_system: String,
}

/// A file to upload.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) place: Place,
    pub(crate) item: Item,
    pub(crate) lifetime: Lifetime,
    /// The required SHA-256 of the bytes, in hex.
    pub(crate) sha256: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

/// An acknowledged upload.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    pub(crate) record: FileRecord,
    /// True if the record is the stored reply of an earlier upload with the same idempotency key.
    pub(crate) is_replay: bool,
}

/// The lifetime of an uploaded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// The file stays until it is deleted.
    Lasting,
    /// The file expires, unless it becomes a thumbnail or ready.
    Temporary,
}

/// Files to upload in one step.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) place: Place,
    pub(crate) items: Vec<Item>,
    pub(crate) idempotency_key: Option<String>,
}

/// A change of a stored file.
#[derive(Debug)]
pub(crate) enum Change {
    /// Keeps a temporary file as a thumbnail.
    Thumbnail,
    /// Makes the file ready, optionally with new bytes.
    Ready(Option<Item>),
    /// Replaces the file's bytes.
    Replace(Item),
}

/// A change of a file's name, type or custom metadata. `None` means no change.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    pub(crate) name: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) metadata: Option<MetadataEdit>,
}

/// A change of a file's custom metadata.
#[derive(Debug)]
pub(crate) enum MetadataEdit {
    /// Sets these members, or removes them if they are null. All others stay.
    Merge(Metadata),
    /// Removes all members.
    Clear,
}

/// The content that a change requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IfMatch {
    /// Any content, if the file exists.
    Any,
    /// Content with this SHA-256, in hex.
    Sha256(String),
}

impl FromStr for IfMatch {
    type Err = String;

    /// Parses `*`, or a SHA-256 with or without the quotes of an entity tag.
    fn from_str(text: &str) -> Result<Self, String> {
        let hex = text.trim_matches('"');
        match text {
            "*" => Ok(Self::Any),
            _ if hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
                Ok(Self::Sha256(hex.to_ascii_lowercase()))
            }
            _ => Err("use the sha256 from `filestore info`, or *".to_owned()),
        }
    }
}

/// A variant of an image.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) bytes: Bytes,
    pub(crate) mime_type: String,
}

/// A migration of an organization's files to a provider.
#[derive(Debug, Clone)]
pub(crate) struct Migration {
    pub(crate) organization: OrganizationNumber,
    pub(crate) to: String,
    pub(crate) bytes_per_second: Option<u64>,
}

impl Migration {
    /// Converts the migration to a request.
    pub(super) fn request(&self) -> MigrateRunRequest {
        MigrateRunRequest::new(self.organization, &self.to).bytes_per_second(self.bytes_per_second)
    }
}

/// A run that continues at the server, without this program.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DetachedRun<'a> {
    Migration(&'a Migration),
    Fsck(&'a FsckRunRequest),
    /// A snapshot to a destination.
    Backup(&'a str, &'a CreateBackup),
}
