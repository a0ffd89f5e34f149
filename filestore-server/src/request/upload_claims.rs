//! The claims of an upload from its headers, fields and signed URL. The core accepts them, see
//! [`UploadSession`](filestore_core::uploads::UploadSession).

use filestore_core::uploads::{IdempotencyKey, UploadClaims};
use filestore_core::{Error, OrganizationId, Result};

use super::call::Call;

/// The assumed overhead of one file in a form, when space is reserved by the announced length. If the
/// overhead is too high, the reservation grows as the bytes arrive.
const OVERHEAD_BYTES: u64 = 16 << 10;

impl Call {
    /// Returns the claims of a form with at most `items` files for `organization`. `Forbidden` for an
    /// organization outside the caller's scope, and `InvalidField` for an invalid idempotency key.
    pub(crate) fn upload_claims(
        &self,
        organization: &OrganizationId,
        items: usize,
    ) -> Result<UploadClaims> {
        self.caller.scope.check(organization)?;

        let mut claims = UploadClaims::new(organization.clone());
        claims.bytes = self.announced_bytes(items);
        claims.idempotency = self.idempotency_key()?;
        if let Some(terms) = self.upload_terms() {
            claims.permit = Some(terms.permit.clone());
            claims.max_bytes = terms.max_size;
        }
        Ok(claims)
    }

    /// Returns the minimum number of bytes that the request announces for at most `items` files.
    pub(crate) fn announced_bytes(&self, items: usize) -> u64 {
        self.content_length().unwrap_or(0).saturating_sub(OVERHEAD_BYTES * items as u64)
    }

    /// Reads the idempotency key of the request, scoped to its caller.
    pub(crate) fn idempotency_key(&self) -> Result<Option<IdempotencyKey>> {
        let mut values = self.headers.get_all("idempotency-key").iter();
        let Some(value) = values.next() else { return Ok(None) };

        if values.next().is_some() {
            return Err(bad_key());
        }
        let key = value.to_str().map_err(|_| bad_key())?;
        IdempotencyKey::new(self.caller.idempotency_scope(), key).map(Some)
    }
}

fn bad_key() -> Error {
    Error::invalid("Idempotency-Key", "an idempotency key is one line of printable ascii")
}
