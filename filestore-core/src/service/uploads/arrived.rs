//! Bytes that arrived: their properties, and the name and type of their record.

use crate::domain::error::{Error, Result};
use crate::domain::file::media;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::{Blob, Dimensions};
use crate::domain::id::{BlobId, Sha256};
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::service::FileStore;
use crate::service::request::GivenName;
use crate::storage::StagedBlob;
use crate::tasks;
use crate::tasks::step::{Call, attempt};
use crate::variant;

/// The work on a failed read, for its error.
const READING: &str = "reading the header of a picture";

/// The properties of bytes that arrived.
pub(in crate::service) struct Arrived {
    pub(in crate::service) blob_id: BlobId,
    size_bytes: u64,
    sha256: Sha256,
    sniffed: Option<&'static str>,
    dimensions: Option<Dimensions>,
}

impl Arrived {
    /// Detects the type, and reads the dimensions if the bytes might be an image. Fails if the bytes cannot be
    /// read. The client can send the file again.
    pub(in crate::service) async fn of(staged: &StagedBlob) -> Result<Self> {
        let sniffed = media::sniff(&staged.head);
        let is_image = sniffed.is_some_and(|mime| mime.starts_with("image/"));

        Ok(Self {
            blob_id: staged.blob_id,
            size_bytes: staged.size_bytes,
            sha256: staged.sha256,
            sniffed,
            dimensions: if is_image { dimensions(staged).await? } else { None },
        })
    }

    /// Describes the bytes as the blob under `key` at `provider`.
    pub(in crate::service) fn blob(
        &self,
        key: BlobKey,
        provider: ProviderCode,
        now: Timestamp,
    ) -> Blob {
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

async fn dimensions(staged: &StagedBlob) -> Result<Option<Dimensions>> {
    let open = staged.opener();
    let probed = tasks::blocking(move || {
        let file = open()?;
        attempt(Call::Read).map_err(|error| Error::io(READING, error.into()))?;
        variant::probe(&file)
    });
    probed.await.map_err(|error| Error::internal(READING, error))?
}

/// The name, type and extension of a new blob.
pub(in crate::service) struct Naming {
    pub(in crate::service) original_name: String,
    pub(in crate::service) mime_type: String,
    pub(in crate::service) ext: String,
}

impl Naming {
    /// Chooses the name and type that the caller gave, or else the hints of the transport, or else the
    /// detected type. A file without a name is called `otherwise`.
    pub(in crate::service) fn choose(
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

impl FileStore {
    /// Returns the maximum length of a name, in characters.
    pub(in crate::service) fn name_limit(&self) -> usize {
        self.inner.config().limits.original_name_chars
    }
}
