//! A timer that is reset as rarely as possible.
//!
//! Deadlines are set thousands of times a second, and almost never pass. If the deadline moves to a later
//! time, the timer stays unchanged. The timer is reset only when it fires too early, or when the deadline
//! moves to an earlier time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer with a deadline at each poll. The first poll creates the timer.
#[derive(Default)]
pub(crate) struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Returns ready when `deadline` has passed. Otherwise wakes the task at the deadline or earlier.
    pub(crate) fn poll_passed(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline < timer.deadline() {
            timer.as_mut().reset(deadline);
        }

        loop {
            ready!(timer.as_mut().poll(cx));
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn it_passes_at_the_deadline_of_the_last_poll() {
        let mut timer = Deadline::default();
        let start = Instant::now();

        for secs in [10, 20, 5, 30] {
            let deadline = start + Duration::from_secs(secs);
            let first = poll_fn(|cx| Poll::Ready(timer.poll_passed(cx, deadline))).await;
            assert!(first.is_pending(), "{secs}");
        }

        poll_fn(|cx| timer.poll_passed(cx, start + Duration::from_secs(30))).await;
        assert_eq!(start.elapsed().as_secs(), 30);
    }
}
