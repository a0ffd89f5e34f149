//! The runner of the workers, and their shared parts: lanes, progress and failures.

pub(super) mod runner;
pub(super) mod run;
pub(super) mod lane;
pub(super) mod claimed;
pub(crate) mod progress;
pub(super) mod failures;
