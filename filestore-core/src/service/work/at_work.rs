//! Counts the running tasks of one kind, and signals when a task ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::wake::{Listener, Wake};

/// The running tasks of one kind.
#[derive(Default)]
pub(crate) struct AtWork(Arc<State>);

#[derive(Default)]
struct State {
    count: AtomicUsize,
    ended: Wake,
}

impl AtWork {
    /// Registers a task. The task ends when the returned guard is dropped.
    pub(crate) fn begin(&self) -> Working {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        Working(Arc::clone(&self.0))
    }

    /// Starts to listen for the end of a task. `None` if no task is running.
    pub(crate) fn listen(&self) -> Option<Listener> {
        // Before the look: what ends after it is heard.
        let ended = self.0.ended.listen();
        (self.0.count.load(Ordering::Acquire) > 0).then_some(ended)
    }

    /// Returns true while there is a listener.
    #[cfg(test)]
    pub(crate) fn is_listened_to(&self) -> bool {
        self.0.ended.has_listeners()
    }
}

/// A running task.
pub(crate) struct Working(Arc<State>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_end_of_work_under_way_is_heard() {
        let at_work = AtWork::default();
        assert!(at_work.listen().is_none());

        let (one, other) = (at_work.begin(), at_work.begin());
        drop(one);
        let mut ended = at_work.listen().expect("one is under way");
        assert!(ended.notified().now_or_never().is_none(), "it ended before");
        drop(other);
        assert!(ended.notified().now_or_never().is_some());
        assert!(at_work.listen().is_none());
    }
}
