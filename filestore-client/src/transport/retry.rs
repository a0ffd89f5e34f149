//! The repetition of calls, and the pauses between attempts.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// The number of attempts of a call, and the pauses between them.
///
/// Only calls that are safe to repeat are: reads, deletes, promotions, restores, updates of a
/// binding, and uploads that carry an idempotency key and can be read again (from a path or from
/// bytes). Any other call is repeated if it surely changed nothing: the server was out of reach, or
/// its problem document says `busy`. The pause before the nth repetition is random between zero and
/// `min(cap, base × 2ⁿ)` (full jitter). `Retry-After` of a 429 or 503 (in seconds) is waited for if
/// it is within `max_retry_after`; otherwise the error is handed to the caller at once.
///
/// An upload that broke off may still run at the server, which notices a lost connection late. The
/// next attempt under the same key is refused meanwhile (409 `idempotency_in_progress`). Such a
/// refusal is no attempt: it is waited out for `max_twin_wait` in all.
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
    /// The longest time of all pauses that wait for an earlier upload under the same key. It should
    /// exceed the server's limit on a silent upload (30 s by default).
    pub max_twin_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            base: Duration::from_millis(200),
            cap: Duration::from_secs(10),
            max_retry_after: Duration::from_mins(1),
            max_twin_wait: Duration::from_mins(1),
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
    /// Only while it surely changed nothing: it never reached the server, or the server says so.
    IfNothingChanged,
    /// Never: its source can be read only once.
    Never,
}

/// The attempts of one call.
pub(crate) struct Attempts {
    policy: RetryPolicy,
    repeat: Repeat,
    failures: u32,
    /// The sum of the pauses for a twin.
    waited_for_twin: Duration,
    /// True once an attempt failed that may have been carried out.
    lost_a_reply: bool,
}

impl Attempts {
    pub(crate) fn new(policy: RetryPolicy, repeat: Repeat) -> Self {
        Self { policy, repeat, failures: 0, waited_for_twin: Duration::ZERO, lost_a_reply: false }
    }

    /// Waits until the next attempt, or hands `error` back if there is to be none.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<()> {
        self.lost_a_reply |= error.may_have_arrived();

        let delay = if error.is_running_twin() {
            self.delay_for_twin(&error)
        } else {
            self.failures += 1;
            self.delay(&error)
        };
        match delay {
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

    /// Returns true if an earlier attempt may have been carried out although it failed here.
    pub(crate) fn lost_a_reply(&self) -> bool {
        self.lost_a_reply
    }

    fn delay(&self, error: &Error) -> Option<Duration> {
        let allowed = match self.repeat {
            Repeat::Always => error.is_transient(),
            Repeat::IfNothingChanged => {
                error.kind() == ErrorKind::Connect || error.changed_nothing()
            }
            Repeat::Never => false,
        };
        if !allowed || self.failures >= self.policy.max_attempts {
            return None;
        }
        self.pause_after(error)
    }

    /// Returns the pause until the next look at a twin; `None` once it was waited for long enough.
    fn delay_for_twin(&mut self, error: &Error) -> Option<Duration> {
        if self.repeat != Repeat::Always || self.policy.max_attempts <= 1 {
            return None;
        }

        let delay = self.pause_after(error)?;
        self.waited_for_twin = self.waited_for_twin.saturating_add(delay);
        (self.waited_for_twin <= self.policy.max_twin_wait).then_some(delay)
    }

    fn pause_after(&self, error: &Error) -> Option<Duration> {
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
    use filestore_core::api::{ErrorCode, Problem};

    use super::*;

    fn busy(secs: u64) -> Error {
        Error::new(ErrorKind::Busy, "").with_retry_after(Some(Duration::from_secs(secs)))
    }

    fn failed(attempts: u32, repeat: Repeat) -> Attempts {
        let mut failed = Attempts::new(RetryPolicy::default(), repeat);
        failed.failures = attempts;
        failed
    }

    fn twin() -> Error {
        Error::new(ErrorKind::Conflict, "")
            .with_problem(Problem::new(ErrorCode::IdempotencyInProgress, 409, ""))
            .with_retry_after(Some(Duration::from_secs(1)))
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
        assert_eq!(failed(1, Repeat::IfNothingChanged).delay(&broken), None);
        assert_eq!(failed(1, Repeat::IfNothingChanged).delay(&busy(1)), None, "a proxy's word");
        assert!(failed(1, Repeat::IfNothingChanged).delay(&unreachable).is_some());
        let unknown = Problem::new(ErrorCode::OutcomeUnknown, 503, "");
        let unknown = busy(1).with_problem(unknown);
        assert_eq!(failed(1, Repeat::IfNothingChanged).delay(&unknown), None, "it may be made");
        assert!(unknown.may_have_arrived() && !busy(1).may_have_arrived());
        assert_eq!(failed(1, Repeat::Never).delay(&unreachable), None);
        assert_eq!(failed(4, Repeat::Always).delay(&unreachable), None);
    }

    #[test]
    fn a_twin_is_waited_for_up_to_its_limit_whatever_the_attempts() {
        let mut attempts = failed(3, Repeat::Always);
        let waited: Duration = std::iter::from_fn(|| attempts.delay_for_twin(&twin())).sum();
        let limit = attempts.policy.max_twin_wait;
        assert!(waited <= limit && waited + Duration::from_secs(3) > limit, "{waited:?}");

        let mut once = Attempts::new(RetryPolicy::none(), Repeat::Always);
        assert_eq!(once.delay_for_twin(&twin()), None);
    }
}
