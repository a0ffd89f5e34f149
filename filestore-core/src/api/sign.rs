//! Signed URLs on the wire.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::vocabulary::{Disposition, Fit};

/// The body of POST `/files/{fileId}/sign`: the content, unless a size is given.
///
/// ```
/// use filestore_core::api::{Fit, SignRequest};
///
/// let thumbnail = SignRequest::variant(200, Fit::Cover).expires_in_s(600);
/// assert_eq!(thumbnail.size, Some(200));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct SignRequest {
    /// Side of the variant's square, in pixels; the content if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// Way in which the picture fills the square; `cover` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// True for all frames of an animation, in a variant; only with `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub animated: Option<bool>,
    /// Use that a browser makes of the content; not for variants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disposition: Option<Disposition>,
    /// Life of the URL in seconds, 1 to 604800; 3600 if absent. Rounded up to the end of a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
}

impl SignRequest {
    /// Asks for a URL of the file's content.
    pub fn content() -> Self {
        Self::default()
    }

    /// Asks for a URL of a variant.
    pub fn variant(size: u32, fit: Fit) -> Self {
        Self { size: Some(size), fit: Some(fit), ..Self::default() }
    }

    /// Asks for all frames of an animation, in the variant.
    #[must_use]
    pub fn animated(mut self) -> Self {
        self.animated = Some(true);
        self
    }

    /// Sets the use that a browser makes of the content.
    #[must_use]
    pub fn disposition(mut self, disposition: Disposition) -> Self {
        self.disposition = Some(disposition);
        self
    }

    /// Sets the life of the URL, in seconds.
    #[must_use]
    pub fn expires_in_s(mut self, secs: u64) -> Self {
        self.expires_in_s = Some(secs);
        self
    }
}

/// The body of POST `/files/sign-upload`.
///
/// ```
/// use filestore_core::api::SignUploadRequest;
///
/// let avatar = SignUploadRequest::new("42", "avatars").max_size(2 << 20).mime_type("image/png");
/// assert_eq!(avatar.max_size, Some(2_097_152));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SignUploadRequest {
    /// Organization that the file will belong to.
    pub organization_id: String,
    /// Part of the application that the file will belong to.
    pub sub_system: String,
    /// Most bytes of the file; the limit of the service if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
    /// Media type of the file; of the uploader's choice if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// True for a TEMP file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_temp: Option<bool>,
    /// Life of the URL in seconds, 1 to 604800; 3600 if absent. Rounded up to the end of a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
}

impl SignUploadRequest {
    /// Asks for a URL to upload a file of any type and size.
    pub fn new(organization_id: impl Into<String>, sub_system: impl Into<String>) -> Self {
        Self {
            organization_id: organization_id.into(),
            sub_system: sub_system.into(),
            ..Self::default()
        }
    }

    /// Sets the most bytes of the file.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = Some(bytes);
        self
    }

    /// Sets the media type of the file.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Makes the file TEMP.
    #[must_use]
    pub fn temp(mut self) -> Self {
        self.upload_temp = Some(true);
        self
    }

    /// Sets the life of the URL, in seconds.
    #[must_use]
    pub fn expires_in_s(mut self, secs: u64) -> Self {
        self.expires_in_s = Some(secs);
        self
    }
}

/// The reply to POST `/files/{fileId}/sign` and POST `/files/sign-upload`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SignedUrlReply {
    /// URL to hand on; a path where the service does not know its public URL.
    pub url: String,
    /// Instant from which the URL is refused, ISO 8601 UTC with milliseconds.
    pub expires_at: String,
}

/// Hides the query: its signature lets whoever has it in.
impl fmt::Debug for SignedUrlReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.split('?').next();
        f.debug_struct("SignedUrlReply")
            .field("url", &url.unwrap_or_default())
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl SignedUrlReply {
    /// Makes the reply for a signed URL.
    pub fn new(url: impl Into<String>, expires_at: impl Into<String>) -> Self {
        Self { url: url.into(), expires_at: expires_at.into() }
    }
}

/// A secret that signs URLs, as GET `/admin/signing-secrets` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SigningSecretReply {
    /// Name of the secret, which URLs carry.
    pub kid: String,
    /// True if the secret is in the configuration rather than in the data directory.
    pub configured: bool,
    /// True for the one secret that signs new URLs.
    pub signs: bool,
    /// Time at which the secret was made; null for one of the configuration.
    pub created_at: Option<String>,
    /// Time from which URLs of the secret are refused; null while none is set.
    pub valid_until: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_url_is_not_printed_with_its_signature() {
        let reply =
            SignedUrlReply::new("https://a.example/api/v1/files/1?exp=1&sig=secret", "2026");
        let shown = format!("{reply:?}");
        assert!(shown.contains("/api/v1/files/1") && !shown.contains("secret"), "{shown}");
    }
}
