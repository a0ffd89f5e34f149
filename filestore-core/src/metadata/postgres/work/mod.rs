//! Background work: sync, purge, dropped blobs, holds and write intents. Each group of methods is next to its
//! SQL.

pub(super) mod destinations;
pub(super) mod syncs;
pub(super) mod purges;
pub(super) mod dropped;
pub(super) mod receipts;
pub(super) mod explaining;
pub(super) mod holds;
pub(super) mod snapshots;
pub(super) mod intents;
pub(super) mod backlog;
pub(super) mod leases;
pub(super) mod webhooks;
