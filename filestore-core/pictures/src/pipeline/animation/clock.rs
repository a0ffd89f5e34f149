//! A limit on the processor time of a thread. The limit does not depend on the load of the machine.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::error::{Result, too_large};

/// The processor time that work on this thread can use.
pub(super) struct ProcessorTime {
    begun: Duration,
    limit: Duration,
}

impl ProcessorTime {
    /// Starts the measurement.
    pub(super) fn begin(limit: Duration) -> Self {
        Self { begun: now(), limit }
    }

    /// Refuses an animation that used more than the limit.
    pub(super) fn check(&self) -> Result<()> {
        if now().saturating_sub(self.begun) <= self.limit {
            return Ok(());
        }
        let secs = self.limit.as_secs();
        let message = format!("the animation takes more than {secs} seconds of processor time");
        Err(too_large(message).with_limit(secs))
    }
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(secs, u32::try_from(time.tv_nsec).unwrap_or(0))
}
