//! The circuit breakers of a provider.
//!
//! # Purpose
//! While a provider is down, its operations fail at once. Requests get an answer, workers continue with other
//! providers, and no work queues up. After a pause, a single trial checks if the provider is back.
//!
//! An operation that failed in all its attempts is a failure, and so is a single attempt without any
//! response. An answer that refuses (no such object, no permission) is not a failure, because the provider
//! answered. [`OPEN_AFTER`] failures in a row open the breaker. If a short fault affects many operations at
//! once, their own retries handle it, and it does not count.
//!
//! If a provider answers but is not the right place for the records (see
//! [`crate::storage::cloud::identity::marker`]), it gets no writes. This opens the breaker of writes at once.
//! Only the right marker closes it.
//!
//! # Locking
//! Each breaker has one mutex. It is held for a few instructions, and never across an await.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::domain::error::{Error, ErrorKind};
use crate::domain::provider::ProviderCode;
use crate::domain::provider::health::{BreakerHealth, BreakerState, ProviderFault, ProviderHealth};
use crate::domain::time::clock::{Clock, Timestamp};

/// The number of failures in a row that open a breaker.
const OPEN_AFTER: u32 = 3;

/// The pause before the first trial. The pause doubles with each failed trial.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause between two trials, so that the end of an outage is detected soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The direction of an operation. Each direction has its own breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage::cloud) enum Direction {
    /// Reads bytes from the provider.
    Read,
    /// Stores or removes objects.
    Write,
}

/// The breakers of one provider.
pub(in crate::storage::cloud) struct Breakers {
    provider: ProviderCode,
    reads: Arc<Breaker>,
    writes: Arc<Breaker>,
}

struct Breaker {
    clock: Clock,
    position: Mutex<Position>,
}

struct Position {
    state: BreakerState,
    since: Timestamp,
    failures: u32,
    last_error: Option<ProviderFault>,
    next_trial: Timestamp,
    pause: Duration,
    /// The number of trials.
    trials: u64,
    /// A description of the place if it is not the right one, until the marker is read again.
    misplaced: Option<String>,
}

/// The permission for an operation. If the permission is for a trial and is dropped without an outcome, the
/// next operation becomes the trial.
pub(in crate::storage::cloud) struct Admission {
    /// The breaker and the number of the trial, if the operation is a trial.
    trial: Option<(Arc<Breaker>, u64)>,
}

impl Breakers {
    /// Creates closed breakers.
    pub(in crate::storage::cloud) fn new(provider: ProviderCode, clock: &Clock) -> Self {
        let [reads, writes] = [(); 2].map(|()| Arc::new(Breaker::closed(clock.clone())));
        Self { provider, reads, writes }
    }

    /// Returns the error that [`admit`](Self::admit) would return now. The call reserves no admission. Call
    /// it before work that prepares a request.
    pub(in crate::storage::cloud) fn check(&self, direction: Direction) -> Result<(), Error> {
        let breaker = self.of(direction);
        let position = breaker.position.lock();
        if position.lets_through(breaker.clock.now()) {
            Ok(())
        } else {
            Err(self.refusal(breaker, &position))
        }
    }

    /// Admits an operation. Otherwise returns `ProviderUnavailable`, with the time of the next attempt.
    pub(in crate::storage::cloud) fn admit(
        &self,
        direction: Direction,
    ) -> Result<Admission, Error> {
        let breaker = self.of(direction);
        let mut position = breaker.position.lock();
        if !position.lets_through(breaker.clock.now()) {
            return Err(self.refusal(breaker, &position));
        }
        if position.state == BreakerState::Closed {
            return Ok(Admission { trial: None });
        }

        position.state = BreakerState::HalfOpen;
        position.trials += 1;
        Ok(Admission { trial: Some((Arc::clone(breaker), position.trials)) })
    }

    fn refusal(&self, breaker: &Breaker, position: &Position) -> Error {
        let now = breaker.clock.now();
        let wait_ms = position.next_trial.as_millis().saturating_sub(now.as_millis());
        let wait_secs = u64::try_from(wait_ms).unwrap_or_default().div_ceil(1000).max(1);
        if let Some(found) = &position.misplaced {
            return Error::new(ErrorKind::ProviderUnavailable, found)
                .with_retry_after_secs(wait_secs);
        }

        let last = position.last_error.as_ref().map_or_else(String::new, |last| last.text.clone());
        let message = format!("the provider does not answer: {}", self.provider);
        Error::new(ErrorKind::ProviderUnavailable, message)
            .with_retry_after_secs(wait_secs)
            .with_source(format!("not asked after {} failures: {last}", position.failures))
    }

    /// Makes the trial of an open breaker due, because an administrator requested it.
    pub(in crate::storage::cloud) fn make_trials_due(&self) {
        for breaker in [&self.reads, &self.writes] {
            breaker.position.lock().next_trial = breaker.clock.now();
        }
    }

    /// Records an answer of any kind.
    pub(in crate::storage::cloud) fn answered(&self, direction: Direction) {
        let breaker = self.of(direction);
        let mut position = breaker.position.lock();

        position.failures = 0;
        if position.state != BreakerState::Closed && position.misplaced.is_none() {
            position.close(breaker.clock.now());
            tracing::info!(provider = %self.provider, ?direction, "the provider answers again");
        }
    }

    /// Records that the provider is not the right place for the records. `found` describes its marker.
    pub(in crate::storage::cloud) fn misplaced(&self, found: &str) {
        let now = self.writes.clock.now();
        let mut position = self.writes.position.lock();

        if position.misplaced.is_none() {
            tracing::warn!(provider = %self.provider, found, "the provider lacks its marker and gets no writes until a later check finds the marker");
        }
        position.misplaced = Some(found.to_owned());
        position.last_error = Some(ProviderFault { at: now, text: found.to_owned() });
        match position.state {
            BreakerState::Closed => {
                position.since = now;
                position.open(now);
            }
            BreakerState::HalfOpen => position.try_later(now),
            BreakerState::Open => {}
        }
    }

    /// Records that the provider is the right place for the records.
    pub(in crate::storage::cloud) fn placed(&self) {
        let mut position = self.writes.position.lock();
        if position.misplaced.take().is_some() {
            position.close(self.writes.clock.now());
            tracing::info!(provider = %self.provider, "the provider has its marker again");
        }
    }

    /// Records a failure.
    pub(in crate::storage::cloud) fn failed(&self, direction: Direction, text: String) {
        let breaker = self.of(direction);
        let mut position = breaker.position.lock();
        let now = breaker.clock.now();

        position.failures = position.failures.saturating_add(1);
        position.last_error = Some(ProviderFault { at: now, text });

        match position.state {
            BreakerState::Closed if position.failures >= OPEN_AFTER => {
                position.since = now;
                position.open(now);
                let error = position.last_error.as_ref().map(|last| last.text.as_str());
                tracing::warn!(provider = %self.provider, ?direction, error, "the provider does not answer and is retried regularly");
            }
            BreakerState::HalfOpen => position.try_later(now),
            // A late failure of what began earlier.
            BreakerState::Closed | BreakerState::Open => {}
        }
    }

    /// Returns the state of both breakers.
    pub(in crate::storage::cloud) fn health(&self) -> ProviderHealth {
        ProviderHealth {
            provider: self.provider.clone(),
            writes: self.writes.health(),
            reads: self.reads.health(),
            is_misplaced: self.is_misplaced(),
        }
    }

    /// Returns true if the provider was the wrong place when its marker was last read.
    pub(in crate::storage::cloud) fn is_misplaced(&self) -> bool {
        self.writes.position.lock().misplaced.is_some()
    }

    fn of(&self, direction: Direction) -> &Arc<Breaker> {
        match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        }
    }
}

impl Breaker {
    fn closed(clock: Clock) -> Self {
        let since = clock.now();
        let position = Position {
            state: BreakerState::Closed,
            since,
            failures: 0,
            last_error: None,
            next_trial: since,
            pause: FIRST_PAUSE,
            trials: 0,
            misplaced: None,
        };
        Self { clock, position: Mutex::new(position) }
    }

    fn health(&self) -> BreakerHealth {
        let position = self.position.lock();
        BreakerHealth {
            state: position.state,
            since: position.since,
            consecutive_failures: position.failures,
            last_error: position.last_error.clone(),
            next_trial: (position.state == BreakerState::Open).then_some(position.next_trial),
        }
    }
}

impl Position {
    fn lets_through(&self, now: Timestamp) -> bool {
        match self.state {
            BreakerState::Closed => true,
            BreakerState::Open => self.next_trial <= now,
            BreakerState::HalfOpen => false,
        }
    }

    fn open(&mut self, now: Timestamp) {
        self.state = BreakerState::Open;
        self.next_trial = now.plus(self.pause);
    }

    /// Opens again after a failed trial.
    fn try_later(&mut self, now: Timestamp) {
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.open(now);
    }

    fn close(&mut self, now: Timestamp) {
        self.state = BreakerState::Closed;
        self.since = now;
        self.pause = FIRST_PAUSE;
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let Some((breaker, trial)) = &self.trial else { return };
        let mut position = breaker.position.lock();

        // Neither answered nor failed: the trial was cancelled, and tells nothing.
        if position.state == BreakerState::HalfOpen && position.trials == *trial {
            position.state = BreakerState::Open;
            position.next_trial = breaker.clock.now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Direction::{Read, Write};
    use super::*;
    use crate::domain::time::clock::ManualClock;

    fn breakers() -> (Breakers, ManualClock) {
        let clock = ManualClock::at(Timestamp::from_millis(1_795_248_930_123));
        (Breakers::new("eu".parse().unwrap(), &clock.clock()), clock)
    }

    fn fail(breakers: &Breakers, times: u32) {
        for number in 1..=times {
            breakers.failed(Write, format!("silence {number}"));
        }
    }

    #[test]
    fn failures_in_a_row_open_it_and_an_answer_in_between_does_not() {
        let (breakers, _clock) = breakers();
        fail(&breakers, OPEN_AFTER - 1);
        breakers.answered(Write);
        fail(&breakers, OPEN_AFTER - 1);
        assert!(breakers.admit(Write).is_ok());

        fail(&breakers, 1);
        let error = breakers.admit(Write).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::ProviderUnavailable);
        assert_eq!(error.details().retry_after_secs, Some(1));
        assert!(
            error.message().ends_with(": eu") && error.chain().contains("silence"),
            "{error:?}"
        );
    }

    #[test]
    fn a_provider_that_refuses_writes_is_still_read() {
        let (breakers, _clock) = breakers();
        fail(&breakers, OPEN_AFTER);
        assert!(breakers.admit(Write).is_err());
        assert!(breakers.admit(Read).is_ok());
        assert_eq!(breakers.health().worst().state, BreakerState::Open);
        assert_eq!(breakers.health().reads.state, BreakerState::Closed);
    }

    #[test]
    fn after_the_pause_one_trial_passes_and_its_answer_closes() {
        let (breakers, clock) = breakers();
        fail(&breakers, OPEN_AFTER);
        clock.advance(FIRST_PAUSE);

        let trial = breakers.admit(Write).unwrap();
        assert!(breakers.admit(Write).is_err(), "one at a time");
        breakers.answered(Write);
        drop(trial);

        assert!(breakers.admit(Write).is_ok());
        let health = breakers.health().writes;
        assert_eq!((health.state, health.consecutive_failures), (BreakerState::Closed, 0));
        assert_eq!(health.last_error.unwrap().text, "silence 3", "is still told");
    }

    #[test]
    fn each_trial_that_fails_doubles_the_pause_up_to_the_longest() {
        let (breakers, clock) = breakers();
        fail(&breakers, OPEN_AFTER);
        let opened = breakers.health().writes.since;

        for pause_secs in [1, 2, 4, 8, 16, 30, 30] {
            let due = breakers.health().writes.next_trial.unwrap();
            assert_eq!(due.as_millis() - clock.clock().now().as_millis(), pause_secs * 1000);
            clock.advance(Duration::from_secs(pause_secs.unsigned_abs()));
            let _trial = breakers.admit(Write).unwrap();
            fail(&breakers, 1);
        }

        assert_eq!(breakers.health().writes.since, opened, "it is one outage");
    }

    #[test]
    fn a_trial_that_is_cancelled_makes_room_for_the_next() {
        let (breakers, clock) = breakers();
        fail(&breakers, OPEN_AFTER);
        clock.advance(FIRST_PAUSE);
        drop(breakers.admit(Write).unwrap());
        assert!(breakers.admit(Write).is_ok());
    }

    #[test]
    fn another_place_gets_no_writes_whatever_it_answers_until_the_marker_is_read() {
        let (breakers, clock) = breakers();
        breakers.misplaced("eu is another place");
        breakers.answered(Write);
        assert_eq!(breakers.check(Write).unwrap_err().message(), "eu is another place");
        assert!(breakers.admit(Read).is_ok(), "what is there is read");
        let health = breakers.health();
        assert!(health.is_misplaced && health.writes.state == BreakerState::Open);
        assert_eq!(health.writes.last_error.unwrap().text, "eu is another place");

        clock.advance(FIRST_PAUSE);
        let trial = breakers.admit(Write).unwrap();
        breakers.misplaced("eu is another place");
        drop(trial);
        clock.advance(FIRST_PAUSE);
        assert!(breakers.check(Write).is_err(), "the pause has doubled");

        breakers.placed();
        assert!(breakers.admit(Write).is_ok() && !breakers.health().is_misplaced);
    }

    #[test]
    fn the_right_marker_says_nothing_about_silence() {
        let (breakers, _clock) = breakers();
        fail(&breakers, OPEN_AFTER);
        breakers.placed();
        assert!(breakers.admit(Write).is_err());
    }

    #[test]
    fn a_late_answer_of_what_began_earlier_closes_it() {
        let (breakers, _clock) = breakers();
        fail(&breakers, OPEN_AFTER + 2);
        breakers.answered(Write);
        assert!(breakers.admit(Write).is_ok());
    }
}
