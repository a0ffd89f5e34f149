//! The repetition of calls, and the pauses between attempts.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// The number of attempts of a call, and the pauses between them.
///
/// Only calls that are safe to repeat are: reads, deletes, promotions, updates of a binding, and
/// uploads that carry an idempotency key and can be read again (from a path or from bytes). The
/// pause before the nth repetition is random between zero and `min(cap, base × 2ⁿ)` (full jitter).
/// `Retry-After` of a 429 or 503 (in seconds) is waited for if it is within `max_retry_after`;
/// otherwise the error is handed to the caller at once.
///
/// ```
/// use std::time::Duration;
/// use filestore_client::RetryPolicy;
///
/// let patient = RetryPolicy { max_attempts: 8, cap: Duration::from_secs(30), ..RetryPolicy::default() };
/// let once = RetryPolicy::none();
/// # let _ = (patient, once);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Number of attempts in all; 1 means never repeated. A download that got further
    /// counts from anew.
    pub max_attempts: u32,
    /// The scale of the first pause.
    pub base: Duration,
    /// The longest pause of our own choosing.
    pub cap: Duration,
    /// The longest `Retry-After` that is waited for.
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            base: Duration::from_millis(200),
            cap: Duration::from_secs(10),
            max_retry_after: Duration::from_mins(1),
        }
    }
}

impl RetryPolicy {
    /// Attempts every call once.
    pub fn none() -> Self {
        Self { max_attempts: 1, ..Self::default() }
    }

    fn jitter(&self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let ceiling = self.base.saturating_mul(factor).min(self.cap);
        ceiling.mul_f64(fastrand::f64())
    }
}

/// The condition under which a call may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Always: sent twice it does what it does once.
    Always,
    /// Only while it surely never reached the server.
    IfNeverSent,
    /// Never: its source can be read only once.
    Never,
}

/// The attempts of one call.
pub(crate) struct Attempts {
    policy: RetryPolicy,
    repeat: Repeat,
    failures: u32,
}

impl Attempts {
    pub(crate) fn new(policy: RetryPolicy, repeat: Repeat) -> Self {
        Self { policy, repeat, failures: 0 }
    }

    /// Waits until the next attempt, or hands `error` back if there is to be none.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<()> {
        self.failures += 1;
        match self.delay(&error) {
            Some(delay) => {
                tracing::debug!(failures = self.failures, ?delay, %error, "repeating the call");
                tokio::time::sleep(delay).await;
                Ok(())
            }
            None => Err(error),
        }
    }

    /// Counts from anew, because something was achieved.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    fn delay(&self, error: &Error) -> Option<Duration> {
        let allowed = match self.repeat {
            Repeat::Always => error.is_transient(),
            Repeat::IfNeverSent => error.kind() == ErrorKind::Connect,
            Repeat::Never => false,
        };
        if !allowed || self.failures >= self.policy.max_attempts {
            return None;
        }
        let jitter = self.policy.jitter(self.failures);
        match error.retry_after() {
            Some(wait) if wait > self.policy.max_retry_after => None,
            // Jitter on top: everybody was told the same moment.
            Some(wait) => Some(wait + jitter),
            None => Some(jitter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(secs: u64) -> Error {
        Error::new(ErrorKind::Busy, "").with_retry_after(Some(Duration::from_secs(secs)))
    }

    fn failed(attempts: u32, repeat: Repeat) -> Attempts {
        Attempts { policy: RetryPolicy::default(), repeat, failures: attempts }
    }

    #[test]
    fn the_jitter_stays_below_the_cap_however_often_it_failed() {
        let policy = RetryPolicy::default();
        for failures in [1, 2, 7, 31, 32, 33, u32::MAX] {
            assert!(policy.jitter(failures) <= policy.cap);
        }
        assert!((0..100).all(|_| policy.jitter(1) <= policy.base));
    }

    #[test]
    fn retry_after_is_the_least_that_is_waited() {
        let delay = failed(1, Repeat::Always).delay(&busy(3)).expect("busy is worth a repeat");
        assert!(delay >= Duration::from_secs(3) && delay < Duration::from_secs(4));
        assert_eq!(failed(1, Repeat::Always).delay(&busy(3600)), None);
    }

    #[test]
    fn what_may_not_be_repeated_is_not() {
        let broken = Error::new(ErrorKind::Interrupted, "");
        let unreachable = Error::new(ErrorKind::Connect, "");
        assert_eq!(failed(1, Repeat::IfNeverSent).delay(&broken), None);
        assert!(failed(1, Repeat::IfNeverSent).delay(&unreachable).is_some());
        assert_eq!(failed(1, Repeat::Never).delay(&unreachable), None);
        assert_eq!(failed(4, Repeat::Always).delay(&unreachable), None);
    }
}
