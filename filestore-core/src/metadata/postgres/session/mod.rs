//! Connections, transactions, faults, the schema and upkeep.

pub(super) mod pool;
pub(super) mod sql;
pub(super) mod transaction;
pub(super) mod marks;
pub(super) mod fence;
pub(super) mod fates;
pub(super) mod writers;
pub(super) mod fault;
pub(super) mod options;
pub(super) mod tls;
pub(super) mod shares;
pub(super) mod schema;
pub(super) mod upkeep;
