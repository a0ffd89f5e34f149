//! Creates URLs that let anyone read one object until they expire, without other rights.

use std::time::Duration;

use opendal::options::{ReadOptions, StatOptions};

#[cfg(feature = "azblob")]
use super::azure_sas::AzureSas;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::storage::cloud::Cloud;
use crate::storage::{PresignMethod, PresignRequest, Presigned};

const PRESIGNING: &str = "presigning a URL";

/// The maximum lifetime of a URL. S3 and GCS sign for at most seven days.
const MAX_LIFE: Duration = Duration::from_hours(7 * 24);

/// The signer of a provider's URLs.
pub(in crate::storage::cloud) enum Presigner {
    /// No signer. The bytes are streamed.
    Nobody,
    /// OpenDAL. With `overrides`, the URL can set the reply's type and disposition.
    #[cfg_attr(
        not(any(feature = "s3", feature = "gcs")),
        expect(dead_code, reason = "no such service is built")
    )]
    Service { overrides: bool },
    /// Our own signer, because OpenDAL's URLs for Azure let anyone write.
    #[cfg(feature = "azblob")]
    Azure(Box<AzureSas>),
}

impl Presigner {
    /// Returns true if URLs can set the reply's type and disposition.
    pub(in crate::storage::cloud) fn overrides(&self) -> bool {
        match self {
            Self::Nobody => false,
            Self::Service { overrides } => *overrides,
            #[cfg(feature = "azblob")]
            Self::Azure(_) => true,
        }
    }
}

impl Cloud {
    /// Returns a URL that grants reading this object until it expires, without other rights.
    ///
    /// `None` means that the bytes must be streamed, because the provider cannot create such a URL. The URL
    /// must be this narrow, need no further headers, and reply with `disposition`. The URL itself must set
    /// the disposition, because the stored disposition can differ. The call does not check that the object
    /// exists.
    pub async fn presign(
        &self,
        key: &BlobKey,
        request: &PresignRequest<'_>,
    ) -> Result<Option<Presigned>> {
        self.presign_path(key.as_str(), request).await
    }

    pub(in crate::storage::cloud) async fn presign_path(
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
                let now = crate::domain::time::clock::Clock::system().now();
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
