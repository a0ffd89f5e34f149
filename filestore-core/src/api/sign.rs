//! Signed URLs in JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::vocabulary::{Disposition, Fit, UrlCache};

/// The body for POST `/files/{fileId}/sign`. With `size` you get a URL for a variant, without `size`
/// a URL for the content.
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
    /// Variant size in pixels, for example 400. If absent, the URL leads to the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// How the picture fits the square (default `cover`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// If true, a variant shows all frames of an animation. Needs `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub animated: Option<bool>,
    /// `inline` to show the content in a browser, `attachment` to save it. Not for variants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disposition: Option<Disposition>,
    /// `private` if no shared cache can keep the reply (default `public`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<UrlCache>,
    /// If false, the server sends the content also if a provider has it (default true: a redirect).
    /// Not for variants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<bool>,
    /// URL lifetime in seconds, 1 to 604800 (default 3600). The server rounds up to the end
    /// of a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
}

impl SignRequest {
    /// Requests a URL for the file content.
    pub fn content() -> Self {
        Self::default()
    }

    /// Requests a URL for a variant.
    pub fn variant(size: u32, fit: Fit) -> Self {
        Self { size: Some(size), fit: Some(fit), ..Self::default() }
    }

    /// Requests all frames of an animation, for a variant.
    #[must_use]
    pub fn animated(mut self) -> Self {
        self.animated = Some(true);
        self
    }

    /// Chooses whether a browser shows or saves the content.
    #[must_use]
    pub fn disposition(mut self, disposition: Disposition) -> Self {
        self.disposition = Some(disposition);
        self
    }

    /// Lets no shared cache keep the reply.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.cache = Some(UrlCache::Private);
        self
    }

    /// Makes the server send the content without a redirect to a provider.
    #[must_use]
    pub fn without_redirect(mut self) -> Self {
        self.redirect = Some(false);
        self
    }

    /// Sets the URL lifetime, in seconds.
    #[must_use]
    pub fn expires_in_s(mut self, secs: u64) -> Self {
        self.expires_in_s = Some(secs);
        self
    }
}

/// The body for POST `/files/sign-upload`.
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
    /// The new file's organization.
    pub organization_id: String,
    /// The new file's sub-system, for example `avatars`.
    pub sub_system: String,
    /// Maximum file size in bytes (default: the server limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
    /// File media type, for example `image/png`. If absent, the uploader chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// If true, the new file is `TEMP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_temp: Option<bool>,
    /// If true, the URL is for POST `/uploads`, with tus or a draft of the IETF. Otherwise it
    /// accepts a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumable: Option<bool>,
    /// URL lifetime in seconds, 1 to 604800 (default 3600). The server rounds up to the end
    /// of a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_s: Option<u64>,
    /// Number of URLs, 1 to 100. Each is for one file. With this field, the reply has `urls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

impl SignUploadRequest {
    /// Requests a URL to upload a file with any type and size.
    pub fn new(organization_id: impl Into<String>, sub_system: impl Into<String>) -> Self {
        Self {
            organization_id: organization_id.into(),
            sub_system: sub_system.into(),
            ..Self::default()
        }
    }

    /// Sets the maximum file size, in bytes.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = Some(bytes);
        self
    }

    /// Sets the file's media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Makes the new file `TEMP`.
    #[must_use]
    pub fn temp(mut self) -> Self {
        self.upload_temp = Some(true);
        self
    }

    /// Requests several URLs, 1 to 100, for one file each.
    #[must_use]
    pub fn count(mut self, urls: u32) -> Self {
        self.count = Some(urls);
        self
    }

    /// Requests a URL that creates a resumable upload.
    #[must_use]
    pub fn resumable(mut self) -> Self {
        self.resumable = Some(true);
        self
    }

    /// Sets the URL lifetime, in seconds.
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
    /// The URL to hand out. If the server does not know its public URL, this is a path, for example
    /// `/api/v1/files/...`.
    pub url: String,
    /// Expiry time in RFC 3339 (UTC, milliseconds), for example `2026-11-21T08:15:30.123Z`.
    pub expires_at: String,
    /// All URLs, for a request with `count`. The first is `url`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
}

/// Hides the query, because anyone with the signature can use the URL.
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
    /// Creates the reply for a signed URL.
    pub fn new(url: impl Into<String>, expires_at: impl Into<String>) -> Self {
        Self { url: url.into(), expires_at: expires_at.into(), urls: Vec::new() }
    }

    /// Adds all URLs, for a request with `count`.
    #[must_use]
    pub fn with_urls(mut self, urls: Vec<String>) -> Self {
        self.urls = urls;
        self
    }
}

/// A secret that signs URLs, from GET `/admin/signing-secrets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SigningSecretReply {
    /// Secret name, which each signed URL contains.
    pub kid: String,
    /// True if the secret is in the configuration, false if it is in the records database.
    pub configured: bool,
    /// True for the secret that signs new URLs.
    pub signs: bool,
    /// Creation time in RFC 3339. Null for a configured secret.
    pub created_at: Option<String>,
    /// Expiry time for the secret's URLs in RFC 3339. Null if no expiry is set.
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
