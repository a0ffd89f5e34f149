//! Words and rules: ids, states, paths, limits, errors. Without I/O.

pub mod file;
pub mod access;
pub mod provider;
pub mod report;
pub mod time;
pub mod error;
pub mod event;
pub mod webhook;
pub mod id;
pub mod patch;
mod unique_keys;
pub(crate) mod similar;
pub mod config;
