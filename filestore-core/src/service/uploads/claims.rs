//! The claims of an upload. They are taken before the first byte if the organization is known by then.
//!
//! # The order
//! A new upload takes its claims in this order. The first refusal ends the upload:
//!
//! | | claim | refused with |
//! |---|---|---|
//! | 1 | the idempotency key | `IdempotencyInProgress` |
//! | 2 | the permit of a signed URL | `SignatureInvalid`, `SignatureUsed` |
//! | 3 | room in the organization's quota | `QuotaExceeded` |
//!
//! If a reply is stored under the key, the upload is a retry. It stores no bytes, so it takes neither permit
//! nor room, and its commit returns the stored reply.
//!
//! A replacement looks up the file (`NotFound`), checks the conditions (`PreconditionFailed`), and takes room
//! for the additional bytes of the file.

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
    /// The idempotency key, with which you can safely send the upload twice.
    pub idempotency: Option<IdempotencyKey>,
    /// The permit of a signed URL. The upload uses it up.
    pub permit: Option<UploadPermit>,
    /// The announced number of bytes, for which room is reserved. 0 if unknown.
    pub bytes: u64,
    /// The maximum file size, in bytes, if it is less than
    /// [`Limits::max_file_size`](crate::Limits::max_file_size).
    pub max_bytes: Option<u64>,
}

impl UploadClaims {
    /// Claims an upload to `organization_id`, without a key, a permit or an announced length.
    pub fn new(organization_id: OrganizationId) -> Self {
        Self { organization_id, idempotency: None, permit: None, bytes: 0, max_bytes: None }
    }

    /// Sets the idempotency key, with which you can safely send the upload twice.
    #[must_use]
    pub fn with_idempotency(mut self, key: IdempotencyKey) -> Self {
        self.idempotency = Some(key);
        self
    }

    /// Sets the permit of a signed URL. The upload uses it up.
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

    /// Sets the maximum file size, in bytes, if it is less than that of the store.
    #[must_use]
    pub fn with_max_bytes(mut self, most: impl Into<Option<u64>>) -> Self {
        self.max_bytes = most.into();
        self
    }

    /// Takes the claims of an upload after `received` bytes have arrived. `None` for one whose room is
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

/// A replacement's claims: the file, and the conditions for replacing its bytes.
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
    /// The conditions for replacing the bytes. They are checked before the first byte and in the commit.
    pub conditions: Preconditions,
    /// The announced number of bytes. 0 if unknown.
    pub bytes: u64,
}

impl ReplacementClaims {
    /// Claims new bytes for the file `file_id`, without conditions and without an announced length.
    pub fn new(file_id: FileId) -> Self {
        Self { file_id, conditions: Preconditions::default(), bytes: 0 }
    }

    /// Sets the conditions for replacing the bytes.
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

    /// Takes the claims of a replacement after `received` bytes have arrived, or with `None` if the room is
    /// reserved elsewhere. Also returns the organization of the file.
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

/// Claims in use. A drop lets other uploads in, and frees the room.
#[derive(Debug, Default)]
pub(super) struct ClaimGuards {
    pub(super) idempotency: Option<IdempotencyGuard>,
    _permit: Option<PermitGuard>,
    /// The reserved room. `None` without a quota.
    pub(super) quota: Option<QuotaReservation>,
}
