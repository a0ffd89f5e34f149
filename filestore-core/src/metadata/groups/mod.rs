//! The database operations of every engine, in groups.
//!
//! A group has one name for its trait, for the file with its SQL in each engine, and for its tests in
//! `contract`. This module contains no engine and no SQL.

mod files;
mod listing;
mod organizations;
mod idempotency;
mod resumables;
mod bindings;
mod keys;
mod signing;
mod purges;
mod dropped;
mod receipts;
mod explaining;
mod syncs;
mod intents;
mod holdings;
mod leases;
mod backlog;
mod holds;
mod erasures;
mod event_log;
#[cfg_attr(
    not(any(feature = "webhooks", feature = "internals")),
    expect(dead_code, reason = "a build without webhooks sends nothing")
)]
mod webhooks;
mod upkeep;

pub use backlog::Backlog;
pub use bindings::Bindings;
pub use dropped::Dropped;
pub use erasures::Erasures;
pub use event_log::EventLog;
pub use explaining::Explaining;
pub use files::Files;
pub use holdings::Holdings;
pub use holds::Holds;
pub use idempotency::Idempotency;
pub use intents::Intents;
pub use keys::Keys;
pub use leases::Leases;
pub use listing::Listing;
pub use organizations::Organizations;
pub use purges::Purges;
pub use receipts::Receipts;
pub use resumables::Resumables;
pub use signing::Signing;
pub use syncs::Syncs;
pub use upkeep::Upkeep;
pub use webhooks::Webhooks;
