//! URLs that let anyone read one object until they expire, and do nothing else.

use std::time::Duration;

use opendal::options::{ReadOptions, StatOptions};

use super::Cloud;
#[cfg(feature = "azblob")]
use super::azure_sas::AzureSas;
use crate::domain::error::Result;
use crate::domain::path::BlobKey;

const PRESIGNING: &str = "presigning a URL";

/// Longest life of a URL: S3 and GCS sign for seven days at most.
const MAX_LIFE: Duration = Duration::from_hours(7 * 24);

/// Method that a presigned URL is good for: signatures cover it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresignMethod {
    /// Reading the object.
    Get,
    /// Reading its headers.
    Head,
}

/// Properties that a presigned URL must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresignRequest<'a> {
    /// Method of the request that will be made.
    pub method: PresignMethod,
    /// Time until the URL expires.
    pub expires_in: Duration,
    /// Media type of the reply.
    pub content_type: &'a str,
    /// `Content-Disposition` that the reply must have; `None` if any will do.
    pub disposition: Option<&'a str>,
}

/// A presigned URL. Anyone who has the URL can read the object: keep it out of logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Presigned {
    /// URL for a request without further headers.
    pub url: String,
}

impl std::fmt::Debug for Presigned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presigned").field("url", &self.url.split('?').next()).finish()
    }
}

/// Maker of a provider's URLs.
pub(super) enum Presigner {
    /// No maker: the bytes are streamed.
    Nobody,
    /// OpenDAL. With `overrides` the reply's type and disposition can be chosen.
    #[cfg_attr(
        not(any(feature = "s3", feature = "gcs")),
        expect(dead_code, reason = "no such service is built")
    )]
    Service { overrides: bool },
    /// Our own, because OpenDAL's URLs for Azure let everyone write.
    #[cfg(feature = "azblob")]
    Azure(Box<AzureSas>),
}

impl Presigner {
    /// Tells whether URLs can choose the reply's type and disposition.
    pub(super) fn overrides(&self) -> bool {
        match self {
            Self::Nobody => false,
            Self::Service { overrides } => *overrides,
            #[cfg(feature = "azblob")]
            Self::Azure(_) => true,
        }
    }
}

impl Cloud {
    /// Makes a URL that grants reading this object until the URL expires, and nothing else.
    ///
    /// `None` means that the bytes have to be streamed: the provider has no URL that is as narrow,
    /// needs no further headers and replies with `disposition`. A disposition counts only if the
    /// URL itself can demand it: the one stored with the object may be another. The object's
    /// existence is not checked.
    pub async fn presign(
        &self,
        key: &BlobKey,
        request: &PresignRequest<'_>,
    ) -> Result<Option<Presigned>> {
        self.presign_path(key.as_str(), request).await
    }

    pub(super) async fn presign_path(
        &self,
        path: &str,
        request: &PresignRequest<'_>,
    ) -> Result<Option<Presigned>> {
        if request.disposition.is_some() && !self.inner.presigner.overrides() {
            return Ok(None);
        }

        match &self.inner.presigner {
            Presigner::Nobody => Ok(None),
            Presigner::Service { overrides } => {
                self.presign_by_service(path, request, *overrides).await
            }
            #[cfg(feature = "azblob")]
            Presigner::Azure(sas) => {
                let now = crate::domain::clock::Clock::system().now();
                Ok(Some(Presigned { url: sas.url(path, request, now) }))
            }
        }
    }

    async fn presign_by_service(
        &self,
        path: &str,
        request: &PresignRequest<'_>,
        overrides: bool,
    ) -> Result<Option<Presigned>> {
        let life = request.expires_in.min(MAX_LIFE);
        let override_content_type = overrides.then(|| request.content_type.to_owned());
        let override_content_disposition = request.disposition.map(str::to_owned);

        let signed = match request.method {
            PresignMethod::Head => {
                let options = StatOptions {
                    override_content_type,
                    override_content_disposition,
                    ..StatOptions::default()
                };
                self.inner.operator.presign_stat_options(path, life, options).await
            }
            PresignMethod::Get => {
                let options = ReadOptions {
                    override_content_type,
                    override_content_disposition,
                    ..ReadOptions::default()
                };
                self.inner.operator.presign_read_options(path, life, options).await
            }
        };
        let signed = signed.map_err(|error| self.fault(PRESIGNING, &error))?;

        // Headers (a customer's key, "requester pays") are signed too, and a redirect cannot carry
        // them.
        let is_bare = signed.header().keys().all(|name| name == http::header::HOST);
        Ok(is_bare.then(|| Presigned { url: signed.uri().to_string() }))
    }
}
