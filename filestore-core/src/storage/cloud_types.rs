//! Requests to a provider of location CLOUD, and its replies. These types have no behaviour, and exist in every build,
//! also without the feature `providers`.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;

/// The capabilities of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloudCapabilities {
    /// The provider can create presigned URLs that grant reading one object.
    pub presigns: bool,
    /// A presigned URL can set another type and disposition than the stored ones.
    pub overrides_disposition: bool,
    /// The provider stores the disposition with the object.
    pub stores_disposition: bool,
    /// The provider refuses puts with a wrong checksum. `None` until the first put.
    pub checks_checksums: Option<bool>,
    /// The provider refuses puts to an existing key. `None` until the first put.
    pub puts_if_absent: Option<bool>,
}

/// A presigned URL's method. Signatures include the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresignMethod {
    /// Reads the object.
    Get,
    /// Reads the object's headers.
    Head,
}

/// A presigned URL's required properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresignRequest<'a> {
    /// The future request's method.
    pub method: PresignMethod,
    /// The time until the URL expires.
    pub expires_in: Duration,
    /// The reply's media type.
    pub content_type: &'a str,
    /// The reply's required `Content-Disposition`. `None` accepts any.
    pub disposition: Option<&'a str>,
}

/// A presigned URL. Anyone who has the URL can read the object: keep it out of logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Presigned {
    /// The URL, for a request without further headers.
    pub url: String,
}

impl fmt::Debug for Presigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presigned").field("url", &self.url.split('?').next()).finish()
    }
}

/// A running or abandoned multipart upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedUpload {
    /// The name of the future object.
    pub name: String,
    /// The start time, by the provider's clock.
    pub begun_at: Timestamp,
    /// The provider's id of the upload.
    pub(super) upload_id: String,
}

/// Unfinished uploads, ordered by name.
#[derive(Debug, Default)]
pub struct UploadsPage {
    /// The page's uploads. The list can be empty.
    pub uploads: Vec<UnfinishedUpload>,
    /// Place of the next page. `None` after the last page.
    pub next: Option<UploadsPlace>,
}

/// A position in a listing of unfinished uploads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadsPlace {
    /// The full key, as named by the provider.
    pub(super) key: String,
    pub(super) upload_id: String,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    /// The name within the listed directory.
    pub(super) name: String,
    pub(super) size_bytes: u64,
    /// The time of the last change by the provider's clock, if the provider tells it.
    pub(super) modified_at: Option<Timestamp>,
}

/// The check result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderCheck {
    /// The tested provider's code.
    pub provider: ProviderCode,
    /// True if the provider can store files: they can be stored, read and removed, and URLs, if there are
    /// any, grant only reading.
    pub can_serve: bool,
    /// The steps, in execution order.
    pub steps: Vec<CheckStep>,
}

/// One check step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckStep {
    /// The step's name: `write`, `read`, `range`, `presign` and so on.
    pub name: &'static str,
    /// The step's outcome.
    pub outcome: CheckOutcome,
    /// The observation, as a single line. Empty for a skipped step.
    pub detail: String,
}

/// A step's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The feature works.
    Ok,
    /// The provider lacks this feature. The service works without it.
    Cannot,
    /// The feature should work, but does not.
    Failed,
    /// An earlier step made this step impossible.
    Skipped,
}

impl CheckOutcome {
    /// Returns the display name: `ok`, `cannot`, `failed` or `skipped`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Cannot => "cannot",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// The database's record of marked providers.
#[async_trait]
pub trait MarkerLedger: Send + Sync {
    /// Returns true if this store has marked the provider.
    async fn is_marked(&self, provider: &ProviderCode) -> Result<bool>;

    /// Records that the provider is marked.
    async fn note_marked(&self, provider: &ProviderCode) -> Result<()>;

    /// Lists up to `limit` objects that records place at the provider, with their sizes.
    async fn some_blobs(
        &self,
        provider: &ProviderCode,
        limit: usize,
    ) -> Result<Vec<(BlobKey, u64)>>;
}

/// Returns the error for an unusable configuration: one line that names the provider and the problem.
pub(super) fn unusable(code: &ProviderCode, problem: impl AsRef<str>) -> Error {
    Error::new(ErrorKind::Unusable, format!("provider {code}: {}", problem.as_ref()))
}
