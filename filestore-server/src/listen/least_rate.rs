//! The minimum rate at which clients send bodies and accept replies.
//!
//! With only a limit for silence, a client could keep its resources for years by sending one byte every half
//! minute. With only a limit for the average rate, a client could do so after a fast start. Time is therefore
//! an account: the server's waits for the client reduce it, and the client's bytes refill it, up to the
//! initial grace.

use std::time::Duration;

/// The minimum rate at which a client sends a body or accepts a reply.
///
/// The server's wait for the client can exceed the time that the bytes take at this rate by at most the
/// grace. In other words, the average over any time longer than the grace must reach the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeastRate {
    /// The minimum rate, in bytes per second. 0 means no minimum.
    pub bytes_per_sec: u64,
    /// The time for which a client can be slower. A longer limit for silence has priority.
    pub grace: Duration,
}

impl Default for LeastRate {
    fn default() -> Self {
        Self { bytes_per_sec: 1024, grace: Duration::from_secs(30) }
    }
}

impl LeastRate {
    /// Creates a rate of `bytes_per_sec`, with `grace` as the time in which a client can be slower.
    pub const fn new(bytes_per_sec: u64, grace: Duration) -> Self {
        Self { bytes_per_sec, grace }
    }
}

/// The time for which a client can still be slow.
#[derive(Debug)]
pub(crate) struct Slack {
    rate: LeastRate,
    most: Duration,
    left: Duration,
}

impl Slack {
    /// Begins with the whole grace, or with `silence` (the longest allowed silence) if that is longer.
    pub(crate) fn new(rate: LeastRate, silence: Duration) -> Self {
        let most = rate.grace.max(silence);
        Self { rate, most, left: most }
    }

    /// Returns how long the server still waits for the client's next byte.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// Counts a wait for the client.
    pub(crate) fn waited(&mut self, time: Duration) {
        if self.rate.bytes_per_sec > 0 {
            self.left = self.left.saturating_sub(time);
        }
    }

    /// Counts bytes that the client has sent or accepted.
    pub(crate) fn moved(&mut self, bytes: u64) {
        if self.rate.bytes_per_sec > 0 && self.left < self.most {
            let micros = bytes.saturating_mul(1_000_000) / self.rate.bytes_per_sec;
            self.left = self.left.saturating_add(Duration::from_micros(micros)).min(self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Lets a client move `bytes` in each second, and returns after how many it is too slow.
    fn seconds_at(bytes: u64, slack: &mut Slack) -> Option<u64> {
        (1..=10_000).find(|_| {
            slack.waited(SECOND);
            let is_over = slack.left().is_zero();
            slack.moved(bytes);
            is_over
        })
    }

    #[test]
    fn a_client_below_the_rate_is_cut_after_the_grace_and_one_above_never() {
        let slack = || Slack::new(LeastRate::default(), SECOND);
        assert_eq!(seconds_at(0, &mut slack()), Some(30));
        assert_eq!(seconds_at(512, &mut slack()), Some(59));
        assert_eq!(seconds_at(1024, &mut slack()), None);
        assert_eq!(seconds_at(1127, &mut slack()), None, "1.1 KiB/s");
    }

    #[test]
    fn a_fast_start_earns_no_more_than_the_grace() {
        let mut slack = Slack::new(LeastRate::default(), SECOND);
        slack.waited(SECOND * 29);
        slack.moved(1 << 30);
        assert_eq!(seconds_at(0, &mut slack), Some(30));
    }

    #[test]
    fn a_longer_silence_that_is_allowed_takes_the_place_of_the_grace() {
        let mut slack = Slack::new(LeastRate::default(), SECOND * 300);
        assert_eq!(seconds_at(0, &mut slack), Some(300));
    }

    #[test]
    fn a_rate_of_zero_is_none() {
        let mut slack = Slack::new(LeastRate::new(0, SECOND), SECOND);
        slack.waited(SECOND * 1000);
        assert_eq!(slack.left(), SECOND);
    }
}
