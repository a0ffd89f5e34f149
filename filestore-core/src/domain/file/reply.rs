//! The reply to an upload, remembered for its idempotency key.

use crate::domain::id::FileId;

/// A reply that the store repeats for the same request, byte for byte.
///
/// The text stays as it was first sent, because the record can change later, and because old
/// replies lack newer fields. `api` writes and reads the text. This type also lists the files in
/// the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReply {
    file_ids: Vec<FileId>,
    json: Vec<u8>,
}

impl StoredReply {
    /// Reads a stored reply.
    pub(crate) fn new(file_ids: Vec<FileId>, json: Vec<u8>) -> Self {
        Self { file_ids, json }
    }

    /// Returns the files in the reply, in the same order.
    pub fn file_ids(&self) -> &[FileId] {
        &self.file_ids
    }

    /// Returns the reply's text: a record in JSON, or an array of records for a batch.
    pub fn as_json(&self) -> &[u8] {
        &self.json
    }

    /// Returns the reply's text.
    pub fn into_json(self) -> Vec<u8> {
        self.json
    }
}
