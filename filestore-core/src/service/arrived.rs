//! Bytes that arrived: what is known of them, and the name and type that their record gets.

use super::request::GivenName;
use crate::domain::clock::Timestamp;
use crate::domain::id::{BlobId, Sha256};
use crate::domain::media;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::{Blob, Dimensions};
use crate::storage::StagedBlob;
use crate::tasks;
use crate::variant;

/// The properties of bytes that arrived.
pub(super) struct Arrived {
    pub(super) blob_id: BlobId,
    size_bytes: u64,
    sha256: Sha256,
    sniffed: Option<&'static str>,
    dimensions: Option<Dimensions>,
}

impl Arrived {
    /// Sniffs the type, and looks for the dimensions of bytes that may be an image.
    pub(super) async fn of(staged: &StagedBlob) -> Self {
        let sniffed = media::sniff(&staged.head);
        let is_image = sniffed.is_some_and(|mime| mime.starts_with("image/"));

        Self {
            blob_id: staged.blob_id,
            size_bytes: staged.size_bytes,
            sha256: staged.sha256,
            sniffed,
            dimensions: if is_image { dimensions(staged).await } else { None },
        }
    }

    /// Describes the bytes as the blob under `key` at `provider`.
    pub(super) fn blob(&self, key: BlobKey, provider: ProviderCode, now: Timestamp) -> Blob {
        Blob {
            provider,
            key,
            size_bytes: self.size_bytes,
            sha256: self.sha256,
            sniffed_type: self.sniffed.map(str::to_owned),
            dimensions: self.dimensions,
            stored_at: now,
            thumbhash: None,
        }
    }
}

async fn dimensions(staged: &StagedBlob) -> Option<Dimensions> {
    let open = staged.opener();
    tasks::blocking(move || variant::probe(&open().ok()?)).await.ok().flatten()
}

/// The name, type and extension of a new blob.
pub(super) struct Naming {
    pub(super) original_name: String,
    pub(super) mime_type: String,
    pub(super) ext: String,
}

impl Naming {
    /// Chooses by what was given, else by the transport's hints, else by the bytes; a file without any
    /// name is called `otherwise`.
    pub(super) fn choose(
        given: &GivenName,
        arrived: &Arrived,
        name_limit: usize,
        otherwise: impl FnOnce() -> String,
    ) -> Self {
        let hinted = given.hints.file_name.as_deref();
        let original_name = given
            .name
            .clone()
            .or_else(|| media::name_from_part(hinted?, name_limit))
            .unwrap_or_else(otherwise);

        Self {
            mime_type: media::choose_type(
                given.mime_type.as_deref(),
                arrived.sniffed,
                given.hints.content_type.as_deref(),
                &original_name,
            ),
            ext: media::extension(&original_name, arrived.sniffed),
            original_name,
        }
    }
}
