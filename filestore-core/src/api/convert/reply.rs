//! Replies that are remembered with an idempotency key.

use crate::api;
use crate::domain::error::{Error, Result};
use crate::domain::record::FileRecord;
use crate::domain::reply::StoredReply;

impl StoredReply {
    /// Encodes the reply to the upload of one file.
    pub(crate) fn of_file(record: &FileRecord) -> Result<Self> {
        Ok(Self::new(vec![record.file_id], encoded(&api::FileRecord::from(record))?))
    }

    /// Encodes the reply to a batch.
    pub(crate) fn of_batch(records: &[FileRecord]) -> Result<Self> {
        let shown: Vec<api::FileRecord> = records.iter().map(Into::into).collect();
        Ok(Self::new(records.iter().map(|record| record.file_id).collect(), encoded(&shown)?))
    }
}

fn encoded(reply: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(reply).map_err(|error| Error::internal("encoding a reply", error))
}

impl TryFrom<&StoredReply> for api::FileRecord {
    type Error = serde_json::Error;

    fn try_from(reply: &StoredReply) -> serde_json::Result<Self> {
        serde_json::from_slice(reply.as_json())
    }
}

impl TryFrom<&StoredReply> for Vec<api::FileRecord> {
    type Error = serde_json::Error;

    fn try_from(reply: &StoredReply) -> serde_json::Result<Self> {
        serde_json::from_slice(reply.as_json())
    }
}
