//! Time: clocks for stores and tests, and jumps of the wall clock.

pub mod clock;
pub(crate) mod leap;
