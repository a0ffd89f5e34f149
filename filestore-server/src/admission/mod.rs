//! Checks of a request before its key is read.
//!
//! Each check uses facts about a request: its peer, its head and its route. No check knows the handlers'
//! call, the store or the configuration file.

pub(crate) mod cors;
pub(crate) mod guard;
pub(crate) mod limiter;
