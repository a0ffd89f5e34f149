//! The methods of [`Metadata`](crate::metadata::Metadata), one file for each of its groups:
//! each a read on a connection of the pool or a job of the writer.

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
