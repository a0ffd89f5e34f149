//! Signed URLs: what they can be asked for, and the path and query that they have.

use std::fmt;
use std::time::Duration;

use super::clock::Timestamp;
use super::disposition::Disposition;
use super::error::{Error, Result};
use super::id::{FileId, OrganizationId, SubSystem};
use super::media;
use super::signature::{MAX_LIFE, SignedMethod, SigningSecret, push_parameter};
use super::variant::{Fit, Motion, VariantSize};

/// The path of all files, below the public prefix.
pub const FILES_PATH: &str = "/api/v1/files";

/// The life of a URL, unless said otherwise.
const DEFAULT_LIFE: Duration = Duration::from_hours(1);

/// A signed URL, from the path on.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignedUrl {
    /// Path and query, below the public prefix.
    pub path_and_query: String,
    /// The instant from which the URL is refused.
    pub expires_at: Timestamp,
}

/// Hides the query: its signature lets whoever has it in.
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

/// The representation of a file that a URL is signed for: its content, unless a variant is chosen.
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
    /// The variant; `None` for the content.
    pub variant: Option<(VariantSize, Fit)>,
    /// The part of an animation that the variant shows.
    pub motion: Motion,
    /// The use a browser makes of the content.
    pub disposition: Option<Disposition>,
    /// The life of the URL: an hour if `None`, seven days at most. Rounded up to the end of a window.
    pub expires_in: Option<Duration>,
}

impl SignFile {
    /// Asks for a URL of the file's content.
    pub fn content() -> Self {
        Self::default()
    }

    /// Asks for a URL of a variant.
    pub fn variant(size: VariantSize, fit: Fit) -> Self {
        Self { variant: Some((size, fit)), ..Self::default() }
    }

    /// Asks for all frames of an animation. Only a variant is animated.
    #[must_use]
    pub fn animated(mut self) -> Self {
        self.motion = Motion::Animated;
        self
    }

    /// Sets the use a browser makes of the content. A variant has no disposition.
    #[must_use]
    pub fn disposition(mut self, disposition: Disposition) -> Self {
        self.disposition = Some(disposition);
        self
    }

    /// Sets the life of the URL.
    #[must_use]
    pub fn expires_in(mut self, life: Duration) -> Self {
        self.expires_in = Some(life);
        self
    }

    pub(crate) fn life(&self) -> Result<Duration> {
        life(self.expires_in)
    }

    /// Returns path and query of the request for `id`. `InvalidField` for a disposition of a variant, and
    /// for animated content.
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
            return Ok((format!("{FILES_PATH}/{id}"), query));
        };

        if self.disposition.is_some() {
            let message = "a variant has no disposition: disposition goes without size";
            return Err(Error::invalid("disposition", message));
        }
        if fit == Fit::Inside {
            push_parameter(&mut query, "fit", "inside");
        }
        if self.motion == Motion::Animated {
            push_parameter(&mut query, "animated", "true");
        }
        let side = size.pixels();
        Ok((format!("{FILES_PATH}/{id}/{side}/{side}"), query))
    }
}

/// The one upload that a URL is signed for.
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
    /// The organization that the file will belong to.
    pub organization_id: OrganizationId,
    /// The part of the application that the file will belong to.
    pub sub_system: SubSystem,
    /// The most bytes of the file; the limit of the service if `None`.
    pub max_size: Option<u64>,
    /// The media type of the file; of the uploader's choice if `None`.
    pub mime_type: Option<String>,
    /// `true` for a TEMP file.
    pub temp: bool,
    /// The life of the URL: an hour if `None`, seven days at most. Rounded up to the end of a window.
    pub expires_in: Option<Duration>,
}

impl SignUpload {
    /// Asks for a URL to upload a file of any type and size.
    pub fn new(organization_id: OrganizationId, sub_system: SubSystem) -> Self {
        Self {
            organization_id,
            sub_system,
            max_size: None,
            mime_type: None,
            temp: false,
            expires_in: None,
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
        self.temp = true;
        self
    }

    /// Sets the life of the URL.
    #[must_use]
    pub fn expires_in(mut self, life: Duration) -> Self {
        self.expires_in = Some(life);
        self
    }

    pub(crate) fn life(&self) -> Result<Duration> {
        life(self.expires_in)
    }

    /// Returns path and query of the upload that `nonce` names. `InvalidField` for a media type that is
    /// none.
    pub(crate) fn target(&self, nonce: &str) -> Result<(String, String)> {
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
        Ok((format!("{FILES_PATH}/upload"), query))
    }
}

/// Checks the life of a URL: `InvalidField` unless it is a second to seven days.
fn life(wanted: Option<Duration>) -> Result<Duration> {
    let life = wanted.unwrap_or(DEFAULT_LIFE);
    if (Duration::from_secs(1)..=MAX_LIFE).contains(&life) {
        return Ok(life);
    }
    let most = MAX_LIFE.as_secs();
    let message = format!("expires_in_s is an integer from 1 to {most}");
    Err(Error::invalid("expires_in_s", message).with_limit(most))
}

/// The right to one upload, which a signed URL gives: spent by the commit of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadPermit {
    /// The name of the permit: no other URL has it.
    pub nonce: String,
    /// The end of the URL.
    pub expires_at: Timestamp,
}

impl UploadPermit {
    /// The longest time after the end of its URL that an upload may take, and that a spent permit is
    /// remembered for: an upload that began in time may end long after.
    pub const GRACE: Duration = Duration::from_hours(24);

    /// The most characters of a permit's name.
    pub const NONCE_CHARS: usize = 64;

    /// Names a permit. `SignatureInvalid` unless the name is 1 to 64 printable ASCII characters.
    pub fn new(nonce: impl Into<String>, expires_at: Timestamp) -> Result<Self> {
        let nonce = nonce.into();
        let fits = (1..=Self::NONCE_CHARS).contains(&nonce.len());
        if fits && nonce.bytes().all(|b| b.is_ascii_graphic()) {
            return Ok(Self { nonce, expires_at });
        }
        let message = "the nonce of a signed upload is 1 to 64 printable ascii characters";
        Err(Error::new(super::error::ErrorKind::SignatureInvalid, message).with_field("nonce"))
    }

    /// Returns the instant from which the permit is forgotten, and no upload with it is taken.
    pub fn kept_until(&self) -> Timestamp {
        self.expires_at.plus(Self::GRACE)
    }
}

/// A secret that signs URLs, without the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SigningSecretInfo {
    /// The name of the secret, which URLs carry.
    pub kid: String,
    /// `true` if the secret is in the configuration rather than in the data directory.
    pub is_configured: bool,
    /// `true` for the one secret that signs new URLs.
    pub signs: bool,
    /// The instant at which the secret was made; `None` for one of the configuration.
    pub created_at: Option<Timestamp>,
    /// The instant from which URLs of the secret are refused; `None` while none is set.
    pub valid_until: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::error::ErrorKind;

    fn id() -> FileId {
        "01JD0000000000000000000000".parse().unwrap()
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
            (SignFile::variant(size, Fit::Cover), "/200/200", ""),
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
        let odd = SignFile::content().animated();
        assert_eq!(odd.target(id()).unwrap_err().details().field.as_deref(), Some("animated"));
    }

    #[test]
    fn an_upload_names_all_that_the_signer_fixed() {
        let plain = SignUpload::new("42".parse().unwrap(), "docs".parse().unwrap());
        let (path, query) = plain.target("n").unwrap();
        assert_eq!(path, "/api/v1/files/upload");
        assert_eq!(query, "organization_id=42&sub_system=docs&nonce=n");

        let (_, query) =
            plain.clone().max_size(7).mime_type("image/png").temp().target("n").unwrap();
        assert_eq!(
            query,
            "organization_id=42&sub_system=docs&max_size=7&mime_type=image%2Fpng&upload_temp=true&nonce=n"
        );
        assert!(plain.mime_type("no type").target("n").is_err());
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
