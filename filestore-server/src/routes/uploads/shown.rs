//! Uploads in JSON.

use filestore_core::api;
use filestore_core::uploads::ResumableUpload;

/// Shows an upload, without its token.
pub(crate) fn shown(upload: &ResumableUpload) -> api::ResumableUpload {
    let mut shown = api::ResumableUpload::default();
    shown.upload_id = upload.address.upload_id.to_string();
    shown.state = upload.stage.to_string();
    shown.offset = upload.offset;
    shown.length = upload.length;
    shown.complete = upload.is_finished();
    shown.created_at = upload.created_at.to_string();
    shown.expires_at = upload.expires_at.to_string();
    shown.organization_id = upload.organization_id.to_string();
    shown.original_name.clone_from(&upload.original_name);
    shown.file_id = upload.file_id.map(|id| id.to_string());
    shown.error = upload.failure.as_ref().map(|failure| failure.code.clone());
    shown
}

/// Shows a page of at most `limit` uploads.
pub(crate) fn page(uploads: &[ResumableUpload], limit: usize) -> api::ResumableUploadList {
    let mut page = api::ResumableUploadList::default();
    page.items = uploads.iter().map(shown).collect();
    let last = uploads.last().filter(|_| uploads.len() == limit);
    page.next_cursor = last.map(|upload| upload.address.upload_id.to_string());
    page
}
