//! The least rate at which clients send bodies and take replies.
//!
//! A limit on silence alone lets a client hold what it has for years, with one byte every half minute.
//! A limit on the average since the beginning lets it do so after a fast start. So time is an account:
//! the server's waits for the client draw from it, and the client's bytes fill it again, up to the grace
//! that every client begins with.

use std::time::Duration;

/// The least rate at which a client sends a body or takes a reply.
///
/// The time in which the server waits for the client may exceed what the client's bytes take at the
/// least rate by the grace, and no more. In other words, the average over any time longer than the grace
/// must reach the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeastRate {
    /// The bytes that a client must move in a second; 0 for any rate.
    pub bytes_per_sec: u64,
    /// The time in which a client may be slower. A longer limit on silence takes its place.
    pub grace: Duration,
}

impl Default for LeastRate {
    fn default() -> Self {
        Self { bytes_per_sec: 1024, grace: Duration::from_secs(30) }
    }
}

impl LeastRate {
    /// Makes a rate of so many bytes in a second, of which a client may fall short for `grace`.
    pub const fn new(bytes_per_sec: u64, grace: Duration) -> Self {
        Self { bytes_per_sec, grace }
    }
}

/// The time that a client has left to be slow in.
#[derive(Debug)]
pub(crate) struct Slack {
    rate: LeastRate,
    most: Duration,
    left: Duration,
}

impl Slack {
    /// Begins with the whole grace, or with `silence` (the longest silence that is allowed) if that is
    /// longer.
    pub(crate) fn new(rate: LeastRate, silence: Duration) -> Self {
        let most = rate.grace.max(silence);
        Self { rate, most, left: most }
    }

    /// Returns how long the server may still wait for the client's next byte.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// Counts a wait for the client.
    pub(crate) fn waited(&mut self, time: Duration) {
        if self.rate.bytes_per_sec > 0 {
            self.left = self.left.saturating_sub(time);
        }
    }

    /// Counts bytes that the client has sent or taken.
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
