//! The reply to an upload, as it is remembered with an idempotency key.

use super::id::FileId;

/// A reply that was given once and is given again to the same request, byte for byte.
///
/// The database has kept replies as the text that clients saw since before records had all of their
/// fields, so the text cannot be made again from the records. It stays opaque here: `api` writes and
/// reads it, the use cases carry it, and the files that it is about are listed beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReply {
    file_ids: Vec<FileId>,
    json: Vec<u8>,
}

impl StoredReply {
    /// Takes a reply up as it was stored.
    pub(crate) fn new(file_ids: Vec<FileId>, json: Vec<u8>) -> Self {
        Self { file_ids, json }
    }

    /// Returns the files that the reply shows, in its order.
    pub fn file_ids(&self) -> &[FileId] {
        &self.file_ids
    }

    /// Returns the text of the reply: a record in JSON, or for a batch an array of them.
    pub fn as_json(&self) -> &[u8] {
        &self.json
    }

    /// Returns the text of the reply.
    pub fn into_json(self) -> Vec<u8> {
        self.json
    }
}
