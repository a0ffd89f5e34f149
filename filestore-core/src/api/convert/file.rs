//! A file record.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::api;
use crate::domain::config::StoreConfig;
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::{Location, SyncStatus};

/// Provider code of every file that the server sends, with any backend.
const LOCAL: &str = "LOCAL";

impl api::FileRecord {
    /// Converts a record. The purge of a deleted file is due after the grace period of `config`.
    /// `awaits_copy` of a PENDING file is null until you set it, for example from
    /// [`Bindings::awaits_copy`](crate::bindings::Bindings::awaits_copy).
    pub fn of(record: &FileRecord, config: &StoreConfig) -> Self {
        // All fields by name: a new one does not compile until somebody has decided about it.
        let FileRecord {
            file_id,
            organization_id,
            sub_system,
            original_name,
            mime_type,
            ext,
            blob,
            state,
            version,
            created_at,
            updated_at,
            expires_at,
            metadata,
            // Internal: `updated_at` moves with it.
            edited_at: _,
            deletion,
            sync_attempts,
            sync_error,
        } = record;

        Self {
            file_id: file_id.to_string(),
            original_name: original_name.clone(),
            mime_type: mime_type.clone(),
            file_size: blob.size_bytes,
            ext: ext.clone(),
            file_path: blob.key.to_string(),
            sync_status: state.sync().into(),
            updated_at: updated_at.to_string(),
            status: state.status().into(),
            storage_location: state.location().into(),
            storage_provider: match state.location() {
                Location::Local => LOCAL.to_owned(),
                Location::Cloud => blob.provider.to_string(),
            },
            organization_id: organization_id.to_string(),
            sub_system: sub_system.to_string(),
            sha256: blob.sha256.to_hex(),
            width: blob.dimensions.map(|d| d.width),
            height: blob.dimensions.map(|d| d.height),
            version: *version,
            created_at: created_at.to_string(),
            expires_at: expires_at.map(|at| at.to_string()),
            purge_status: state.purge().map(Into::into),
            metadata: metadata.members(),
            thumbhash: blob.thumbhash.as_ref().map(|hash| STANDARD.encode(hash.as_bytes())),
            deleted_at: deletion.map(|deletion| deletion.deleted_at.to_string()),
            purge_due_at: record.purge_due_at(config.purge_grace).map(|at| at.to_string()),
            awaits_copy: match state.sync() {
                // The binding of the organization decides.
                SyncStatus::Pending => None,
                _ => Some(record.awaits_copy(None)),
            },
            sync_attempts: *sync_attempts,
            sync_error: sync_error.clone(),
        }
    }
}
