//! The shares of organizations in the connections.
//!
//! # Purpose
//! Uploads of one organization with a quota wait for each other at the server, and changes of one file as
//! well: each on a connection. So an organization has a part of the writes at a time, and waits for that
//! part here, where its waiting costs the others nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::domain::error::Result;
use crate::domain::id::OrganizationId;

use super::fault;

/// The part of an organization: one of so many of the writes.
const PART: usize = 2;

/// The shares of organizations that write at present.
pub(super) struct Shares {
    /// The most writes of one organization at a time.
    size: usize,
    /// The longest wait for a place.
    patience: Duration,
    in_use: Mutex<HashMap<OrganizationId, Share>>,
}

/// The share of one organization.
struct Share {
    places: Arc<Semaphore>,
    /// The number of those that have a place or wait for one.
    users: usize,
}

/// A place among the writes of an organization.
pub(super) struct Place {
    shares: Arc<Shares>,
    organization: OrganizationId,
    /// `None` while it is waited for.
    permit: Option<OwnedSemaphorePermit>,
}

impl Shares {
    pub(super) fn of(writes: usize, patience: Duration) -> Self {
        Self { size: writes.div_ceil(PART), patience, in_use: Mutex::default() }
    }

    /// Waits for a place of `organization`; `Busy` if that takes too long.
    pub(super) async fn enter(self: &Arc<Self>, organization: &OrganizationId) -> Result<Place> {
        let places = self.join(organization);
        let (shares, organization) = (Arc::clone(self), organization.clone());
        let mut place = Place { shares, organization, permit: None };

        let entered = timeout(self.patience, places.acquire_owned()).await;
        place.permit = Some(entered.map_err(|_| fault::busy())?.expect("never closed"));
        Ok(place)
    }

    /// Counts a user of a share; returns its places.
    fn join(&self, organization: &OrganizationId) -> Arc<Semaphore> {
        let mut in_use = self.in_use.lock();
        let share = in_use
            .entry(organization.clone())
            .or_insert_with(|| Share { places: Arc::new(Semaphore::new(self.size)), users: 0 });
        share.users += 1;
        Arc::clone(&share.places)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.permit = None;
        let mut in_use = self.shares.in_use.lock();
        let Some(share) = in_use.get_mut(&self.organization) else { return };
        share.users -= 1;
        if share.users == 0 {
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

    #[test]
    fn shares_that_are_left_at_once_are_forgotten() {
        let shares = Arc::new(Shares::of(4, Duration::from_mins(1)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for _ in 0..2000 {
            let entered = async {
                let acme = "acme".parse().unwrap();
                [shares.enter(&acme).await.unwrap(), shares.enter(&acme).await.unwrap()]
            };
            let places = runtime.block_on(entered);
            let start = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                for place in places {
                    scope.spawn(|| {
                        start.wait();
                        drop(place);
                    });
                }
            });
            assert!(shares.in_use.lock().is_empty());
        }
    }
}
