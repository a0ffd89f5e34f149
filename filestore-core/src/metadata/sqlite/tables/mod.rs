//! Records, listings, bindings, keys, secrets and remembered replies. Each group of methods is next to its
//! SQL.

pub(super) mod files;
pub(super) mod file_writes;
pub(super) mod usage;
pub(super) mod organizations;
pub(super) mod row;
pub(super) mod listing;
pub(super) mod terms;
pub(super) mod idempotency;
pub(super) mod resumables;
pub(super) mod bindings;
pub(super) mod keys;
pub(super) mod signing;
pub(super) mod holdings;
pub(super) mod erasures;
pub(super) mod events;
pub(super) mod damage;
#[cfg(feature = "postgres")]
pub(super) mod copying;
