//! Uploads with a signed URL.
//!
//! # Purpose
//! A page without a key creates an upload with a signed URL, and continues it with the address of the upload alone.
//! The signed URL fixes the organization, the limits and the time. It is good for one file, so it has at most one
//! unfinished upload: a second creation with the same terms finds the first upload, and a creation with other terms
//! replaces it.
//!
//! # Rights
//! The secret and the key of the signed URL are checked again at each request and in the commit. The commit uses the
//! permit up. The signed URL must be valid at the creation only: the upload can continue for
//! [`UploadPermit::GRACE`] after the URL has expired.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ResumableUploads;
use super::request::{NewResumable, ResumableTarget};
use super::terms;
use crate::domain::access::scope::Scope;
use crate::domain::access::signature::SignedMethod;
use crate::domain::access::signed_url::{UploadPermit, VerifiedUrl};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::resumable::UploadAddress;
use crate::domain::id::{KeyId, OrganizationId};
use crate::domain::report::erasure::{Era, erased_since_signed};
use crate::domain::time::clock::Timestamp;
use crate::service::access::secrets::Recency;
use crate::service::access::signing::permit_spent;

/// The right of a signed URL to create and continue one upload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResumablePermit {
    /// The permit of the URL. The commit of the file uses it up.
    pub permit: UploadPermit,
    /// Name of the secret that signed the URL.
    pub kid: String,
    /// API key that requested the URL. `None` for a URL without a key.
    pub key: Option<KeyId>,
    /// Maximum file size, in bytes. `None` means the limit of the store.
    pub max_bytes: Option<u64>,
}

impl ResumablePermit {
    /// Combines a permit with the signed URL that contains it.
    pub fn new(permit: UploadPermit, url: &VerifiedUrl) -> Self {
        Self { permit, kid: url.kid.clone(), key: url.key, max_bytes: None }
    }

    /// Sets the maximum file size, in bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, max_bytes: Option<u64>) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Returns the idempotency key of the upload in the database. The commit stores no reply under it.
    pub(super) fn idempotency(&self) -> String {
        format!("signed:{}\n", self.permit.nonce)
    }

    /// Refuses a length over the limit of the URL.
    pub(super) fn check_length(&self, length: u64) -> Result<()> {
        match self.max_bytes {
            Some(max) if length > max => {
                let message = format!("the signed URL allows a file of at most {max} bytes");
                Err(Error::new(ErrorKind::TooLarge, message)
                    .with_field("Upload-Length")
                    .with_limit(max))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the time at which an upload with this permit, or without one, expires at the latest.
pub(super) fn latest(permit: Option<&ResumablePermit>) -> Timestamp {
    permit.map_or(Timestamp::from_millis(i64::MAX), |permit| {
        permit.permit.expires_at.plus(UploadPermit::GRACE)
    })
}

/// A permit as the terms of an upload store it.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredPermit {
    nonce: String,
    expires_at: i64,
    era: i64,
    kid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
}

impl StoredPermit {
    pub(super) fn of(permit: &ResumablePermit) -> Self {
        Self {
            nonce: permit.permit.nonce.clone(),
            expires_at: permit.permit.expires_at.as_millis(),
            era: permit.permit.era.number(),
            kid: permit.kid.clone(),
            key: permit.key.map(|key| key.to_string()),
            max_bytes: permit.max_bytes,
        }
    }

    pub(super) fn read(&self) -> Result<ResumablePermit> {
        let end = Timestamp::from_millis(self.expires_at);
        let permit = UploadPermit::new(self.nonce.clone(), end)?;
        Ok(ResumablePermit {
            permit: permit.signed_in(Era::from_number(self.era)),
            kid: self.kid.clone(),
            key: self.key.as_deref().map(str::parse).transpose()?,
            max_bytes: self.max_bytes,
        })
    }
}

impl ResumableUploads<'_> {
    /// Returns the organization of an upload to a caller who shows only its address. The address is a right of its
    /// own if a signed URL created the upload. Otherwise `NotFound`.
    pub async fn scope_of_address(self, address: &UploadAddress) -> Result<Scope> {
        if !self.has_token(address).await? {
            return Err(super::unknown());
        }
        let row = self.store.inner.metadata.upload(address.upload_id).await?;
        let row = row.filter(|row| terms::shown(&row.terms).permit.is_some());
        let row = row.ok_or_else(super::unknown)?;
        Ok(Scope::Organizations(vec![row.organization]))
    }

    /// Checks the permit of a creation. `Forbidden` for a replacement and for a part of another upload.
    /// `SignatureUsed` if the permit is used up. `SignatureInvalid` if the organization was erased since.
    pub(super) async fn check_new_permit(
        self,
        new: &NewResumable,
        organization: &OrganizationId,
    ) -> Result<()> {
        let Some(permit) = &new.permit else { return Ok(()) };
        if !matches!(new.target, ResumableTarget::New(_)) {
            let message = "a signed upload URL creates one new file";
            return Err(Error::new(ErrorKind::Forbidden, message));
        }
        if let Some(length) = new.length {
            permit.check_length(length)?;
        }

        let metadata = &self.store.inner.metadata;
        if metadata.is_erased_since(organization, permit.permit.era).await? {
            return Err(erased_since_signed());
        }
        if metadata.is_permit_used(&permit.permit.nonce).await? {
            return Err(permit_spent());
        }
        Ok(())
    }

    /// Checks that the secret and the key of a signed URL still grant the upload. `SignatureInvalid` or `Forbidden`
    /// otherwise.
    pub(super) async fn recheck_permit(
        self,
        permit: &ResumablePermit,
        organization: &OrganizationId,
    ) -> Result<()> {
        self.store.shared().refresh_secrets(Recency::Second).await?;
        let url = VerifiedUrl {
            expires_at: permit.permit.expires_at,
            kid: permit.kid.clone(),
            key: permit.key,
            organizations: Arc::new(Scope::All),
        };
        let scope = self.store.signing().verify_again(SignedMethod::Post, &url)?;
        scope.check(organization)
    }
}
