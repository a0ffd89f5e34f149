//! The methods of [`Metadata`](crate::metadata::Metadata), one file for each of its groups:
//! each a read or a write of one connection.

mod files;
mod bindings;
mod keys;
mod purges;
mod syncs;
mod intents;
mod signatures;
mod holds;
mod servers;
mod upkeep;

use crate::domain::clock::Timestamp;
use crate::metadata::Lease;

/// A lease that outlives its call.
struct OwnedLease {
    owner: String,
    now: Timestamp,
    until: Timestamp,
}

impl OwnedLease {
    fn of(lease: Lease<'_>) -> Self {
        Self { owner: lease.owner.to_owned(), now: lease.now, until: lease.until }
    }

    fn lease(&self) -> Lease<'_> {
        Lease { owner: &self.owner, now: self.now, until: self.until }
    }
}
