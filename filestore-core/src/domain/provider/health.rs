//! The health of a provider: the state of its circuit breakers.

use std::cmp::Reverse;

use super::ProviderCode;
use crate::domain::time::clock::Timestamp;

/// A provider's health.
///
/// Writes and reads have separate breakers. For example, a full provider refuses writes and still
/// answers reads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderHealth {
    /// Provider code.
    pub provider: ProviderCode,
    /// Breaker for puts and removals.
    pub writes: BreakerHealth,
    /// Breaker for reads by the store. Redirects to presigned URLs do not use this breaker.
    pub reads: BreakerHealth,
    /// True if the provider answers but does not show the store's marker, for example because the
    /// disk is not mounted or the bucket is wrong. The store writes nothing there until the marker
    /// is back.
    pub is_misplaced: bool,
}

/// One circuit breaker's state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerHealth {
    /// Current state.
    pub state: BreakerState,
    /// Time of the last change between closed and open. A trial does not count as a change, so an
    /// outage keeps its start time.
    pub since: Timestamp,
    /// Number of failures since the provider last answered.
    pub consecutive_failures: u32,
    /// Last failure since the store was opened. Stays after the provider answers again.
    pub last_error: Option<ProviderFault>,
    /// Time of the next trial. `None` if the breaker is not open.
    pub next_trial: Option<Timestamp>,
}

/// A circuit breaker's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerState {
    /// Operations pass.
    Closed,
    /// One operation tests the provider. All other operations fail at once.
    HalfOpen,
    /// All operations fail at once until the next trial.
    Open,
}

/// A failure of a provider, in one line without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderFault {
    /// Failure time.
    pub at: Timestamp,
    /// Error text of the provider or the connection.
    pub text: String,
}

impl ProviderHealth {
    /// Returns the worse breaker: the open breaker, or the breaker that opened first.
    pub fn worst(&self) -> &BreakerHealth {
        if self.reads.rank() > self.writes.rank() { &self.reads } else { &self.writes }
    }

    /// Tests whether both breakers are closed.
    pub fn is_good(&self) -> bool {
        self.worst().state == BreakerState::Closed
    }
}

impl BreakerHealth {
    fn rank(&self) -> (BreakerState, Reverse<Timestamp>) {
        (self.state, Reverse(self.since))
    }

    /// Tests whether an operation that begins at `now` would reach the provider.
    pub fn may_try(&self, now: Timestamp) -> bool {
        match self.state {
            BreakerState::Closed => true,
            BreakerState::HalfOpen => false,
            BreakerState::Open => self.next_trial.is_none_or(|due| due <= now),
        }
    }
}

impl BreakerState {
    /// Returns the word for people and programs: `closed`, `half_open`, `open`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker(state: BreakerState, since: i64) -> BreakerHealth {
        BreakerHealth {
            state,
            since: Timestamp::from_millis(since),
            consecutive_failures: 0,
            last_error: None,
            next_trial: (state == BreakerState::Open).then(|| Timestamp::from_millis(1000)),
        }
    }

    #[test]
    fn the_worse_breaker_is_the_open_one_then_the_older_one() {
        let provider: ProviderCode = "eu".parse().unwrap();
        let health = |writes, reads| ProviderHealth {
            provider: provider.clone(),
            writes,
            reads,
            is_misplaced: false,
        };

        let reads_fail = health(breaker(BreakerState::Closed, 1), breaker(BreakerState::Open, 5));
        assert_eq!(reads_fail.worst(), &reads_fail.reads);
        assert!(!reads_fail.is_good());

        let both = health(breaker(BreakerState::Open, 9), breaker(BreakerState::Open, 5));
        assert_eq!(both.worst(), &both.reads);
        assert!(
            health(breaker(BreakerState::Closed, 1), breaker(BreakerState::Closed, 1)).is_good()
        );
    }

    #[test]
    fn an_open_breaker_lets_a_trial_through_once_it_is_due() {
        let open = breaker(BreakerState::Open, 5);
        assert!(!open.may_try(Timestamp::from_millis(999)));
        assert!(open.may_try(Timestamp::from_millis(1000)));
        assert!(!breaker(BreakerState::HalfOpen, 5).may_try(Timestamp::from_millis(2000)));
        assert!(breaker(BreakerState::Closed, 5).may_try(Timestamp::from_millis(0)));
    }
}
