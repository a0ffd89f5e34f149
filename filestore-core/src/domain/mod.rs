//! Words and rules: ids, states, paths, limits, errors. Without I/O.

pub mod file;
pub mod access;
pub mod provider;
pub mod report;
pub mod time;
pub mod error;
pub mod event;
#[cfg_attr(
    not(feature = "webhooks"),
    expect(dead_code, unused_imports, reason = "a build without webhooks sends nothing")
)]
pub mod webhook;
pub mod id;
pub mod patch;
mod unique_keys;
pub(crate) mod similar;
pub mod config;
