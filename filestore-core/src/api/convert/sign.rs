//! Signed URLs.

use std::time::Duration;

use crate::api;
use crate::domain::access::signed_url::{SignFile, SignUpload, SigningSecretInfo};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::variant::{Fit, Motion, VariantSize};

impl TryFrom<&api::SignRequest> for SignFile {
    type Error = Error;

    /// Reads the request. `InvalidField` for an unknown size, or for a fit or motion without a
    /// size.
    fn try_from(request: &api::SignRequest) -> Result<Self> {
        let mut sign = Self::content();
        if let Some(side) = request.size {
            let fit = request.fit.map(Fit::from).unwrap_or_default();
            sign.variant = Some((VariantSize::try_from(side)?, fit));
        } else if request.fit.is_some() {
            return Err(Error::invalid("fit", "only a variant has a fit: fit goes with size"));
        }

        sign.motion = Motion::from(request.animated.unwrap_or(false));
        if sign.variant.is_none() && request.animated.is_some() {
            let message = "only a variant is animated: animated goes with size";
            return Err(Error::invalid("animated", message));
        }

        sign.disposition = request.disposition.map(Into::into);
        sign.private = request.cache == Some(api::UrlCache::Private);
        sign.streamed = request.redirect == Some(false);
        if sign.variant.is_some() && request.redirect.is_some() {
            let message = "a variant is never a redirect: redirect goes without size";
            return Err(Error::invalid("redirect", message));
        }
        sign.expires_in = request.expires_in_s.map(Duration::from_secs);
        Ok(sign)
    }
}

impl TryFrom<&api::SignUploadRequest> for SignUpload {
    type Error = Error;

    fn try_from(request: &api::SignUploadRequest) -> Result<Self> {
        for (field, text) in
            [("organization_id", &request.organization_id), ("sub_system", &request.sub_system)]
        {
            if text.is_empty() {
                let message = format!("a required key is missing: {field}");
                return Err(Error::new(ErrorKind::MissingField, message).with_field(field));
            }
        }

        let mut sign = Self::new(request.organization_id.parse()?, request.sub_system.parse()?);
        sign.max_size = request.max_size;
        sign.mime_type.clone_from(&request.mime_type);
        sign.temp = request.upload_temp.unwrap_or(false);
        sign.resumable = request.resumable.unwrap_or(false);
        sign.expires_in = request.expires_in_s.map(Duration::from_secs);
        Ok(sign)
    }
}

impl From<SigningSecretInfo> for api::SigningSecretReply {
    fn from(info: SigningSecretInfo) -> Self {
        Self {
            kid: info.kid,
            configured: info.is_configured,
            signs: info.signs,
            created_at: info.created_at.map(|at| at.to_string()),
            valid_until: info.valid_until.map(|at| at.to_string()),
        }
    }
}
