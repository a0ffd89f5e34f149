//! The shares of organizations in the connections.
//!
//! # Purpose
//! Uploads of one organization with a quota wait for each other at the server, and so do changes of one file.
//! Each of them would occupy a connection. An organization can therefore use only a part of the writes at a
//! time. It waits for its part in this process, where waiting does not affect other organizations.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::domain::error::Result;
use crate::domain::id::OrganizationId;

use super::fault;

/// The share of one organization: one part in this many of all writes.
const PART: usize = 2;

/// The shares of organizations that are writing now.
pub(super) struct Shares {
    /// The maximum number of concurrent writes of one organization.
    size: usize,
    /// The maximum wait for a place.
    patience: Duration,
    in_use: Mutex<HashMap<OrganizationId, Share>>,
}

/// The share of one organization.
struct Share {
    places: Arc<Semaphore>,
    /// The number of calls that have a place or wait for one.
    users: usize,
}

/// A place among the writes of an organization.
pub(super) struct Place {
    shares: Arc<Shares>,
    organization: OrganizationId,
    /// `None` while the call waits for its place.
    permit: Option<OwnedSemaphorePermit>,
}

impl Shares {
    pub(in crate::metadata::postgres) fn of(writes: usize, patience: Duration) -> Self {
        Self { size: writes.div_ceil(PART), patience, in_use: Mutex::default() }
    }

    /// Waits for a place of `organization`. `Busy` if this takes too long.
    pub(in crate::metadata::postgres) async fn enter(
        self: &Arc<Self>,
        organization: &OrganizationId,
    ) -> Result<Place> {
        let places = self.join(organization);
        let (shares, organization) = (Arc::clone(self), organization.clone());
        let mut place = Place { shares, organization, permit: None };

        let entered = timeout(self.patience, places.acquire_owned()).await;
        place.permit = Some(entered.map_err(|_| fault::busy())?.expect("never closed"));
        Ok(place)
    }

    /// Counts one more user of a share. Returns its places.
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
