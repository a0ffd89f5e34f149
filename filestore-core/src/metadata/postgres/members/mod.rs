//! The servers that share a database: they join, recognize each other, and end the work of dead servers.

pub(super) mod member;
pub(super) mod servers;
pub(super) mod join;
pub(super) mod watch;
pub(super) mod leftovers;
pub(super) mod rate_uses;
