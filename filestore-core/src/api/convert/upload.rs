//! Resumable uploads.

use crate::api;
use crate::domain::file::resumable::ResumableUpload;

/// Leaves out the token.
impl From<&ResumableUpload> for api::ResumableUpload {
    fn from(upload: &ResumableUpload) -> Self {
        Self {
            upload_id: upload.address.upload_id.to_string(),
            state: upload.stage.to_string(),
            offset: upload.offset,
            length: upload.length,
            complete: upload.is_finished(),
            created_at: upload.created_at.to_string(),
            expires_at: upload.expires_at.to_string(),
            organization_id: upload.organization_id.to_string(),
            original_name: upload.original_name.clone(),
            file_id: upload.file_id.map(|id| id.to_string()),
            error: upload.failure.as_ref().map(|failure| failure.code.clone()),
        }
    }
}

impl api::ResumableUploadList {
    /// Creates a page of at most `limit` uploads. A full page has a cursor for the next page.
    pub fn of(uploads: &[ResumableUpload], limit: usize) -> Self {
        let last = uploads.last().filter(|_| uploads.len() == limit);
        Self {
            items: uploads.iter().map(Into::into).collect(),
            next_cursor: last.map(|upload| upload.address.upload_id.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::file::resumable::{UploadAddress, UploadFailure, UploadStage};
    use crate::domain::id::UploadId;
    use crate::domain::time::clock::Timestamp;

    fn failed(at: Timestamp) -> ResumableUpload {
        ResumableUpload {
            address: UploadAddress { upload_id: UploadId::generate(at), token: "secret".into() },
            stage: UploadStage::Failed,
            offset: 4,
            length: Some(5),
            organization_id: "acme".parse().unwrap(),
            note: "a note of the client".into(),
            concat: None,
            original_name: Some("a.txt".into()),
            file_id: None,
            is_replacement: false,
            failure: Some(UploadFailure { code: "digest_mismatch".into(), message: "x".into() }),
            created_at: at,
            expires_at: at,
        }
    }

    #[test]
    fn an_upload_is_shown_with_its_failure_and_without_its_token() {
        let upload = failed(Timestamp::from_millis(1_795_248_930_123));
        let shown = api::ResumableUpload::from(&upload);
        assert_eq!((&*shown.state, shown.error.as_deref()), ("failed", Some("digest_mismatch")));
        assert_eq!(shown.upload_id, upload.address.upload_id.to_string());
        assert_eq!(shown.expires_at, "2026-11-21T08:15:30.123Z");
        let json = serde_json::to_string(&shown).unwrap();
        assert!(!json.contains("secret") && !json.contains("note"), "{json}");
    }

    #[test]
    fn a_full_page_has_a_cursor() {
        let uploads = [1, 2].map(|millis| failed(Timestamp::from_millis(millis)));
        let page = api::ResumableUploadList::of(&uploads, 2);
        assert_eq!(page.next_cursor.as_deref(), Some(&*page.items[1].upload_id));
        assert_eq!(api::ResumableUploadList::of(&uploads, 3).next_cursor, None);
        assert_eq!(api::ResumableUploadList::of(&[], 2), api::ResumableUploadList::default());
    }
}
