//! The lease of a server's lanes, by the monotonic clock.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The duration of a lease.
pub(super) const LEASE: Duration = Duration::from_mins(1);

/// The time after which a lease is renewed.
pub(super) const RENEW_AFTER: Duration = Duration::from_secs(20);

/// The end of the lease. A process that slept longer than a lease sends nothing before it has renewed it.
#[derive(Debug)]
pub(super) struct LaneLease {
    renewed_at: Mutex<Instant>,
}

impl LaneLease {
    /// Begins a lease now.
    pub(super) fn new() -> Self {
        Self { renewed_at: Mutex::new(Instant::now()) }
    }

    /// Returns true if the lease has not ended, with a margin for what is sent now.
    pub(super) fn is_valid(&self) -> bool {
        self.renewed_at.lock().elapsed() < LEASE.mul_f64(0.9)
    }

    /// Returns true if it is time to renew the lease.
    pub(super) fn is_old(&self) -> bool {
        self.renewed_at.lock().elapsed() >= RENEW_AFTER
    }

    /// Notes that the lease was renewed by a call that began at `at`.
    pub(super) fn renewed(&self, at: Instant) {
        *self.renewed_at.lock() = at;
    }
}
