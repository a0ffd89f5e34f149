//! Threads for decoding, apart from the async runtime's.
//!
//! Purpose: pictures are decoded by a fixed number of threads, so that they neither stall requests
//! nor multiply with them. What nobody waits for yet is done when nothing else is to do.
//!
//! The thread that went idle last is the next to work: the system's allocator keeps memory for each
//! thread that ever used much, so no more threads are used than have work at the same time.
//!
//! Locking: one mutex around the queues, never held while a job runs; a job owns what it needs. A job
//! that panics is the end of that job only. The threads end when the last handle is dropped and
//! nothing waits.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Sender, bounded};
use parking_lot::Mutex;

use super::engine::busy;
use crate::domain::error::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

/// A handle on the threads. Cheap to clone.
#[derive(Clone)]
pub(super) struct Pool {
    owner: Arc<Owner>,
}

/// What the handles share; its end is the end of the threads.
struct Owner {
    queues: Arc<Mutex<Queues>>,
}

struct Queues {
    /// What waits while all threads work, the first to run in front.
    jobs: VecDeque<Job>,
    /// How many may wait.
    most: usize,
    /// Runs when nothing else waits.
    patient: Option<Job>,
    /// Where the threads that have nothing to do expect a job, the latest idle at the end.
    idle: Vec<Sender<Job>>,
    closed: bool,
}

impl Pool {
    /// Starts `threads` threads with room for `queue` waiting jobs.
    pub(super) fn start(threads: usize, queue: usize) -> Result<Self> {
        let queues = Queues {
            jobs: VecDeque::new(),
            most: queue,
            patient: None,
            idle: Vec::with_capacity(threads),
            closed: false,
        };
        let pool = Self { owner: Arc::new(Owner { queues: Arc::new(Mutex::new(queues)) }) };
        for number in 0..threads {
            let queues = Arc::clone(&pool.owner.queues);
            thread::Builder::new()
                .name(format!("variant-{number}"))
                .spawn(move || {
                    while let Some(job) = next(&queues) {
                        // A panic has been reported by its hook; what the job held is dropped, and
                        // whoever waits for it sees that.
                        let _ = catch_unwind(AssertUnwindSafe(job));
                    }
                })
                .map_err(|error| Error::io("starting a variant thread", error))?;
        }
        Ok(pool)
    }

    /// Hands `job` to a thread, or queues it; [`Busy`](crate::ErrorKind::Busy) if the queue is full.
    pub(super) fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut queues = self.owner.queues.lock();
        if let Some(job) = queues.hand_over(Box::new(job)) {
            if queues.jobs.len() >= queues.most {
                return Err(busy());
            }
            queues.jobs.push_back(job);
        }
        Ok(())
    }

    /// Queues `job` behind all that are [`submit`](Self::submit)ted meanwhile; one may wait at a time.
    pub(super) fn submit_patient(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut queues = self.owner.queues.lock();
        if queues.patient.is_some() {
            return Err(busy());
        }
        queues.patient = queues.hand_over(Box::new(job));
        Ok(())
    }

    /// Whether jobs wait for a thread.
    pub(super) fn is_pressed(&self) -> bool {
        !self.owner.queues.lock().jobs.is_empty()
    }
}

impl Queues {
    /// Gives `job` to the thread that went idle last; returns it if all work.
    fn hand_over(&mut self, mut job: Job) -> Option<Job> {
        while let Some(idle) = self.idle.pop() {
            match idle.send(job) {
                Ok(()) => return None,
                // Nobody is there any more to take it.
                Err(refused) => job = refused.0,
            }
        }
        Some(job)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        queues.closed = true;
        // Who expects a job sees that none will come.
        queues.idle.clear();
    }
}

/// The next job, the patient one last; `None` once the pool is gone.
fn next(queues: &Mutex<Queues>) -> Option<Job> {
    let expected = {
        let mut queues = queues.lock();
        if let Some(job) = queues.jobs.pop_front() {
            return Some(job);
        }
        if queues.closed {
            return None;
        }
        if let Some(job) = queues.patient.take() {
            return Some(job);
        }
        let (give, expected) = bounded(1);
        queues.idle.push(give);
        expected
    };
    expected.recv().ok()
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

    #[test]
    fn the_thread_that_worked_last_works_next() {
        let pool = Pool::start(8, 4).unwrap();
        let (done, ran_on) = mpsc::channel();
        let mut names: Vec<_> = (0..50)
            .map(|_| {
                // All of them, so that the last one is known.
                while pool.owner.queues.lock().idle.len() < 8 {
                    thread::yield_now();
                }
                let done = done.clone();
                pool.submit(move || {
                    done.send(thread::current().name().map(str::to_owned)).unwrap()
                })
                .unwrap();
                ran_on.recv().unwrap()
            })
            .collect();
        names.dedup();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn what_waits_is_done_though_the_last_handle_goes() {
        let pool = Pool::start(1, 4).unwrap();
        let (go, gate) = mpsc::channel::<()>();
        let (done, order) = mpsc::channel();
        pool.submit(move || gate.recv().unwrap()).unwrap();
        pool.submit(move || done.send(7).unwrap()).unwrap();
        drop(pool);
        go.send(()).unwrap();
        assert_eq!(order.recv().unwrap(), 7);
        assert!(order.recv().is_err(), "the thread is still there");
    }
}
