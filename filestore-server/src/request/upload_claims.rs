//! The claims that an upload holds from the moment its organization is known until its reply.

use filestore_core::uploads::{IdempotencyGuard, PermitGuard, QuotaReservation};
use filestore_core::{Error, OrganizationId, Result};

use super::call::Call;

/// The assumed length of what a form says of one file, when room is reserved by the announced length. Too
/// high a value only means that the room grows as the bytes arrive.
const OVERHEAD_BYTES: u64 = 16 << 10;

/// The right of a request to store bytes for an organization. Dropping it releases its claims.
#[derive(Debug)]
pub(crate) struct UploadClaims {
    /// The claim on the request's idempotency key, for the commit.
    pub(crate) idempotency: Option<IdempotencyGuard>,
    /// The claim on the permit of a signed URL; none for a request that was carried out before, which is
    /// answered from memory.
    _permit: Option<PermitGuard>,
    /// The reserved room; none without a quota, and none for a request that was carried out before.
    pub(crate) quota: Option<QuotaReservation>,
}

impl UploadClaims {
    /// Admits the request: `Forbidden` for a foreign organization, `IdempotencyInProgress` while a
    /// request with the same key runs, `SignatureUsed` for a signed URL that is spent or in use,
    /// `QuotaExceeded` where there is no room.
    ///
    /// Room is reserved for the bytes that are announced, or for those that were `received` before the
    /// organization was known, if these are more. The form has at most `items` files.
    pub(crate) async fn of(
        call: &Call,
        organization: &OrganizationId,
        received: u64,
        items: usize,
    ) -> Result<Self> {
        call.caller.scope.check(organization)?;

        let store = call.store();
        let caller = call.caller.idempotency_scope();
        let idempotency = match idempotency_key(call)? {
            Some(key) => Some(store.uploads().begin_idempotent(organization, &caller, key).await?),
            None => None,
        };
        let is_repeated = match &idempotency {
            Some(guard) => store.uploads().is_repeated(guard).await?,
            None => false,
        };
        let permit = match call.upload_terms() {
            Some(terms) if !is_repeated => Some(store.signing().begin_upload(&terms.permit).await?),
            _ => None,
        };

        let quota = if is_repeated {
            None
        } else {
            let bytes = announced_bytes(call, items).max(received);
            store.uploads().reserve_quota(organization, bytes).await?
        };

        Ok(Self { idempotency, _permit: permit, quota })
    }
}

/// Returns the least number of bytes of at most `items` files that the request announces.
pub(crate) fn announced_bytes(call: &Call, items: usize) -> u64 {
    call.content_length().unwrap_or(0).saturating_sub(OVERHEAD_BYTES * items as u64)
}

fn idempotency_key(call: &Call) -> Result<Option<&str>> {
    let mut values = call.headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };

    if values.next().is_some() {
        return Err(bad_key());
    }
    value.to_str().map(Some).map_err(|_| bad_key())
}

fn bad_key() -> Error {
    Error::invalid("Idempotency-Key", "an idempotency key is one line of printable ascii")
}
