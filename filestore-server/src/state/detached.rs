//! The runs that continue without a client.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// The effect on a run when the server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtStop {
    /// The store tells the run to stop, and the server waits for it.
    Wait,
    /// The run is cancelled at once, because a later run can continue.
    Cancel,
}

/// The runs that continue without a client.
#[derive(Debug, Default)]
pub(crate) struct DetachedRuns(Mutex<Runs>);

#[derive(Debug, Default)]
struct Runs {
    /// One task for each run. The task waits for the run and records its end.
    watches: JoinSet<()>,
    /// The work of the runs that a stop cancels.
    to_cancel: Vec<AbortHandle>,
}

impl DetachedRuns {
    /// Keeps a run until its end. `watch` waits for the task `work`, and records the end.
    pub(crate) fn keep(
        &self,
        work: AbortHandle,
        at_stop: AtStop,
        watch: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut runs = self.0.lock();
        while runs.watches.try_join_next().is_some() {}
        runs.to_cancel.retain(|work| !work.is_finished());

        if at_stop == AtStop::Cancel {
            runs.to_cancel.push(work);
        }
        runs.watches.spawn(watch);
    }

    /// Cancels the runs that a stop cancels.
    pub(crate) fn cancel(&self) {
        for work in self.0.lock().to_cancel.drain(..) {
            work.abort();
        }
    }

    /// Waits for the end of all runs, at most for `patience`. Returns the number of runs that have not ended.
    pub(crate) async fn wait(&self, patience: Duration) -> usize {
        let mut watches = std::mem::take(&mut self.0.lock().watches);
        let ended = async { while watches.join_next().await.is_some() {} };
        // The number of the rest is the result.
        let _ = timeout(patience, ended).await;
        let left = watches.len();
        // Each can be run again, and its task ends with the process.
        watches.detach_all();
        left
    }

    /// Returns the number of kept runs, with those that ended since the last one began.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.lock().watches.len()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    /// Starts work that never ends, and keeps it.
    fn keep_endless(runs: &DetachedRuns, at_stop: AtStop) -> AbortHandle {
        let work = tokio::spawn(pending::<()>());
        let handle = work.abort_handle();
        runs.keep(handle.clone(), at_stop, end_of(work));
        handle
    }

    async fn end_of(work: JoinHandle<()>) {
        let _ = work.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_cancels_the_runs_that_cannot_be_told_and_waits_for_the_others() {
        let runs = DetachedRuns::default();
        let told = keep_endless(&runs, AtStop::Wait);
        let cancelled = keep_endless(&runs, AtStop::Cancel);

        runs.cancel();
        assert_eq!(runs.wait(Duration::from_secs(1)).await, 1);
        assert!(cancelled.is_finished() && !told.is_finished());
        told.abort();
    }

    #[tokio::test]
    async fn ended_runs_are_not_kept() {
        let runs = DetachedRuns::default();
        for _ in 0..3 {
            let work = tokio::spawn(async {});
            let handle = work.abort_handle();
            let watch = tokio::spawn(end_of(work)).abort_handle();
            runs.keep(handle, AtStop::Cancel, async {});
            while !watch.is_finished() {
                yield_now().await;
            }
        }
        // The watch of the last run might not have been polled.
        yield_now().await;
        let last = keep_endless(&runs, AtStop::Wait);
        assert_eq!(runs.count(), 1);
        assert_eq!(runs.0.lock().to_cancel.len(), 0);
        last.abort();
    }
}
