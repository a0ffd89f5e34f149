//! Limits log lines that clients can cause to one in a second.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The minimum time between two lines.
const PAUSE: Duration = Duration::from_secs(1);

/// Allows one event in a second to be logged, and counts the others.
#[derive(Debug)]
pub(crate) struct Throttle(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    last: Option<Instant>,
    held_back: u64,
}

impl Throttle {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Seen { last: None, held_back: 0 }))
    }

    /// Reports an event. Returns `Some` if it must be logged, with the number of events that were not logged
    /// since the last one.
    pub(crate) fn admit(&self) -> Option<u64> {
        let mut seen = self.0.lock();
        if seen.last.is_some_and(|last| last.elapsed() < PAUSE) {
            seen.held_back += 1;
            return None;
        }
        seen.last = Some(Instant::now());
        Some(std::mem::take(&mut seen.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_event_in_a_second_is_admitted_and_the_others_are_counted() {
        let throttle = Throttle::new();
        assert_eq!(throttle.admit(), Some(0));
        assert_eq!((throttle.admit(), throttle.admit()), (None, None));
        tokio::time::advance(PAUSE).await;
        assert_eq!((throttle.admit(), throttle.admit()), (Some(2), None));
    }
}
