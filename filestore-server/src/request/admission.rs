//! What an upload holds from the moment its organization is known until its reply.

use filestore_core::domain::id::OrganizationId;
use filestore_core::service::{IdempotencyGuard, QuotaReservation};
use filestore_core::{Error, ErrorKind, Result};

use super::call::Call;

/// What a form is taken to be longer than its file when room is reserved by the announced length.
/// Taking too much off only means that the commit decides alone.
const OVERHEAD_BYTES: u64 = 16 << 10;

/// The right of a request to store bytes for an organization. Dropping it gives back what it holds.
#[derive(Debug)]
pub(crate) struct Admission {
    /// For the commit.
    pub(crate) idempotency: Option<IdempotencyGuard>,
    _quota: Option<QuotaReservation>,
}

impl Admission {
    /// Admits the request: `Forbidden` for a foreign organization, `IdempotencyInProgress` beside a
    /// twin, `QuotaExceeded` where there is no room.
    ///
    /// A request with an idempotency key reserves no room: the bytes it announces may be the very
    /// ones that are stored already, which only the commit finds out.
    pub(crate) async fn of(call: &Call, organization: &OrganizationId) -> Result<Self> {
        if !call.caller.scope.covers(organization) {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "the key may not act on this organization",
            )
            .with_field("organization_id"));
        }
        let store = call.store();
        let idempotency = idempotency_key(call)?
            .map(|key| store.begin_idempotent(organization, &call.caller.name, key))
            .transpose()?;
        let quota = match idempotency {
            Some(_) => None,
            None => store.reserve_quota(organization, announced_bytes(call)).await?,
        };
        Ok(Self { idempotency, _quota: quota })
    }
}

/// How many bytes of files the request announces at least.
pub(crate) fn announced_bytes(call: &Call) -> u64 {
    call.content_length().unwrap_or(0).saturating_sub(OVERHEAD_BYTES)
}

fn idempotency_key(call: &Call) -> Result<Option<&str>> {
    let mut values = call.headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let bad =
        || Error::invalid("Idempotency-Key", "an idempotency key is one line of printable ascii");
    if values.next().is_some() {
        return Err(bad());
    }
    value.to_str().map(Some).map_err(|_| bad())
}
