//! The health of a provider, as its circuit breakers see it.

use std::cmp::Reverse;

use super::clock::Timestamp;
use super::provider::ProviderCode;

/// The health of one provider.
///
/// Writes and reads are judged apart: a provider that is full, or has lost its quorum, refuses the
/// one and serves the other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderHealth {
    /// The code of the provider.
    pub provider: ProviderCode,
    /// The breaker before puts and removals.
    pub writes: BreakerHealth,
    /// The breaker before reads by this service. Redirects to presigned URLs do not pass it.
    pub reads: BreakerHealth,
    /// True if the provider answers, but is another place than the one that holds the store's files: a
    /// disk that is not mounted, another bucket. It gets no writes until its marker is there.
    pub is_misplaced: bool,
}

/// The state of one circuit breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerHealth {
    /// The present state.
    pub state: BreakerState,
    /// The instant at which the breaker was last closed or opened. A trial is no change: an outage
    /// has lasted since this instant however often the provider was tried meanwhile.
    pub since: Timestamp,
    /// Failures since the provider last answered.
    pub consecutive_failures: u32,
    /// The last failure, also after the provider has answered again; `None` if there was none since
    /// the store was opened.
    pub last_error: Option<ProviderFault>,
    /// The instant from which one operation may try the provider; `None` unless the breaker is open.
    pub next_trial: Option<Timestamp>,
}

/// The state of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerState {
    /// Operations pass.
    Closed,
    /// One operation is trying the provider; all others fail at once.
    HalfOpen,
    /// Operations fail at once until the next trial is due.
    Open,
}

/// A failure of a provider, in one line without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderFault {
    /// The instant of the failure.
    pub at: Timestamp,
    /// The failure in the provider's words, or in those of the transport.
    pub text: String,
}

impl ProviderHealth {
    /// Returns the breaker that is worse off: the open one, or the one that opened first.
    pub fn worst(&self) -> &BreakerHealth {
        if self.reads.rank() > self.writes.rank() { &self.reads } else { &self.writes }
    }

    /// Returns true if both breakers are closed.
    pub fn is_good(&self) -> bool {
        self.worst().state == BreakerState::Closed
    }
}

impl BreakerHealth {
    fn rank(&self) -> (BreakerState, Reverse<Timestamp>) {
        (self.state, Reverse(self.since))
    }

    /// Returns true if an operation that began `now` would be let through to the provider.
    pub fn may_try(&self, now: Timestamp) -> bool {
        match self.state {
            BreakerState::Closed => true,
            BreakerState::HalfOpen => false,
            BreakerState::Open => self.next_trial.is_none_or(|due| due <= now),
        }
    }
}

impl BreakerState {
    /// Returns the word shown to people and programs: `closed`, `half_open`, `open`.
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
