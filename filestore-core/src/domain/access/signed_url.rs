//! Signed URLs: requests for them, and their paths and queries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::scope::Scope;
use super::signature::{MAX_LIFE, SignedMethod, SigningSecret, push_parameter};
use crate::domain::error::{Error, Result};
use crate::domain::file::disposition::Disposition;
use crate::domain::file::media;
use crate::domain::file::variant::{Fit, Motion, VariantSize};
use crate::domain::id::{FileId, KeyId, OrganizationId, SubSystem};
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;

/// Path of all files, below the public prefix.
pub const FILES_PATH: &str = "/api/v1/files";

/// Path of resumable uploads, below the public prefix.
const UPLOADS_PATH: &str = "/api/v1/uploads";

/// Default lifetime of a URL.
const DEFAULT_LIFE: Duration = Duration::from_hours(1);

/// A signed URL, without scheme and host.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignedUrl {
    /// Path and query, below the public prefix.
    pub path_and_query: String,
    /// Expiry time.
    pub expires_at: Timestamp,
}

/// Hides the query, because anyone with the signature can use the URL.
impl fmt::Debug for SignedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path_and_query.split('?').next();
        f.debug_struct("SignedUrl")
            .field("path", &path.unwrap_or_default())
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl SignedUrl {
    pub(crate) fn new(
        secret: &SigningSecret,
        method: SignedMethod,
        target: &(String, String),
        expires_at: Timestamp,
    ) -> Self {
        let (path, query) = target;
        Self { path_and_query: secret.sign(method, path, query, expires_at), expires_at }
    }
}

/// The access that a verified URL gives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedUrl {
    /// Expiry time: the URL's, or its key's if this is earlier.
    pub expires_at: Timestamp,
    /// Name of the secret that signed the URL.
    pub kid: String,
    /// API key that requested the URL. `None` for a URL without a key.
    pub key: Option<KeyId>,
    /// Organizations that the key can access now. All organizations if there is no key.
    pub organizations: Arc<Scope>,
}

/// A request for a URL to read a file: the content, or a variant.
///
/// ```
/// use std::time::Duration;
///
/// use filestore_core::signing::SignFile;
/// use filestore_core::Fit;
///
/// # fn main() -> filestore_core::Result<()> {
/// let thumbnail = SignFile::variant(200.try_into()?, Fit::Cover);
/// let download = SignFile::content().expires_in(Duration::from_secs(600));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignFile {
    /// Size and fit of a variant. `None` for the content.
    pub variant: Option<(VariantSize, Fit)>,
    /// Still picture, or all animation frames.
    pub motion: Motion,
    /// Tells browsers to show the content or to save it.
    pub disposition: Option<Disposition>,
    /// If true, only the reader's own cache can keep the reply, and asks each time.
    pub private: bool,
    /// If true, the server sends the content also if a provider has it, without a redirect.
    pub streamed: bool,
    /// Lifetime: at most 7 days (default 1 hour). Rounded up to the end of a window.
    pub expires_in: Option<Duration>,
    /// API key that requests the URL. If the key loses access to the file, the URL stops working.
    pub key: Option<KeyId>,
}

impl SignFile {
    /// Requests a URL for the content.
    pub fn content() -> Self {
        Self::default()
    }

    /// Requests a URL for a variant.
    pub fn variant(size: VariantSize, fit: Fit) -> Self {
        Self { variant: Some((size, fit)), ..Self::default() }
    }

    /// Requests all animation frames. Only for variants.
    #[must_use]
    pub fn animated(mut self) -> Self {
        self.motion = Motion::Animated;
        self
    }

    /// Chooses whether a browser shows or saves the content. Not for variants.
    #[must_use]
    pub fn disposition(mut self, disposition: Disposition) -> Self {
        self.disposition = Some(disposition);
        self
    }

    /// Lets no shared cache keep the reply. By default, any cache keeps it until the window ends.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.private = true;
        self
    }

    /// Makes the server send the content itself, for pages that allow no other origin. Not for variants,
    /// which are never redirects.
    #[must_use]
    pub fn streamed(mut self) -> Self {
        self.streamed = true;
        self
    }

    /// Sets the URL's lifetime.
    #[must_use]
    pub fn expires_in(mut self, life: Duration) -> Self {
        self.expires_in = Some(life);
        self
    }

    /// Names the API key that requests the URL. If the key is revoked, expires, or loses access to
    /// the file, the URL stops working. Without a key, the URL works until it expires.
    #[must_use]
    pub fn on_behalf_of(mut self, key: KeyId) -> Self {
        self.key = Some(key);
        self
    }

    pub(crate) fn life(&self) -> Result<Duration> {
        life(self.expires_in)
    }

    /// Returns path and query of the request for `id`. `InvalidField` for a disposition or stream of a
    /// variant, and for animated content.
    pub(crate) fn target(&self, id: FileId) -> Result<(String, String)> {
        let mut query = String::new();
        let Some((size, fit)) = self.variant else {
            if self.motion == Motion::Animated {
                let message = "only a variant is animated: animated goes with size";
                return Err(Error::invalid("animated", message));
            }
            if let Some(disposition) = self.disposition {
                push_parameter(&mut query, "disposition", disposition.as_str());
            }
            if self.streamed {
                push_parameter(&mut query, "redirect", "false");
            }
            self.push_cache(&mut query);
            push_key(&mut query, self.key);
            return Ok((format!("{FILES_PATH}/{id}"), query));
        };

        if self.disposition.is_some() {
            let message = "a variant has no disposition: disposition goes without size";
            return Err(Error::invalid("disposition", message));
        }
        if self.streamed {
            let message = "a variant is never a redirect: redirect goes without size";
            return Err(Error::invalid("redirect", message));
        }
        if fit == Fit::Inside {
            push_parameter(&mut query, "fit", "inside");
        }
        if self.motion == Motion::Animated {
            push_parameter(&mut query, "animated", "true");
        }
        self.push_cache(&mut query);
        push_key(&mut query, self.key);
        let side = size.pixels();
        Ok((format!("{FILES_PATH}/{id}/{side}/{side}"), query))
    }

    fn push_cache(&self, query: &mut String) {
        if self.private {
            push_parameter(query, "cache", "private");
        }
    }
}

/// A request for a URL to upload one file.
///
/// ```
/// use filestore_core::signing::SignUpload;
///
/// # fn main() -> filestore_core::Result<()> {
/// let avatar = SignUpload::new("42".parse()?, "avatars".parse()?).max_size(2 << 20).mime_type("image/png");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignUpload {
    /// The new file's organization.
    pub organization_id: OrganizationId,
    /// The new file's sub-system.
    pub sub_system: SubSystem,
    /// Maximum file size in bytes. `None` means the store's limit.
    pub max_size: Option<u64>,
    /// File media type. If `None`, the uploader chooses.
    pub mime_type: Option<String>,
    /// If true, the new file is `TEMP`.
    pub temp: bool,
    /// If true, the URL creates a resumable upload. Otherwise it accepts a form.
    pub resumable: bool,
    /// Lifetime: at most 7 days (default 1 hour). Rounded up to the end of a window.
    pub expires_in: Option<Duration>,
    /// API key that requests the URL. If the key can no longer upload, the URL stops working.
    pub key: Option<KeyId>,
}

impl SignUpload {
    /// Requests a URL to upload a file of any type and size.
    pub fn new(organization_id: OrganizationId, sub_system: SubSystem) -> Self {
        Self {
            organization_id,
            sub_system,
            max_size: None,
            mime_type: None,
            temp: false,
            resumable: false,
            expires_in: None,
            key: None,
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
        self.temp = true;
        self
    }

    /// Requests a URL that creates a resumable upload, with tus or a draft of the IETF.
    #[must_use]
    pub fn resumable(mut self) -> Self {
        self.resumable = true;
        self
    }

    /// Sets the URL's lifetime.
    #[must_use]
    pub fn expires_in(mut self, life: Duration) -> Self {
        self.expires_in = Some(life);
        self
    }

    /// Names the API key that requests the URL. If the key is revoked, expires, or can no longer
    /// upload for the organization, the URL stops working. Without a key, the URL works until it
    /// expires.
    #[must_use]
    pub fn on_behalf_of(mut self, key: KeyId) -> Self {
        self.key = Some(key);
        self
    }

    pub(crate) fn life(&self) -> Result<Duration> {
        life(self.expires_in)
    }

    /// Returns path and query of the upload with this `nonce`, signed in `era`. `InvalidField` for
    /// an invalid media type.
    pub(crate) fn target(&self, nonce: &str, era: Era) -> Result<(String, String)> {
        let mut query = String::new();
        push_parameter(&mut query, "organization_id", self.organization_id.as_str());
        push_parameter(&mut query, "sub_system", self.sub_system.as_str());
        if let Some(bytes) = self.max_size {
            push_parameter(&mut query, "max_size", &bytes.to_string());
        }
        if let Some(mime_type) = &self.mime_type {
            media::check_mime_type("mime_type", mime_type)?;
            push_parameter(&mut query, "mime_type", mime_type);
        }
        if self.temp {
            push_parameter(&mut query, "upload_temp", "true");
        }
        push_parameter(&mut query, "nonce", nonce);
        push_parameter(&mut query, "era", &era.to_string());
        push_key(&mut query, self.key);
        let path =
            if self.resumable { UPLOADS_PATH.to_owned() } else { format!("{FILES_PATH}/upload") };
        Ok((path, query))
    }
}

fn push_key(query: &mut String, key: Option<KeyId>) {
    if let Some(key) = key {
        push_parameter(query, "key", &key.to_string());
    }
}

/// Checks a lifetime. `InvalidField` if it is not 1 second to 7 days.
fn life(wanted: Option<Duration>) -> Result<Duration> {
    let life = wanted.unwrap_or(DEFAULT_LIFE);
    if (Duration::from_secs(1)..=MAX_LIFE).contains(&life) {
        return Ok(life);
    }
    let most = MAX_LIFE.as_secs();
    let message = format!("expires_in_s is an integer from 1 to {most}");
    Err(Error::invalid("expires_in_s", message).with_limit(most))
}

/// The permit for one upload, from a signed URL. The commit of the file uses it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadPermit {
    /// Permit name. No other URL has this name.
    pub nonce: String,
    /// URL expiry time.
    pub expires_at: Timestamp,
    /// Era in which the URL was signed.
    pub era: Era,
}

impl UploadPermit {
    /// Maximum time for which an upload can continue after its URL has expired. The store remembers
    /// a used permit for this time: 24 hours.
    pub const GRACE: Duration = Duration::from_hours(24);

    /// Maximum permit name length, in characters.
    pub const NONCE_CHARS: usize = 64;

    /// Creates a permit for a URL without an era. `SignatureInvalid` if the name is not 1 to 64
    /// printable ASCII characters.
    pub fn new(nonce: impl Into<String>, expires_at: Timestamp) -> Result<Self> {
        let nonce = nonce.into();
        let fits = (1..=Self::NONCE_CHARS).contains(&nonce.len());
        if fits && nonce.bytes().all(|b| b.is_ascii_graphic()) {
            return Ok(Self { nonce, expires_at, era: Era::default() });
        }
        let message = "the nonce of a signed upload is 1 to 64 printable ascii characters";
        Err(Error::new(crate::domain::error::ErrorKind::SignatureInvalid, message)
            .with_field("nonce"))
    }

    /// Sets the era in which the URL was signed. If the organization was erased later, the store
    /// refuses the upload.
    #[must_use]
    pub fn signed_in(mut self, era: Era) -> Self {
        self.era = era;
        self
    }

    /// Returns the time at which the store forgets the permit. Later, no upload with it succeeds.
    pub fn kept_until(&self) -> Timestamp {
        self.expires_at.plus(Self::GRACE)
    }
}

/// A secret that signs URLs, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SigningSecretInfo {
    /// Secret name, which each signed URL contains.
    pub kid: String,
    /// `true` if the secret is in the configuration, `false` if it is in the records database.
    pub is_configured: bool,
    /// `true` for the secret that signs new URLs.
    pub signs: bool,
    /// Creation time. `None` for a configured secret.
    pub created_at: Option<Timestamp>,
    /// Expiry time for the secret's URLs. `None` if no expiry is set.
    pub valid_until: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::error::ErrorKind;

    fn id() -> FileId {
        "01JD0000000000000000000000".parse().unwrap()
    }

    fn key() -> KeyId {
        "01JD0000000000000000000001".parse().unwrap()
    }

    #[test]
    fn a_signed_url_is_not_printed_with_its_signature() {
        let secret = SigningSecret::new("k", [1; 32]).unwrap();
        let target = ("/path".to_owned(), String::new());
        let url = SignedUrl::new(&secret, SignedMethod::Get, &target, Timestamp::from_millis(0));
        let shown = format!("{url:?}");
        assert!(shown.contains("/path") && !shown.contains("sig="), "{shown}");
    }

    #[test]
    fn a_url_names_what_is_not_the_default() {
        let size = VariantSize::try_from(200).unwrap();
        for (request, path, query) in [
            (SignFile::content(), "", ""),
            (SignFile::content().disposition(Disposition::Inline), "", "disposition=inline"),
            (SignFile::content().private(), "", "cache=private"),
            (SignFile::content().streamed().private(), "", "redirect=false&cache=private"),
            (SignFile::variant(size, Fit::Cover), "/200/200", ""),
            (
                SignFile::variant(size, Fit::Inside).private(),
                "/200/200",
                "fit=inside&cache=private",
            ),
            (SignFile::variant(size, Fit::Inside), "/200/200", "fit=inside"),
            (SignFile::variant(size, Fit::Cover).animated(), "/200/200", "animated=true"),
            (
                SignFile::variant(size, Fit::Inside).animated(),
                "/200/200",
                "fit=inside&animated=true",
            ),
        ] {
            let expected = (format!("/api/v1/files/{}{path}", id()), query.to_owned());
            assert_eq!(request.target(id()).unwrap(), expected);
        }

        let odd = SignFile::variant(size, Fit::Cover).disposition(Disposition::Inline);
        assert_eq!(odd.target(id()).unwrap_err().details().field.as_deref(), Some("disposition"));
        let odd = SignFile::variant(size, Fit::Cover).streamed();
        assert_eq!(odd.target(id()).unwrap_err().details().field.as_deref(), Some("redirect"));
        let odd = SignFile::content().animated();
        assert_eq!(odd.target(id()).unwrap_err().details().field.as_deref(), Some("animated"));
    }

    #[test]
    fn an_upload_names_all_that_the_signer_fixed() {
        let plain = SignUpload::new("42".parse().unwrap(), "docs".parse().unwrap());
        let era = Era::from_number(5);
        let (path, query) = plain.target("n", era).unwrap();
        assert_eq!(path, "/api/v1/files/upload");
        assert_eq!(query, "organization_id=42&sub_system=docs&nonce=n&era=5");

        let full = plain.clone().max_size(7).mime_type("image/png").temp().on_behalf_of(key());
        let (_, query) = full.target("n", era).unwrap();
        assert_eq!(
            query,
            "organization_id=42&sub_system=docs&max_size=7&mime_type=image%2Fpng&upload_temp=true&nonce=n&era=5\
             &key=01JD0000000000000000000001"
        );
        assert!(plain.mime_type("no type").target("n", era).is_err());
    }

    #[test]
    fn a_url_names_the_key_that_asked_for_it() {
        let size = VariantSize::try_from(200).unwrap();
        for request in [SignFile::content(), SignFile::variant(size, Fit::Cover)] {
            let (_, query) = request.on_behalf_of(key()).target(id()).unwrap();
            assert_eq!(query, "key=01JD0000000000000000000001");
        }
    }

    #[test]
    fn a_life_is_a_second_to_seven_days() {
        for secs in [1, 604_800] {
            assert!(life(Some(Duration::from_secs(secs))).is_ok());
        }
        for bad in [Duration::ZERO, Duration::from_secs(604_801)] {
            let error = life(Some(bad)).unwrap_err();
            assert_eq!(
                (error.kind(), error.details().limit),
                (ErrorKind::InvalidField, Some(604_800))
            );
        }
    }

    #[cfg(feature = "api")]
    #[test]
    fn paths_are_those_of_the_api() {
        assert_eq!(FILES_PATH, format!("{}/files", crate::api::PREFIX));
    }
}
