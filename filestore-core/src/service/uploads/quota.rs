//! Quotas and usage: the bytes and files that an organization stores, and its limits.
//!
//! The database decides in the commit. Before that, running uploads reserve their announced bytes, so that a
//! hundred uploads at once do not all use the same room.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::OrganizationId;
use crate::service::FileStore;

#[derive(Debug, Default)]
pub(in crate::service) struct Ledger(Mutex<HashMap<OrganizationId, u64>>);

impl Ledger {
    /// Reserves `bytes` more if they fit next to the stored and the reserved bytes.
    fn takes(&self, organization: &OrganizationId, stored: u64, bytes: u64, quota: u64) -> bool {
        let mut reserved = self.0.lock();
        let sum = reserved.get(organization).copied().unwrap_or(0);
        let fits = stored.saturating_add(sum).saturating_add(bytes) <= quota;
        if fits {
            *reserved.entry(organization.clone()).or_default() += bytes;
        }
        fits
    }
}

/// Room that a running upload has reserved. A drop frees the room.
#[derive(Debug)]
pub(super) struct QuotaReservation {
    ledger: Arc<Ledger>,
    organization: OrganizationId,
    bytes: u64,
    /// The size of the bytes that the upload replaces.
    freed: u64,
}

impl Drop for QuotaReservation {
    fn drop(&mut self) {
        let mut reserved = self.ledger.0.lock();
        if let Some(sum) = reserved.get_mut(&self.organization) {
            *sum -= self.bytes;
            if *sum == 0 {
                reserved.remove(&self.organization);
            }
        }
    }
}

impl QuotaReservation {
    /// Reserves room for an upload of about `bytes` (the announced length, 0 if unknown) that replaces
    /// `freed` stored bytes. `None` without a quota. `QuotaExceeded` if there is no room.
    pub(super) async fn claim(
        store: &FileStore,
        organization: &OrganizationId,
        bytes: u64,
        freed: u64,
    ) -> Result<Option<Self>> {
        if store.inner.config().quota_bytes.is_none() {
            return Ok(None);
        }
        let (ledger, organization) = (Arc::clone(&store.inner.uploads.quota), organization.clone());
        let mut reservation = Self { ledger, organization, bytes: 0, freed };
        reservation.take(store, bytes.saturating_sub(freed)).await?;
        Ok(Some(reservation))
    }

    /// Reserves room for an upload that had it before a restart, whether it fits or not. `None` without a quota.
    pub(super) fn hold(
        store: &FileStore,
        organization: &OrganizationId,
        bytes: u64,
    ) -> Option<Self> {
        store.inner.config().quota_bytes?;
        let (ledger, organization) = (Arc::clone(&store.inner.uploads.quota), organization.clone());
        ledger.takes(&organization, 0, bytes, u64::MAX);
        Some(Self { ledger, organization, bytes, freed: 0 })
    }

    /// Increases the reservation to `bytes`, for an upload that is longer than announced. `QuotaExceeded` if
    /// there is no room. The old reservation stays.
    pub(super) async fn grow_to(&mut self, store: &FileStore, bytes: u64) -> Result<()> {
        let more = bytes.saturating_sub(self.freed).saturating_sub(self.bytes);
        if more == 0 { Ok(()) } else { self.take(store, more).await }
    }

    /// Reserves `more` bytes. With 0, only refuses an organization that already exceeds its quota.
    async fn take(&mut self, store: &FileStore, more: u64) -> Result<()> {
        let Some(quota) = store.inner.config().quota_bytes else { return Ok(()) };
        let stored = store.inner.metadata.stored_bytes(&self.organization).await?;

        if !self.ledger.takes(&self.organization, stored, more, quota) {
            return Err(store.over_quota(&self.organization, quota).await);
        }
        self.bytes += more;
        Ok(())
    }
}

impl FileStore {
    /// Makes the error for an organization that would store more files than `quota`.
    pub(in crate::service) async fn over_file_quota(
        &self,
        organization: &OrganizationId,
        quota: u64,
    ) -> Error {
        self.over(organization, quota, "files").await
    }

    /// Makes the error for an organization that would store more bytes than `quota`.
    pub(in crate::service) async fn over_quota(
        &self,
        organization: &OrganizationId,
        quota: u64,
    ) -> Error {
        self.over(organization, quota, "bytes").await
    }

    /// Makes the error. If deleted files count (they do until the purge), it names the command that purges
    /// them.
    async fn over(&self, organization: &OrganizationId, quota: u64, unit: &str) -> Error {
        let mut message = format!("the organization's quota is {quota} {unit}");
        if self.inner.metadata.has_deleted(organization).await.unwrap_or(false) {
            let purge = format!("filestore purge run --now --org {organization}");
            message += ", and its deleted files count until they are purged: ";
            message += &purge;
        }
        Error::new(ErrorKind::QuotaExceeded, message)
            .with_field("organization_id")
            .with_limit(quota)
    }
}
