//! The end of tests that hang.

use std::time::Duration;

/// The end of a test that hangs. No machine is so slow that anything else takes as long: a test never fails
/// because others need the processor.
pub(crate) const HANG: Duration = Duration::from_mins(10);
