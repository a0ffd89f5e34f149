//! Threads for decoding, apart from the async runtime's.
//!
//! Purpose: pictures are decoded by a fixed number of threads, so that they neither stall requests
//! nor multiply with them. What nobody waits for yet is done when nothing else is to do. Locking: one channel; a job owns what it needs. A job that panics is
//! the end of that job only. The threads end when the last handle is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, select_biased};

use super::engine::busy;
use crate::domain::error::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

/// A handle on the threads. Cheap to clone.
#[derive(Clone)]
pub(super) struct Pool {
    jobs: Sender<Job>,
    background: Sender<Job>,
}

impl Pool {
    /// Starts `threads` threads with room for `queue` waiting jobs.
    pub(super) fn start(threads: usize, queue: usize) -> Result<Self> {
        let (jobs, waiting) = bounded::<Job>(queue);
        let (background, patient) = bounded::<Job>(1);
        for number in 0..threads {
            let (waiting, patient) = (waiting.clone(), patient.clone());
            thread::Builder::new()
                .name(format!("variant-{number}"))
                .spawn(move || {
                    while let Some(job) = next(&waiting, &patient) {
                        // A panic has been reported by its hook; what the job held is dropped, and
                        // whoever waits for it sees that.
                        let _ = catch_unwind(AssertUnwindSafe(job));
                    }
                })
                .map_err(|error| Error::io("starting a variant thread", error))?;
        }
        Ok(Self { jobs, background })
    }

    /// Queues `job`; [`Busy`](crate::ErrorKind::Busy) if the queue is full.
    pub(super) fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        self.jobs.try_send(Box::new(job)).map_err(|error| match error {
            TrySendError::Full(_) => busy(),
            TrySendError::Disconnected(_) => Error::internal("queueing a variant", "the pool is gone"),
        })
    }

    /// Queues `job` behind all that are [`submit`](Self::submit)ted meanwhile; one may wait at a time.
    pub(super) fn submit_patient(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        self.background.try_send(Box::new(job)).map_err(|_| busy())
    }

    /// Whether jobs wait for a thread.
    pub(super) fn is_pressed(&self) -> bool {
        !self.jobs.is_empty()
    }
}

/// The next job, the patient ones last; `None` once the pool is gone.
fn next(waiting: &Receiver<Job>, patient: &Receiver<Job>) -> Option<Job> {
    select_biased! {
        recv(waiting) -> job => job.ok(),
        recv(patient) -> job => job.ok(),
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
    fn a_patient_job_lets_the_others_pass() {
        let pool = Pool::start(1, 4).unwrap();
        let (started, has_started) = mpsc::channel();
        let (go, gate) = mpsc::channel::<()>();
        pool.submit(move || {
            started.send(()).unwrap();
            gate.recv().unwrap();
        })
        .unwrap();
        has_started.recv().unwrap();
        let (done, order) = mpsc::channel();
        let say = |word| {
            let done = done.clone();
            move || done.send(word).unwrap()
        };
        pool.submit_patient(say("patient")).unwrap();
        assert_eq!(pool.submit_patient(|| {}).unwrap_err().kind(), ErrorKind::Busy);
        assert!(!pool.is_pressed());
        pool.submit(say("first")).unwrap();
        pool.submit(say("second")).unwrap();
        assert!(pool.is_pressed());
        go.send(()).unwrap();
        let ran: Vec<_> = order.iter().take(3).collect();
        assert_eq!(ran, ["first", "second", "patient"]);
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
