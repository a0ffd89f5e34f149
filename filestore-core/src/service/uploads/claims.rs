//! The claims of an upload, taken before its first byte if the organization is known by then.
//!
//! # The order
//! A new upload takes its claims in this order, and the first refusal ends it:
//!
//! | | claim | refused with |
//! |---|---|---|
//! | 1 | the idempotency key | `IdempotencyInProgress` |
//! | 2 | the permit of a signed URL | `SignatureUsed`, `SignatureInvalid` |
//! | 3 | room in the organization's quota | `QuotaExceeded` |
//!
//! If a reply is stored under the key, the upload is a repeat. It stores nothing, so it takes neither permit nor
//! room, and its commit returns that reply.
//!
//! A replacement looks the file up (`NotFound`), checks the conditions (`PreconditionFailed`), and takes room
//! for the bytes that the file gets in addition.

use super::idempotency::{Answer, IdempotencyGuard, IdempotencyKey};
use super::permits::PermitGuard;
use super::quota::QuotaReservation;
use crate::domain::access::scope::Scope;
use crate::domain::access::signed_url::UploadPermit;
use crate::domain::error::Result;
use crate::domain::id::{FileId, OrganizationId};
use crate::service::FileStore;
use crate::service::request::Preconditions;

/// The claims of a new upload: organization, idempotency key, permit, announced length.
///
/// Claims are plain values. You can store them, and claim them again after a restart.
///
/// ```
/// use filestore_core::uploads::{IdempotencyKey, UploadClaims};
///
/// # fn main() -> filestore_core::Result<()> {
/// let claims = UploadClaims::new("42".parse()?)
///     .with_idempotency(IdempotencyKey::new("", "order-17")?)
///     .with_bytes(2_000_000);
/// assert_eq!(claims.permit, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UploadClaims {
    /// The organization that the files will belong to.
    pub organization_id: OrganizationId,
    /// The idempotency key, which makes the upload safe to send twice.
    pub idempotency: Option<IdempotencyKey>,
    /// The permit of a signed URL, which the upload spends.
    pub permit: Option<UploadPermit>,
    /// The announced number of bytes, for which room is reserved; 0 if it is not known.
    pub bytes: u64,
    /// The most bytes of a file, if these are fewer than [`Limits::max_file_size`](crate::Limits::max_file_size).
    pub max_bytes: Option<u64>,
}

impl UploadClaims {
    /// Claims an upload to `organization_id`, without a key, a permit or an announced length.
    pub fn new(organization_id: OrganizationId) -> Self {
        Self { organization_id, idempotency: None, permit: None, bytes: 0, max_bytes: None }
    }

    /// Makes the upload safe to send twice.
    #[must_use]
    pub fn with_idempotency(mut self, key: IdempotencyKey) -> Self {
        self.idempotency = Some(key);
        self
    }

    /// Lets the upload spend the permit of a signed URL.
    #[must_use]
    pub fn with_permit(mut self, permit: UploadPermit) -> Self {
        self.permit = Some(permit);
        self
    }

    /// Announces the number of bytes.
    #[must_use]
    pub fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Takes the claims of an upload of which `received` bytes have arrived already. `None` for one whose room is
    /// reserved elsewhere.
    pub(super) async fn take(
        &self,
        store: &FileStore,
        received: Option<u64>,
    ) -> Result<ClaimGuards> {
        let (inner, organization) = (&store.inner, &self.organization_id);
        let mut idempotency = None;
        if let Some(key) = &self.idempotency {
            let (guard, answer) = IdempotencyGuard::claim(inner, organization, key).await?;
            idempotency = Some(guard);
            if answer == Answer::Stored {
                return Ok(ClaimGuards { idempotency, ..ClaimGuards::default() });
            }
        }

        let permit = match &self.permit {
            Some(permit) => Some(PermitGuard::claim(inner, organization, permit).await?),
            None => None,
        };
        let quota = match received {
            Some(received) => {
                let bytes = self.bytes.max(received);
                QuotaReservation::claim(store, organization, bytes, 0).await?
            }
            None => None,
        };
        Ok(ClaimGuards { idempotency, _permit: permit, quota })
    }
}

/// The claims of a replacement: the file, and the conditions on which its bytes are replaced.
///
/// ```
/// use filestore_core::uploads::ReplacementClaims;
/// use filestore_core::{FileId, IfMatch, Sha256};
///
/// # fn claims(id: FileId, seen: Sha256) -> ReplacementClaims {
/// ReplacementClaims::new(id).with_conditions(IfMatch::OneOf(vec![seen])).with_bytes(2_000_000)
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplacementClaims {
    /// The file that gets new bytes.
    pub file_id: FileId,
    /// The conditions on which it gets them. They are checked before the first byte and in the commit.
    pub conditions: Preconditions,
    /// The announced number of bytes; 0 if it is not known.
    pub bytes: u64,
}

impl ReplacementClaims {
    /// Claims new bytes for the file `file_id`, without conditions or an announced length.
    pub fn new(file_id: FileId) -> Self {
        Self { file_id, conditions: Preconditions::default(), bytes: 0 }
    }

    /// Sets the conditions on which the bytes are replaced.
    #[must_use]
    pub fn with_conditions(mut self, conditions: impl Into<Preconditions>) -> Self {
        self.conditions = conditions.into();
        self
    }

    /// Announces the number of bytes.
    #[must_use]
    pub fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Takes the claims of a replacement of which `received` bytes have arrived already; `None` for one whose room
    /// is reserved elsewhere. Returns the organization of the file as well.
    pub(super) async fn take(
        &self,
        store: &FileStore,
        scope: &Scope,
        received: Option<u64>,
    ) -> Result<(OrganizationId, ClaimGuards)> {
        let record = store.scoped(scope).check_change(self.file_id, &self.conditions).await?;
        let organization = record.organization_id.clone();

        let quota = match received {
            Some(received) => {
                let (bytes, freed) = (self.bytes.max(received), record.blob.size_bytes);
                QuotaReservation::claim(store, &organization, bytes, freed).await?
            }
            None => None,
        };
        Ok((organization, ClaimGuards { quota, ..ClaimGuards::default() }))
    }
}

/// Claims that are held. Dropping them lets other uploads in, and gives the room back.
#[derive(Debug, Default)]
pub(super) struct ClaimGuards {
    pub(super) idempotency: Option<IdempotencyGuard>,
    _permit: Option<PermitGuard>,
    /// The reserved room; `None` without a quota.
    pub(super) quota: Option<QuotaReservation>,
}
