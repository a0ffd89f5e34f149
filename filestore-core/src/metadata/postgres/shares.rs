//! The shares of organizations in the connections.
//!
//! # Purpose
//! Uploads of one organization with a quota wait for each other at the server, and changes of one file as
//! well: each on a connection. So an organization writes on a part of the connections alone, and waits for
//! that part here, where its waiting costs the others nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::domain::error::Result;
use crate::domain::id::OrganizationId;

use super::fault;

/// The part of an organization: one of so many of the connections.
const PART: usize = 2;

/// The shares of organizations that write at present.
pub(super) struct Shares {
    /// The most writes of one organization at a time.
    size: usize,
    /// The longest wait for a place.
    patience: Duration,
    in_use: Mutex<HashMap<OrganizationId, Arc<Semaphore>>>,
}

/// A place among the writes of an organization.
pub(super) struct Place {
    shares: Arc<Shares>,
    organization: OrganizationId,
    share: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Shares {
    pub(super) fn of(connections: usize, patience: Duration) -> Self {
        Self { size: connections.div_ceil(PART), patience, in_use: Mutex::default() }
    }

    /// Waits for a place of `organization`; `Busy` if that takes too long.
    pub(super) async fn enter(self: &Arc<Self>, organization: &OrganizationId) -> Result<Place> {
        let share = {
            let mut in_use = self.in_use.lock();
            let share = in_use.entry(organization.clone());
            Arc::clone(share.or_insert_with(|| Arc::new(Semaphore::new(self.size))))
        };
        let (shares, organization) = (Arc::clone(self), organization.clone());
        let mut place = Place { shares, organization, share, permit: None };

        let entered = timeout(self.patience, Arc::clone(&place.share).acquire_owned()).await;
        place.permit = Some(entered.map_err(|_| fault::busy())?.expect("never closed"));
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.permit = None;
        let mut in_use = self.shares.in_use.lock();
        // Its own reference and that of the map: nobody else writes or waits.
        if Arc::strong_count(&self.share) == 2 {
            in_use.remove(&self.organization);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::error::ErrorKind;

    #[tokio::test]
    async fn a_full_share_keeps_no_other_organization_out_and_is_forgotten_when_it_is_empty() {
        let shares = Arc::new(Shares::of(4, Duration::from_millis(20)));
        let (acme, other) = ("acme".parse().unwrap(), "other".parse().unwrap());
        let first = shares.enter(&acme).await.unwrap();
        let second = shares.enter(&acme).await.unwrap();
        let refused = shares.enter(&acme).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Busy);

        drop(shares.enter(&other).await.unwrap());
        drop(first);
        let third = shares.enter(&acme).await.unwrap();
        drop((second, third));
        assert!(shares.in_use.lock().is_empty());
    }
}
