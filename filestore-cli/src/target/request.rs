//! The requests that a command makes of a target, as the user typed them.

use std::str::FromStr;

use bytes::Bytes;
use filestore_core::api::{FileRecord, Metadata};

use super::item::Item;

/// The owner of a new file: an organization and a part of its application.
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
    /// The SHA-256 that the bytes must have, in hex.
    pub(crate) sha256: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

/// An upload that the target has acknowledged.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    pub(crate) record: FileRecord,
    /// True if the record is that of an earlier upload under the same idempotency key, as it was then.
    pub(crate) is_replay: bool,
}

/// The time that an uploaded file stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// The file stays until it is deleted.
    Lasting,
    /// The file expires, unless a change makes it stay.
    Temporary,
}

/// Files to upload together.
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
    /// Makes the file ready, with new bytes if there are any.
    Ready(Option<Item>),
    /// Gives the file new bytes.
    Replace(Item),
    /// Keeps the bytes, and gives the file another name, type or metadata.
    Edit(Edit),
}

/// Another name, type or metadata; what is `None` stays.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    pub(crate) name: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) metadata: Option<Metadata>,
}

/// The content that a change may be made to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IfMatch {
    /// Content of any kind, as long as the file exists.
    Any,
    /// Only this SHA-256, in hex.
    Sha256(String),
}

impl FromStr for IfMatch {
    type Err = String;

    /// Reads `*`, or a SHA-256 with or without the quotes of an entity tag.
    fn from_str(text: &str) -> Result<Self, String> {
        let hex = text.trim_matches('"');
        match text {
            "*" => Ok(Self::Any),
            _ if hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
                Ok(Self::Sha256(hex.to_ascii_lowercase()))
            }
            _ => Err("it is the sha256 that `filestore info` shows, or *".to_owned()),
        }
    }
}

/// A picture made for a square.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) bytes: Bytes,
    pub(crate) mime_type: String,
}

/// A migration: the organization whose files move, the provider they move to, and the pace.
#[derive(Debug, Clone)]
pub(crate) struct Migration {
    pub(crate) organization: i64,
    pub(crate) to: String,
    pub(crate) bytes_per_second: Option<u64>,
}
