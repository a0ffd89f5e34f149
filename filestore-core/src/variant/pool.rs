//! Threads for decoding, apart from the async runtime's.
//!
//! Purpose: pictures are decoded by a fixed number of threads, so that they neither stall requests
//! nor multiply with them. Locking: one channel; a job owns what it needs. A job that panics is
//! the end of that job only. The threads end when the last handle is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crossbeam_channel::{Sender, TrySendError, bounded};

use super::engine::busy;
use crate::domain::error::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

/// A handle on the threads. Cheap to clone.
#[derive(Clone)]
pub(super) struct Pool {
    jobs: Sender<Job>,
}

impl Pool {
    /// Starts `threads` threads with room for `queue` waiting jobs.
    pub(super) fn start(threads: usize, queue: usize) -> Result<Self> {
        let (jobs, waiting) = bounded::<Job>(queue);
        for number in 0..threads {
            let waiting = waiting.clone();
            thread::Builder::new()
                .name(format!("variant-{number}"))
                .spawn(move || {
                    for job in waiting {
                        // A panic has been reported by its hook; what the job held is dropped, and
                        // whoever waits for it sees that.
                        let _ = catch_unwind(AssertUnwindSafe(job));
                    }
                })
                .map_err(|error| Error::io("starting a variant thread", error))?;
        }
        Ok(Self { jobs })
    }

    /// Queues `job`; [`Busy`](crate::ErrorKind::Busy) if the queue is full.
    pub(super) fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        self.jobs.try_send(Box::new(job)).map_err(|error| match error {
            TrySendError::Full(_) => busy(),
            TrySendError::Disconnected(_) => Error::internal("queueing a variant", "the pool is gone"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::domain::error::ErrorKind;

    #[test]
    fn a_job_that_panics_leaves_its_thread_alive() {
        let pool = Pool::start(1, 4).unwrap();
        pool.submit(|| panic!("expected by this test")).unwrap();
        let (done, result) = mpsc::channel();
        pool.submit(move || done.send(7).unwrap()).unwrap();
        assert_eq!(result.recv().unwrap(), 7);
    }

    #[test]
    fn a_full_queue_is_busy_at_once() {
        let pool = Pool::start(1, 1).unwrap();
        let (started, has_started) = mpsc::channel();
        let (go, gate) = mpsc::channel::<()>();
        pool.submit(move || {
            started.send(()).unwrap();
            gate.recv().unwrap();
        })
        .unwrap();
        has_started.recv().unwrap();
        pool.submit(|| {}).unwrap();
        let error = pool.submit(|| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(error.details().retry_after_secs, Some(1));
        go.send(()).unwrap();
    }
}
