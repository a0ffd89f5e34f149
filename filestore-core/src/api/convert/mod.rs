//! The only bridge between the domain and the wire, one file per resource.
//!
//! Domain types carry no serde, so that renaming a field cannot change the API by accident; the
//! conversions here give every value the name that the contract has for it.

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
mod reply;
mod field;

pub use field::field_name;
