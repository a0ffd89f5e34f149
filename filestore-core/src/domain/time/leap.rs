//! Jumps of the wall clock, detected with the monotonic clock.
//!
//! # Purpose
//! Deadlines are wall clock times, so that they survive a restart. If the clock jumps forward by a
//! year, every deadline is over at once: every TEMP file, every deleted file within its grace
//! period. The monotonic clock knows that no year has passed. So removal pauses after a jump, until
//! the offset between the two clocks is stable for some time, or until the clock is back. A jump
//! backward removes no file too early, so it pauses no work.
//!
//! A new process has no earlier offset to compare with, and trusts the clock.

use std::time::Duration;

use parking_lot::Mutex;

use super::clock::{Clock, Timestamp};

/// Largest difference that counts as an adjustment. A time service never adjusts by more, and all
/// grace periods are much longer.
const TOLERANCE_MILLIS: i64 = 2 * 60 * 1000;

/// A guard that compares the clocks at each call.
#[derive(Debug)]
pub(crate) struct LeapGuard {
    settle: Duration,
    seen: Mutex<Option<Seen>>,
}

/// Offsets between the wall clock and the monotonic clock, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Seen {
    trusted: i64,
    leap: Option<Leap>,
}

#[derive(Debug, Clone, Copy)]
struct Leap {
    offset: i64,
    /// Monotonic time at which this offset was first seen.
    since: Duration,
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The clocks agree.
    Steady,
    /// The wall clock has jumped forward by this many milliseconds since the last comparison.
    Leapt(i64),
    /// The wall clock jumped some time ago and is not trusted yet.
    Unsettled,
    /// The wall clock is trusted again.
    Settled,
}

impl Pace {
    /// Tests whether the purge can remove files that are due by the wall clock.
    pub(crate) fn may_remove(self) -> bool {
        matches!(self, Self::Steady | Self::Settled)
    }
}

impl LeapGuard {
    /// Creates a guard that trusts an offset after it was stable for `settle`.
    pub(crate) fn new(settle: Duration) -> Self {
        Self { settle, seen: Mutex::new(None) }
    }

    /// Returns the time for which an offset must be stable.
    pub(crate) fn settle(&self) -> Duration {
        self.settle
    }

    /// Compares the clocks.
    pub(crate) fn look(&self, clock: &Clock) -> Pace {
        self.compare(clock.now(), clock.monotonic())
    }

    fn compare(&self, wall: Timestamp, monotonic: Duration) -> Pace {
        let passed = i64::try_from(monotonic.as_millis()).unwrap_or(i64::MAX);
        let offset = wall.as_millis().saturating_sub(passed);
        let mut seen = self.seen.lock();
        let Some(seen) = seen.as_mut() else {
            *seen = Some(Seen { trusted: offset, leap: None });
            return Pace::Steady;
        };

        let ahead = offset.saturating_sub(seen.trusted);
        if ahead <= TOLERANCE_MILLIS {
            let was_ahead = seen.leap.is_some();
            *seen = Seen { trusted: offset, leap: None };
            return if was_ahead { Pace::Settled } else { Pace::Steady };
        }

        match seen.leap {
            Some(leap) if leap.offset.abs_diff(offset) <= TOLERANCE_MILLIS.unsigned_abs() => {
                if monotonic.saturating_sub(leap.since) < self.settle {
                    return Pace::Unsettled;
                }
                *seen = Seen { trusted: offset, leap: None };
                Pace::Settled
            }
            _ => {
                seen.leap = Some(Leap { offset, since: monotonic });
                Pace::Leapt(ahead)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::ManualClock;
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const YEAR: Duration = Duration::from_hours(24 * 365);

    fn started() -> (ManualClock, Clock, LeapGuard) {
        let manual = ManualClock::at(Timestamp::from_millis(1_795_248_930_000));
        let (clock, guard) = (manual.clock(), LeapGuard::new(HOUR));
        assert_eq!(guard.look(&clock), Pace::Steady);
        (manual, clock, guard)
    }

    #[test]
    fn time_that_passes_is_no_leap_nor_is_a_clock_that_is_adjusted() {
        let (manual, clock, guard) = started();
        manual.advance(YEAR);
        assert_eq!(guard.look(&clock), Pace::Steady);
        for _ in 0..100 {
            manual.set(clock.now().plus(Duration::from_mins(1)));
            assert_eq!(guard.look(&clock), Pace::Steady);
        }
    }

    #[test]
    fn a_leap_forward_is_trusted_once_it_has_been_stable() {
        let (manual, clock, guard) = started();
        manual.set(clock.now().plus(YEAR));
        let leapt = i64::try_from(YEAR.as_millis()).unwrap();
        assert_eq!(guard.look(&clock), Pace::Leapt(leapt));

        manual.advance(HOUR / 2);
        assert_eq!(guard.look(&clock), Pace::Unsettled);
        manual.set(clock.now().plus(HOUR));
        assert!(matches!(guard.look(&clock), Pace::Leapt(_)), "another one: the hour begins anew");
        manual.advance(HOUR / 2);
        assert_eq!(guard.look(&clock), Pace::Unsettled);
        manual.advance(HOUR / 2);
        assert_eq!(guard.look(&clock), Pace::Settled);
        assert_eq!(guard.look(&clock), Pace::Steady);
    }

    #[test]
    fn a_clock_that_comes_back_is_trusted_at_once() {
        let (manual, clock, guard) = started();
        let right = clock.now();
        manual.set(right.plus(YEAR));
        assert!(!guard.look(&clock).may_remove());
        manual.set(right);
        assert_eq!(guard.look(&clock), Pace::Settled);
        manual.set(right.minus(YEAR));
        assert_eq!(guard.look(&clock), Pace::Steady, "backward: nothing is due too early");
    }
}
