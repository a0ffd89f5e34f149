//! Retries of failed calls, and the pauses between them.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Result};

/// Decides how often the client sends a failed call again, and how long it waits in between.
///
/// The client retries a call if a second request does no harm: reads, deletes, edits, promotions,
/// restores, updates of a binding, and uploads with an idempotency key and a source that can be
/// read again (a path or bytes). The client retries any other call only if the server did not
/// process the request, for example because the connection failed or the server answered `busy`.
///
/// - **Pauses.** The pause before retry number n is random (full jitter), from zero to `min(cap,
///   base × 2ⁿ⁻¹)`. If the server sends `Retry-After` with a 429 or 503, the client waits for that
///   time as well, up to `max_retry_after`. If the server asks for more, the call fails at once.
/// - **Restarts of the server.** If the server refuses connections or breaks them off, the client
///   retries for up to `max_outage`, however many attempts that takes, with pauses of at most 2 s.
/// - **Uploads in pieces.** After the server has created the upload, the client retries a piece for at
///   least a minute, whatever transient failure it is, for example 502 from a proxy. Each piece that
///   arrives starts the time again.
/// - **Uploads in progress.** If an upload loses its connection, the server might still be
///   processing it when the client sends it again. The server then answers 409
///   `idempotency_in_progress`. The client waits up to `max_in_progress_wait` for that upload.
///   These answers do not count as attempts.
///
/// ```
/// use std::time::Duration;
/// use filestore_client::RetryPolicy;
///
/// let patient = RetryPolicy::default().max_attempts(8).cap(Duration::from_secs(30));
/// let once = RetryPolicy::none();
/// assert_eq!((patient.max_attempts, once.max_attempts), (8, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Maximum attempts (default 4). 1 means no retries. Progress in a download resets
    /// the count.
    pub max_attempts: u32,
    /// Upper limit for the first pause (default 200 ms). The limit doubles with every retry.
    pub base: Duration,
    /// Upper limit for every pause (default 10 s).
    pub cap: Duration,
    /// Longest time from a refused or broken connection to the last retry (default 15 s). Progress
    /// in a download starts the time again.
    pub max_outage: Duration,
    /// Longest `Retry-After` that the client accepts (default 60 s).
    pub max_retry_after: Duration,
    /// Longest total wait for an earlier upload with the same idempotency key (default 60 s). Set
    /// it longer than the time after which the server ends a silent upload (30 s by default).
    pub max_in_progress_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            base: Duration::from_millis(200),
            cap: Duration::from_secs(10),
            max_outage: Duration::from_secs(15),
            max_retry_after: Duration::from_mins(1),
            max_in_progress_wait: Duration::from_mins(1),
        }
    }
}

impl RetryPolicy {
    /// Returns a policy that never retries.
    pub fn none() -> Self {
        Self::default().max_attempts(1)
    }

    /// Sets the maximum attempts. 1 means no retries.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Sets the upper limit for the first pause.
    #[must_use]
    pub fn base(mut self, pause: Duration) -> Self {
        self.base = pause;
        self
    }

    /// Sets the upper limit for every pause.
    #[must_use]
    pub fn cap(mut self, pause: Duration) -> Self {
        self.cap = pause;
        self
    }

    /// Sets the longest time from a refused or broken connection to the last retry. Zero leaves it
    /// to the maximum attempts.
    #[must_use]
    pub fn max_outage(mut self, time: Duration) -> Self {
        self.max_outage = time;
        self
    }

    /// Sets the longest `Retry-After` that the client accepts.
    #[must_use]
    pub fn max_retry_after(mut self, wait: Duration) -> Self {
        self.max_retry_after = wait;
        self
    }

    /// Sets the longest total wait for an earlier upload with the same idempotency key.
    #[must_use]
    pub fn max_in_progress_wait(mut self, wait: Duration) -> Self {
        self.max_in_progress_wait = wait;
        self
    }

    pub(crate) fn jitter(&self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let ceiling = self.base.saturating_mul(factor).min(self.cap);
        ceiling.mul_f64(fastrand::f64())
    }
}

/// The shortest `max_outage` of an upload that has begun.
const OUTAGE_OF_BEGUN: Duration = Duration::from_mins(1);

/// The longest pause while a server is away, so that its return is noticed soon.
const LONGEST_PAUSE_IN_OUTAGE: Duration = Duration::from_secs(2);

/// The condition for a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Two requests have the effect of one, so every transient failure allows a retry.
    Idempotent,
    /// Only if the server did not process the request: it never arrived, or the server says so.
    IfUnprocessed,
    /// Never, because the source can be read only once.
    Never,
}

/// The attempts of one call.
pub(crate) struct Attempts {
    policy: RetryPolicy,
    retry: Retry,
    failures: u32,
    /// True if every transient failure counts as an outage, and not only a refused or broken connection.
    has_begun: bool,
    /// The instant of the first failure of an outage since the last progress.
    out_since: Option<Instant>,
    /// The sum of the pauses for an earlier upload with the same key.
    waited_in_progress: Duration,
    /// True once an attempt failed although the server might have processed it.
    lost_a_reply: bool,
}

impl Attempts {
    pub(crate) fn new(policy: RetryPolicy, retry: Retry) -> Self {
        Self {
            policy,
            retry,
            failures: 0,
            has_begun: false,
            out_since: None,
            waited_in_progress: Duration::ZERO,
            lost_a_reply: false,
        }
    }

    /// Makes the attempts of an upload that the server has already begun to store. Its address is right, so it is worth
    /// a wait.
    pub(crate) fn of_begun(mut policy: RetryPolicy) -> Self {
        policy.max_outage = policy.max_outage.max(OUTAGE_OF_BEGUN);
        Self { has_begun: true, ..Self::new(policy, Retry::Idempotent) }
    }

    /// Waits until the next attempt. Returns `error` if no further attempt is allowed.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<()> {
        self.lost_a_reply |= error.may_have_arrived();

        let delay = if error.is_in_progress() {
            self.delay_in_progress(&error)
        } else {
            self.failures += 1;
            self.delay(&error)
        };
        match delay {
            Some(delay) => {
                tracing::debug!(failures = self.failures, ?delay, %error, "retrying the call");
                tokio::time::sleep(delay).await;
                Ok(())
            }
            None => Err(error),
        }
    }

    /// Resets the count and the time of failures, after progress.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
        self.out_since = None;
    }

    /// Returns true if the server might have processed an earlier attempt that failed here.
    pub(crate) fn lost_a_reply(&self) -> bool {
        self.lost_a_reply
    }

    fn delay(&mut self, error: &Error) -> Option<Duration> {
        let allowed = match self.retry {
            Retry::Idempotent => error.is_transient(),
            Retry::IfUnprocessed => {
                let never_arrived = error.kind() == ErrorKind::Connect && error.is_transient();
                never_arrived || error.changed_nothing()
            }
            Retry::Never => false,
        };
        if !allowed || self.policy.max_attempts <= 1 {
            return None;
        }

        let pause = self.pause_after(error);
        let outage = self.pause_in_outage(error);
        if self.failures < self.policy.max_attempts { pause } else { outage }
    }

    /// Returns the pause before the next attempt while the server refuses or breaks connections, or `None`
    /// at the end of the longest outage.
    fn pause_in_outage(&mut self, error: &Error) -> Option<Duration> {
        if !(error.is_outage() || self.has_begun) {
            return None;
        }
        let now = Instant::now();
        let since = *self.out_since.get_or_insert(now);
        let pause = self.policy.jitter(self.failures).min(LONGEST_PAUSE_IN_OUTAGE);
        let pause = pause.max(self.named_pause(error)?);
        (now.duration_since(since) + pause <= self.policy.max_outage).then_some(pause)
    }

    /// Returns the pause before the next attempt while an earlier upload with the same key runs, or
    /// `None` at the end of the total wait.
    fn delay_in_progress(&mut self, error: &Error) -> Option<Duration> {
        if self.retry != Retry::Idempotent || self.policy.max_attempts <= 1 {
            return None;
        }

        let delay = self.pause_after(error)?;
        self.waited_in_progress = self.waited_in_progress.saturating_add(delay);
        (self.waited_in_progress <= self.policy.max_in_progress_wait).then_some(delay)
    }

    /// Returns the pause that the error asks for plus jitter, because the server told all clients the same moment.
    fn pause_after(&self, error: &Error) -> Option<Duration> {
        Some(self.named_pause(error)? + self.policy.jitter(self.failures))
    }

    /// Returns the pause that the error asks for, or `None` if it is too long.
    fn named_pause(&self, error: &Error) -> Option<Duration> {
        let wait = error.retry_after().unwrap_or_default();
        (wait <= self.policy.max_retry_after).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use filestore_core::api::{ErrorCode, Problem};

    use super::*;

    fn busy(secs: u64) -> Error {
        Error::new(ErrorKind::Busy, "").with_retry_after(Some(Duration::from_secs(secs)))
    }

    fn failed(attempts: u32, retry: Retry) -> Attempts {
        let mut failed = Attempts::new(RetryPolicy::default(), retry);
        failed.failures = attempts;
        failed
    }

    fn in_progress() -> Error {
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
        let delay = failed(1, Retry::Idempotent).delay(&busy(3)).expect("busy is worth a repeat");
        assert!(delay >= Duration::from_secs(3) && delay < Duration::from_secs(4));
        assert_eq!(failed(1, Retry::Idempotent).delay(&busy(3600)), None);
    }

    #[test]
    fn what_may_not_be_repeated_is_not() {
        let broken = Error::new(ErrorKind::Interrupted, "");
        let unreachable = Error::new(ErrorKind::Connect, "");
        assert_eq!(failed(1, Retry::IfUnprocessed).delay(&broken), None);
        assert_eq!(failed(1, Retry::IfUnprocessed).delay(&busy(1)), None, "a proxy's word");
        assert!(failed(1, Retry::IfUnprocessed).delay(&unreachable).is_some());
        let unknown = Problem::new(ErrorCode::OutcomeUnknown, 503, "");
        let unknown = busy(1).with_problem(unknown);
        assert_eq!(failed(1, Retry::IfUnprocessed).delay(&unknown), None, "it may be made");
        assert!(unknown.may_have_arrived() && !busy(1).may_have_arrived());
        assert_eq!(failed(1, Retry::Never).delay(&unreachable), None);
        assert_eq!(failed(4, Retry::Idempotent).delay(&unreachable), None);
    }

    #[test]
    fn an_upload_that_has_begun_outlives_every_transient_failure_for_a_minute() {
        let policy = RetryPolicy::default().max_outage(Duration::ZERO);
        let mut begun = Attempts::of_begun(policy);
        begun.failures = 9;
        for error in [refused(), busy(3), Error::new(ErrorKind::Interrupted, "")] {
            let delay = begun.delay(&error).expect("worth a wait");
            assert!(
                delay >= error.retry_after().unwrap_or_default() && delay <= Duration::from_secs(4)
            );
        }
        assert_eq!(begun.delay(&busy(3600)), None, "longer than allowed");
        assert_eq!(begun.delay(&Error::new(ErrorKind::NotFound, "")), None, "not transient");
        assert_eq!(Attempts::of_begun(RetryPolicy::none()).delay(&refused()), None);
        begun.out_since = Instant::now().checked_sub(OUTAGE_OF_BEGUN);
        assert_eq!(begun.delay(&refused()), None, "the time is over");
    }

    fn refused() -> Error {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        Error::new(ErrorKind::Connect, "").with_source(refused)
    }

    /// Fails again and again, and returns for how long and how often the call is repeated.
    async fn repeated(policy: RetryPolicy, retry: Retry, error: fn() -> Error) -> (Duration, u32) {
        let (began, mut attempts) = (Instant::now(), Attempts::new(policy, retry));
        while attempts.pause(error()).await.is_ok() {}
        (began.elapsed(), attempts.failures)
    }

    // The clock stands still, except while everybody waits for it.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_away_is_waited_for_by_time_and_not_by_attempts() {
        let policy = RetryPolicy::default();
        let broken = || Error::new(ErrorKind::Interrupted, "");
        let outages: [(Retry, fn() -> Error); 3] = [
            (Retry::Idempotent, refused),
            (Retry::IfUnprocessed, refused),
            (Retry::Idempotent, broken),
        ];
        for (retry, error) in outages {
            let (took, attempts) = repeated(policy, retry, error).await;
            let least = policy.max_outage.saturating_sub(LONGEST_PAUSE_IN_OUTAGE);
            assert!(least <= took && took <= policy.max_outage, "{took:?}");
            assert!(attempts > policy.max_attempts, "{attempts}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn other_failures_are_repeated_by_attempts_and_none_means_none() {
        let away = || Error::new(ErrorKind::Connect, "no such host");
        let broken = || Error::new(ErrorKind::Interrupted, "");
        let policy = RetryPolicy::default();
        let most = policy.max_attempts;
        assert_eq!(repeated(policy, Retry::Idempotent, away).await.1, most);
        assert_eq!(repeated(policy, Retry::Idempotent, || busy(1)).await.1, most);
        assert_eq!(repeated(policy, Retry::IfUnprocessed, broken).await.1, 1);
        assert_eq!(
            repeated(policy.max_outage(Duration::ZERO), Retry::Idempotent, refused).await.1,
            most
        );
        for retry in [Retry::Idempotent, Retry::IfUnprocessed, Retry::Never] {
            let (took, attempts) = repeated(RetryPolicy::none(), retry, refused).await;
            assert_eq!((took, attempts), (Duration::ZERO, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progress_starts_the_time_again() {
        let mut attempts = Attempts::new(RetryPolicy::default(), Retry::Idempotent);
        for _ in 0..3 {
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(10) {
                attempts.pause(refused()).await.unwrap();
            }
            attempts.reset();
        }
    }

    #[test]
    fn an_upload_in_progress_is_waited_for_up_to_its_limit_whatever_the_attempts() {
        let mut attempts = failed(3, Retry::Idempotent);
        let waited: Duration =
            std::iter::from_fn(|| attempts.delay_in_progress(&in_progress())).sum();
        let limit = attempts.policy.max_in_progress_wait;
        assert!(waited <= limit && waited + Duration::from_secs(3) > limit, "{waited:?}");

        let mut once = Attempts::new(RetryPolicy::none(), Retry::Idempotent);
        assert_eq!(once.delay_in_progress(&in_progress()), None);
    }
}
