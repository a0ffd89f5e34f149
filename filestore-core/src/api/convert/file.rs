//! A file record.

use crate::api;
use crate::domain::record::FileRecord;

impl From<&FileRecord> for api::FileRecord {
    fn from(record: &FileRecord) -> Self {
        let FileRecord { blob, state, .. } = record;

        Self {
            file_id: record.file_id.to_string(),
            original_name: record.original_name.clone(),
            mime_type: record.mime_type.clone(),
            file_size: blob.size_bytes,
            ext: record.ext.clone(),
            file_path: blob.key.to_string(),
            sync_status: state.sync().into(),
            updated_at: record.updated_at.to_string(),
            status: state.status().into(),
            storage_location: state.location().into(),
            storage_provider: blob.provider.to_string(),
            organization_id: record.organization_id.to_string(),
            sub_system: record.sub_system.to_string(),
            sha256: blob.sha256.to_hex(),
            width: blob.dimensions.map(|d| d.width),
            height: blob.dimensions.map(|d| d.height),
            version: record.version,
            created_at: record.created_at.to_string(),
            expires_at: record.expires_at.map(|at| at.to_string()),
            purge_status: state.purge().map(Into::into),
        }
    }
}
