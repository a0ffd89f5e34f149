//! The only bridge between `domain` and `api`, with one file for each resource.
//!
//! Domain types have no serde, so that a renamed field cannot change the API by accident. The
//! conversions here give each value its name in the API.

mod vocabulary;
mod file;
mod binding;
mod provider;
mod variant;
mod sign;
mod sheet;
mod receipt;
mod upload;
mod explain;
mod usage;
mod event;
mod webhook;
mod me;
mod id;
mod reply;
mod field;
mod problem;
mod admin;

pub use field::field_name;
pub use problem::problem_of;
