//! The connection to a provider: breakers, turns, memory and threads, with a limit for each wait.

pub(super) mod breaker;
pub(super) mod gate;
pub(super) mod memory;
pub(super) mod turns;
pub(super) mod threads;
