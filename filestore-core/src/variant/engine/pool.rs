//! Threads for decoding, apart from the async runtime's.
//!
//! # Purpose
//! Pictures are decoded by a fixed number of threads, so that they neither stall requests nor
//! multiply with them. A task that nobody waits for yet is done when nothing else is to do. While a thread is
//! idle, a picture may have a second one, which is made for it and ends with it.
//!
//! The thread that went idle last is the next to work: the system's allocator keeps memory for each
//! thread that ever used much, so no more threads are used than have work at the same time. A plain
//! channel would wake them in turn. No other allocator was tried.
//!
//! # Locking
//! One mutex around the queues, never held while a task runs; a task owns what it needs. A task that
//! panics is the end of that task only. The threads end when the last handle is dropped and nothing
//! waits.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;

use super::limits::busy;
use crate::domain::error::{Error, Result};
use crate::domain::load::QueueLoad;
use crate::variant::pipeline::aside::{Spare, Task};

/// A handle on the threads. Cheap to clone.
#[derive(Clone)]
pub(super) struct Pool {
    owner: Arc<Owner>,
    threads: usize,
}

/// The tasks and threads of a pool, in numbers.
pub(super) struct PoolLoad {
    pub(super) tasks: QueueLoad,
    pub(super) busy_threads: u64,
    pub(super) threads: u64,
}

/// The share of all handles: with it end the threads.
struct Owner {
    queues: Arc<Mutex<Queues>>,
}

struct Queues {
    /// The tasks that wait while all threads work, the first to run in front.
    waiting: VecDeque<Task>,
    /// The most tasks that may wait.
    most: usize,
    /// The task that runs when nothing else waits.
    when_idle: Option<Task>,
    /// The channels on which idle threads expect a task, the latest idle at the end.
    idle: Vec<Sender<Task>>,
    closed: bool,
}

impl Pool {
    /// Starts `threads` threads with room for `queue` waiting tasks.
    pub(super) fn start(threads: usize, queue: usize) -> Result<Self> {
        let queues = Queues {
            waiting: VecDeque::new(),
            most: queue,
            when_idle: None,
            idle: Vec::with_capacity(threads),
            closed: false,
        };
        let owner = Arc::new(Owner { queues: Arc::new(Mutex::new(queues)) });
        let pool = Self { owner, threads };

        for number in 0..threads {
            let queues = Arc::clone(&pool.owner.queues);
            thread::Builder::new()
                .name(format!("variant-{number}"))
                .spawn(move || work(&queues))
                .map_err(|error| Error::io("starting a variant thread", error))?;
        }
        Ok(pool)
    }

    /// Hands `task` to a thread, or queues it; [`Busy`](crate::ErrorKind::Busy) if the queue is
    /// full.
    pub(super) fn submit(&self, task: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut queues = self.owner.queues.lock();
        if let Some(task) = queues.hand_over(Box::new(task)) {
            if queues.waiting.len() >= queues.most {
                return Err(busy());
            }
            queues.waiting.push_back(task);
        }
        Ok(())
    }

    /// Queues `task` behind all that are [`submit`](Self::submit)ted meanwhile; one may wait at a
    /// time.
    pub(super) fn submit_when_idle(&self, task: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut queues = self.owner.queues.lock();
        if queues.when_idle.is_some() {
            return Err(busy());
        }
        queues.when_idle = queues.hand_over(Box::new(task));
        Ok(())
    }

    /// Returns the number of threads.
    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Counts the tasks that wait, and the threads that work.
    pub(super) fn load(&self) -> PoolLoad {
        let queues = self.owner.queues.lock();
        PoolLoad {
            tasks: QueueLoad::new(queues.waiting.len(), queues.most),
            busy_threads: self.threads.saturating_sub(queues.idle.len()) as u64,
            threads: self.threads as u64,
        }
    }

    /// Returns true if tasks wait for a thread.
    pub(super) fn is_pressed(&self) -> bool {
        !self.owner.queues.lock().waiting.is_empty()
    }
}

/// While a thread is idle, a part of another's work is done beside it, on a thread that is made for that: the idle
/// one stays free for what comes next.
impl Spare for Pool {
    fn start(&self, task: Task) -> Result<(), Task> {
        if self.owner.queues.lock().idle.is_empty() {
            return Err(task);
        }
        let place = Arc::new(Mutex::new(Some(task)));
        let taken = Arc::clone(&place);
        let started = thread::Builder::new().name("variant-aside".to_owned()).spawn(move || {
            let task = taken.lock().take();
            // Aside catches panics.
            if let Some(task) = task {
                task();
            }
        });
        match started {
            Ok(_) => Ok(()),
            // There is no room for a thread.
            Err(_) => place.lock().take().map_or(Ok(()), Err),
        }
    }
}

impl Queues {
    /// Gives `task` to the thread that went idle last; returns it if all work.
    fn hand_over(&mut self, mut task: Task) -> Option<Task> {
        while let Some(idle) = self.idle.pop() {
            match idle.send(task) {
                Ok(()) => return None,
                // The thread is gone, and nobody takes the task.
                Err(refused) => task = refused.0,
            }
        }
        Some(task)
    }

    /// Takes the next task, the one for idle threads last.
    fn next(&mut self) -> Next {
        if let Some(task) = self.waiting.pop_front() {
            return Next::Task(task);
        }
        if self.closed {
            return Next::End;
        }
        if let Some(task) = self.when_idle.take() {
            return Next::Task(task);
        }

        let (give, expected) = bounded(1);
        self.idle.push(give);
        Next::Expected(expected)
    }
}

/// The next thing for a thread to do.
enum Next {
    Task(Task),
    /// Nothing now: the next task will come here.
    Expected(Receiver<Task>),
    End,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        queues.closed = true;
        // A thread that expects a task sees that none will come.
        queues.idle.clear();
    }
}

/// Runs tasks until the pool is gone.
fn work(queues: &Mutex<Queues>) {
    while let Some(task) = next(queues) {
        // A panic has been reported by its hook; the task's permits are dropped, and a caller that
        // waits for the task sees that.
        let _ = catch_unwind(AssertUnwindSafe(task));
    }
}

/// Waits for the next task; `None` once the pool is gone.
fn next(queues: &Mutex<Queues>) -> Option<Task> {
    // The lock is released before the wait.
    let next = queues.lock().next();
    match next {
        Next::Task(task) => Some(task),
        Next::Expected(expected) => expected.recv().ok(),
        Next::End => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::domain::error::ErrorKind;

    #[test]
    fn a_task_that_panics_leaves_its_thread_alive() {
        let pool = Pool::start(1, 4).unwrap();
        pool.submit(|| panic!("expected by this test")).unwrap();
        let (done, result) = mpsc::channel();
        pool.submit(move || done.send(7).unwrap()).unwrap();
        assert_eq!(result.recv().unwrap(), 7);
    }

    #[test]
    fn a_task_for_idle_threads_lets_the_others_pass() {
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
        pool.submit_when_idle(say("when idle")).unwrap();
        assert_eq!(pool.submit_when_idle(|| {}).unwrap_err().kind(), ErrorKind::Busy);
        assert!(!pool.is_pressed());
        pool.submit(say("first")).unwrap();
        pool.submit(say("second")).unwrap();
        assert!(pool.is_pressed());
        go.send(()).unwrap();
        let ran: Vec<_> = order.iter().take(3).collect();
        assert_eq!(ran, ["first", "second", "when idle"]);
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
        let load = pool.load();
        assert_eq!((load.tasks.waiting, load.tasks.max), (1, 1));
        assert_eq!((load.busy_threads, load.threads), (1, 1));
        go.send(()).unwrap();
    }

    #[test]
    fn a_part_of_a_task_runs_beside_it_while_a_thread_is_idle_and_leaves_that_free() {
        let pool = Pool::start(2, 4).unwrap();
        while pool.load().busy_threads > 0 {
            thread::yield_now();
        }
        let (go, gate) = mpsc::channel::<()>();
        let (done, ended) = mpsc::channel();
        let part = pool.start(Box::new(move || {
            gate.recv().unwrap();
            done.send(thread::current().name().map(str::to_owned)).unwrap();
        }));
        assert!(part.is_ok());
        assert_eq!(pool.load().busy_threads, 0);

        // Both threads work: nothing is to spare.
        let gates = [0, 1].map(|_| {
            let ((go, gate), (started, has_started)) = (mpsc::channel::<()>(), mpsc::channel());
            pool.submit(move || {
                started.send(()).unwrap();
                gate.recv().unwrap();
            })
            .unwrap();
            has_started.recv().unwrap();
            go
        });
        assert!(pool.start(Box::new(|| {})).is_err());
        for gate in gates {
            gate.send(()).unwrap();
        }
        go.send(()).unwrap();
        assert_eq!(ended.recv().unwrap().as_deref(), Some("variant-aside"));
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
                    done.send(thread::current().name().map(str::to_owned)).unwrap();
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
