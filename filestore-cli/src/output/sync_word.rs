//! The word for the sync status of a file.

use filestore_core::api::{FileRecord, SyncStatus};

/// Returns the sync status as people understand it.
///
/// A new file is `PENDING`, also if no provider waits for it: within seconds, it becomes `NONE`. Both are
/// `stored`. Older servers do not send `awaits_copy`, so their `PENDING` stays.
pub(crate) fn sync_word(file: &FileRecord) -> &str {
    match (&file.sync_status, file.awaits_copy) {
        (SyncStatus::None, _) | (SyncStatus::Pending, Some(false)) => "stored",
        (status, _) => status.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(sync_status: &str, awaits_copy: Option<bool>) -> FileRecord {
        let json = serde_json::json!({
            "file_id": "01JD8QZ4T6X3M2V9B7K5N1R0CE", "original_name": "a", "mime_type": "text/plain",
            "file_size": 1, "ext": "", "file_path": "42/s/2026/11/21/x", "sync_status": sync_status,
            "updated_at": "2026-11-21T08:15:30.123Z", "status": "READY", "storage_location": "LOCAL",
            "storage_provider": "LOCAL", "organization_id": "42", "sub_system": "s", "sha256": "00",
            "width": null, "height": null, "version": 1, "created_at": "2026-11-21T08:15:30.123Z",
            "expires_at": null, "purge_status": null, "awaits_copy": awaits_copy,
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_pending_file_that_no_provider_waits_for_is_stored() {
        for (sync_status, awaits_copy, word) in [
            ("PENDING", Some(false), "stored"),
            ("NONE", Some(false), "stored"),
            ("NONE", None, "stored"),
            ("PENDING", Some(true), "PENDING"),
            ("PENDING", None, "PENDING"),
            ("SYNCING", Some(true), "SYNCING"),
            ("SYNCED", Some(false), "SYNCED"),
            ("FAILED", Some(false), "FAILED"),
            ("LATER", None, "LATER"),
        ] {
            assert_eq!(sync_word(&file(sync_status, awaits_copy)), word, "{sync_status}");
        }
    }
}
