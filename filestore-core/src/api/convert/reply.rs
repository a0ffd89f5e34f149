//! Replies that the store remembers for an idempotency key.

use crate::api;
use crate::domain::config::StoreConfig;
use crate::domain::error::{Error, Result};
use crate::domain::file::record::FileRecord;
use crate::domain::file::reply::StoredReply;
use crate::domain::provider::ProviderCode;

impl StoredReply {
    /// Encodes the reply to the upload of one file by an organization that is bound to `bound`.
    pub(crate) fn of_file(
        record: &FileRecord,
        config: &StoreConfig,
        bound: Option<&ProviderCode>,
    ) -> Result<Self> {
        let shown = shown(record, config, bound);
        Ok(Self::new(vec![record.file_id], encoded(&shown)?))
    }

    /// Encodes the reply to a batch.
    pub(crate) fn of_batch(
        records: &[FileRecord],
        config: &StoreConfig,
        bound: Option<&ProviderCode>,
    ) -> Result<Self> {
        let shown: Vec<_> = records.iter().map(|record| shown(record, config, bound)).collect();
        Ok(Self::new(records.iter().map(|record| record.file_id).collect(), encoded(&shown)?))
    }
}

fn shown(
    record: &FileRecord,
    config: &StoreConfig,
    bound: Option<&ProviderCode>,
) -> api::FileRecord {
    let awaits_copy = Some(record.awaits_copy(bound));
    api::FileRecord { awaits_copy, ..api::FileRecord::of(record, config) }
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
