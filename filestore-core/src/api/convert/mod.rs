//! The only bridge between `domain` and `api`, with one file for each resource.
//!
//! Domain types have no serde, so that a renamed field cannot change the API by accident. The
//! conversions here give each value its name in the API.

mod vocabulary;
mod backup;
mod file;
mod binding;
mod provider;
mod check;
mod variant;
mod key;
mod sign;
mod sheet;
mod report;
mod fsck;
mod erase;
mod receipt;
mod overview;
mod usage;
mod me;
mod id;
mod reply;
mod field;

pub use field::field_name;
