//! Connections, the writer thread, faults, the schema, snapshots and upkeep.

pub(super) mod pool;
pub(super) mod connection;
pub(super) mod writer;
pub(super) mod followers;
pub(super) mod fault;
pub(super) mod schema;
pub(super) mod open_error;
pub(super) mod store_id;
pub(super) mod upkeep;
pub(super) mod peek;
pub(super) mod reread;
pub(super) mod room;
pub(super) mod snapshot;
#[cfg(feature = "postgres")]
pub(super) mod snapshot_writer;
