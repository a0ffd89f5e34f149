//! Quotas and usage: how many bytes and files an organization may store, and does.
//!
//! What counts is decided in the commit, by the database. Before that, uploads that still run
//! reserve what they announced, so that a hundred of them at once do not all find the same room.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::FileStore;
use super::upload::Uploads;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::OrganizationId;
use crate::domain::scope::Scope;
use crate::domain::usage::Usage;

#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<HashMap<OrganizationId, u64>>);

/// Room that a running upload holds. Dropping it gives the room back.
#[derive(Debug)]
pub struct QuotaReservation {
    ledger: Arc<Ledger>,
    organization: OrganizationId,
    bytes: u64,
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

impl FileStore {
    /// Returns the files and bytes that `organization` stores, by location; of one without files
    /// nothing. `Forbidden` outside of `scope`.
    ///
    /// ```no_run
    /// # use filestore_core::{FileStore, Scope};
    /// # async fn example(store: &FileStore) -> filestore_core::Result<()> {
    /// let usage = store.usage(&"42".parse()?, &Scope::All).await?;
    /// println!("{} files, {} bytes", usage.total().files, usage.total().bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn usage(&self, organization: &OrganizationId, scope: &Scope) -> Result<Usage> {
        scope.check(organization)?;
        self.inner.metadata.usage(organization).await
    }
}

impl Uploads<'_> {
    /// Reserves room for an upload of about `bytes` (its announced length; 0 if unknown). `None`
    /// without a quota; `QuotaExceeded` if there is no room.
    pub async fn reserve_quota(
        self,
        organization: &OrganizationId,
        bytes: u64,
    ) -> Result<Option<QuotaReservation>> {
        let Some(quota) = self.store.inner.config().quota_bytes else { return Ok(None) };
        let stored = self.store.inner.metadata.stored_bytes(organization).await?;

        let ledger = &self.store.inner.quota;
        let mut reserved = ledger.0.lock();
        let sum = reserved.get(organization).copied().unwrap_or(0);
        if stored.saturating_add(sum).saturating_add(bytes) > quota {
            return Err(over_quota(quota));
        }

        *reserved.entry(organization.clone()).or_default() += bytes;
        drop(reserved);

        Ok(Some(QuotaReservation {
            ledger: Arc::clone(ledger),
            organization: organization.clone(),
            bytes,
        }))
    }
}

impl Uploads<'_> {
    /// Reserves room for `bytes` in all where less is reserved: for an upload of which more has arrived
    /// than it announced. `QuotaExceeded`, and what is reserved stays reserved, if there is no room.
    pub async fn extend_quota(self, reservation: &mut QuotaReservation, bytes: u64) -> Result<()> {
        let Some(quota) = self.store.inner.config().quota_bytes else { return Ok(()) };
        let more = bytes.saturating_sub(reservation.bytes);
        if more == 0 {
            return Ok(());
        }
        let stored = self.store.inner.metadata.stored_bytes(&reservation.organization).await?;

        let mut reserved = reservation.ledger.0.lock();
        let sum = reserved.entry(reservation.organization.clone()).or_default();
        if stored.saturating_add(*sum).saturating_add(more) > quota {
            return Err(over_quota(quota));
        }

        *sum += more;
        drop(reserved);
        reservation.bytes += more;
        Ok(())
    }
}

pub(super) fn over_file_quota(quota: u64) -> Error {
    Error::new(ErrorKind::QuotaExceeded, format!("the organization's quota is {quota} files"))
        .with_field("organization_id")
        .with_limit(quota)
}

pub(super) fn over_quota(quota: u64) -> Error {
    Error::new(ErrorKind::QuotaExceeded, format!("the organization's quota is {quota} bytes"))
        .with_field("organization_id")
        .with_limit(quota)
}
