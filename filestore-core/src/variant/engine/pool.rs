//! The threads for decoding, separate from the async runtime, and the memory that decoders share.
//!
//! # Purpose
//! A fixed number of threads decodes pictures. Decoding therefore neither blocks requests nor multiplies with
//! them. Organizations share the threads fairly, by the rules of [`FairQueue`]. Work without a waiting caller
//! runs only if no other work can run. While a thread is idle, a picture can get a second thread, which is
//! created for it and ends with it.
//!
//! A request first takes a place ([`Place`]), opens its file and reads the header. The request then declares
//! its memory need. The request gets a thread, the memory, and a turn for an animation all at once, so that
//! no request holds one of them while it waits for another. One request at a time waits for memory, and
//! smaller requests do not overtake it.
//!
//! The thread that became idle last works next. The system's allocator keeps memory for each thread that ever
//! used much. So the pool uses only as many threads as there is concurrent work. A plain channel would use
//! all threads in turn. No other allocator was tried.
//!
//! # Locking
//! One mutex protects the queues. It is never held while a task runs, and a task owns its data. A panic ends
//! only its task. The threads end when the last handle is dropped and no work waits.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::OrganizationId;
use crate::domain::report::load::QueueLoad;
use crate::variant::fair::{FairQueue, Fit, Joined, Ticket};
use crate::variant::pictures::{Spare, Task};

/// Returns the error for a request without a place, memory or thread.
pub(super) fn busy() -> Error {
    Error::new(ErrorKind::Busy, "too many variants are being made").with_retry_after_secs(1)
}

/// A handle on the threads. Cheap to clone.
#[derive(Clone)]
pub(super) struct Pool {
    owner: Arc<Owner>,
    threads: usize,
    /// The maximum number of waiting and working requests.
    places: usize,
}

/// The tasks and threads of a pool, in numbers.
pub(super) struct PoolLoad {
    pub(super) tasks: QueueLoad,
    pub(super) busy_threads: u64,
    pub(super) threads: u64,
}

/// Shared by all handles. When it is dropped, the threads end.
struct Owner {
    queues: Arc<Mutex<Queues>>,
}

struct Queues {
    requests: FairQueue<Request>,
    /// The total memory, in bytes.
    all_bytes: u64,
    /// The free memory, in bytes.
    free_bytes: u64,
    /// The number of animations that can begin.
    free_animations: usize,
    /// Tasks whose thread has ended.
    begun: VecDeque<Task>,
    /// The task that runs when no other work can run.
    when_idle: Option<Task>,
    /// The channels of idle threads. The thread that became idle last is at the end.
    idle: Vec<Sender<Task>>,
    closed: bool,
}

/// The work of a request that waits for a thread.
struct Request {
    kind: Kind,
    bytes: u64,
    task: Box<dyn FnOnce(Held) + Send>,
}

/// The kind of a request's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A picture or a sheet.
    Still,
    /// An animation. An animation takes seconds, so half of the threads stay free of animations.
    Animation,
}

impl Pool {
    /// Starts `threads` threads, with places for `queue` waiting requests and `memory_bytes` for all
    /// decoders.
    pub(super) fn start(threads: usize, queue: usize, memory_bytes: u64) -> Result<Self> {
        let queues = Queues {
            requests: FairQueue::new(threads, queue),
            all_bytes: memory_bytes,
            free_bytes: memory_bytes,
            free_animations: (threads / 2).max(1),
            begun: VecDeque::new(),
            when_idle: None,
            idle: Vec::with_capacity(threads),
            closed: false,
        };
        let owner = Arc::new(Owner { queues: Arc::new(Mutex::new(queues)) });
        let pool = Self { owner, threads, places: threads.saturating_add(queue) };

        for number in 0..threads {
            let queues = Arc::clone(&pool.owner.queues);
            thread::Builder::new()
                .name(format!("variant-{number}"))
                .spawn(move || work(&queues))
                .map_err(|error| Error::io("starting a variant thread", error))?;
        }
        Ok(pool)
    }

    /// Takes a place for a request of `organization`. [`Busy`](crate::ErrorKind::Busy) if there is none.
    pub(super) fn place(&self, organization: &OrganizationId) -> Result<Place> {
        let joined = self.owner.queues.lock().requests.join(organization);
        let Joined { ticket, here, .. } = joined.ok_or_else(busy)?;
        Ok(Place { queues: Arc::clone(&self.owner.queues), ticket, here })
    }

    /// Queues `task` behind all requests. Only one such task can wait.
    pub(super) fn submit_when_idle(&self, task: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut queues = self.owner.queues.lock();
        if queues.when_idle.is_some() {
            return Err(busy());
        }
        queues.when_idle = queues.hand_over(Box::new(task));
        Ok(())
    }

    /// Takes `bytes` of memory if they are free, and no request waits for memory.
    pub(super) fn memory_if_free(&self, bytes: u64) -> Option<Memory> {
        let mut queues = self.owner.queues.lock();
        let free = queues.free_bytes;
        if bytes > free || queues.requests.waiting().any(|request| request.bytes > free) {
            return None;
        }
        queues.free_bytes -= bytes;
        Some(Memory { queues: Arc::clone(&self.owner.queues), bytes })
    }

    /// Returns the number of threads.
    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Returns the number of waiting tasks and working threads.
    pub(super) fn load(&self) -> PoolLoad {
        let queues = self.owner.queues.lock();
        PoolLoad {
            tasks: QueueLoad::new(queues.requests.waiting().count(), self.places),
            busy_threads: self.threads.saturating_sub(queues.idle.len()) as u64,
            threads: self.threads as u64,
        }
    }

    /// Returns true if requests wait for a thread.
    pub(super) fn is_pressed(&self) -> bool {
        self.owner.queues.lock().requests.waiting().next().is_some()
    }

    /// Returns the free memory, in bytes.
    #[cfg(test)]
    pub(super) fn free_bytes(&self) -> u64 {
        self.owner.queues.lock().free_bytes
    }
}

/// The place of a request. Dropping it frees the place, unless a thread has begun the work.
pub(super) struct Place {
    queues: Arc<Mutex<Queues>>,
    ticket: Ticket,
    here: oneshot::Receiver<Infallible>,
}

impl Place {
    /// Runs the `work` before the thread's work. [`Busy`](crate::ErrorKind::Busy) after another organization
    /// displaced this request.
    pub(super) async fn keeps<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            _ = &mut self.here => Err(busy()),
            done = work => done,
        }
    }

    /// Passes `task` to a thread when a thread and `bytes` of memory are free. If another organization
    /// displaced this request, or the place is freed before, the task is dropped.
    pub(super) fn submit(&self, kind: Kind, bytes: u64, task: impl FnOnce(Held) + Send + 'static) {
        let mut queues = self.queues.lock();
        // More than all of it would be waited for in vain.
        let request = Request { kind, bytes: bytes.min(queues.all_bytes), task: Box::new(task) };
        let lost = queues.requests.ready(&self.ticket, request);
        queues.begin(&self.queues);
        drop(queues);
        drop(lost);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        let left = queues.requests.leave(&self.ticket);
        // It may have been the one that waited for memory in front of others.
        queues.begin(&self.queues);
        drop(queues);
        drop(left);
    }
}

/// The turn and the memory of a running request.
pub(super) struct Held {
    /// Returned when the work is done.
    pub(super) turn: Turn,
    /// Returned when its bytes are freed.
    pub(super) memory: Memory,
}

/// The turn of a request. Dropping it allows another request.
pub(super) struct Turn {
    queues: Arc<Mutex<Queues>>,
    organization: OrganizationId,
    kind: Kind,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        queues.requests.end(&self.organization);
        if self.kind == Kind::Animation {
            queues.free_animations += 1;
        }
        queues.begin(&self.queues);
    }
}

/// A share of the decoders' memory. Dropping it returns the memory.
pub(super) struct Memory {
    queues: Arc<Mutex<Queues>>,
    bytes: u64,
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        queues.free_bytes += self.bytes;
        queues.begin(&self.queues);
    }
}

/// While a thread is idle, a part of another picture's work runs on an additional thread. The idle thread
/// stays free for the next request.
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
    /// Passes requests that can begin to idle threads. `own` is the lock around this value.
    fn begin(&mut self, own: &Arc<Mutex<Self>>) {
        while !self.idle.is_empty() {
            let Some(task) = self.next_request(own) else { return };
            let left = self.hand_over(task);
            self.begun.extend(left);
        }
    }

    /// Removes the next request, with the memory that it needs.
    fn next_request(&mut self, own: &Arc<Mutex<Self>>) -> Option<Task> {
        let (bytes, animations) = (self.free_bytes, self.free_animations);
        let fit = |request: &Request| match request.kind {
            Kind::Animation if animations == 0 => Fit::Later,
            _ if request.bytes > bytes => Fit::First,
            _ => Fit::Now,
        };
        let (organization, Request { kind, bytes, task }) = self.requests.next(fit)?;

        self.free_bytes -= bytes;
        if kind == Kind::Animation {
            self.free_animations -= 1;
        }
        let held = Held {
            turn: Turn { queues: Arc::clone(own), organization, kind },
            memory: Memory { queues: Arc::clone(own), bytes },
        };
        Some(Box::new(move || task(held)))
    }

    /// Passes `task` to the thread that became idle last. Returns the task if all threads work.
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

    /// Returns the next task. The task for idle threads comes last.
    fn next(&mut self, own: &Arc<Mutex<Self>>) -> Next {
        let task = self.begun.pop_front().or_else(|| self.next_request(own));
        if let Some(task) = task {
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
    /// No work now. The next task will arrive here.
    Expected(Receiver<Task>),
    End,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        queues.closed = true;
        // A thread that expects a task sees that none will come.
        queues.idle.clear();
        let undone = queues.when_idle.take();
        drop(queues);
        drop(undone);
    }
}

/// Runs tasks until the pool is gone.
fn work(queues: &Arc<Mutex<Queues>>) {
    while let Some(task) = next(queues) {
        // A panic has been reported by its hook; what the task holds is dropped, and a caller that
        // waits for the task sees that.
        let _ = catch_unwind(AssertUnwindSafe(task));
    }
}

/// Waits for the next task. `None` after the pool is dropped.
fn next(queues: &Arc<Mutex<Queues>>) -> Option<Task> {
    // The lock is released before the wait.
    let next = queues.lock().next(queues);
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

    fn pool(threads: usize, queue: usize) -> Pool {
        Pool::start(threads, queue, 1000).unwrap()
    }

    impl Pool {
        /// Hands over a task of an organization that needs no memory.
        fn submit(&self, of: &str, task: impl FnOnce() + Send + 'static) -> Result<Place> {
            self.submit_with(of, Kind::Still, 0, task)
        }

        fn submit_with(
            &self,
            of: &str,
            kind: Kind,
            bytes: u64,
            task: impl FnOnce() + Send + 'static,
        ) -> Result<Place> {
            let place = self.place(&of.parse().unwrap())?;
            place.submit(kind, bytes, move |held| {
                task();
                drop(held);
            });
            Ok(place)
        }

        /// Keeps a thread busy until the returned sender is dropped.
        fn occupy(&self, of: &str, kind: Kind, bytes: u64) -> (mpsc::Sender<()>, Place) {
            let ((go, gate), (started, has_started)) = (mpsc::channel::<()>(), mpsc::channel());
            let task = move || {
                started.send(()).unwrap();
                let _ = gate.recv();
            };
            let place = self.submit_with(of, kind, bytes, task).unwrap();
            has_started.recv().unwrap();
            (go, place)
        }
    }

    #[test]
    fn a_task_that_panics_leaves_its_thread_alive() {
        let pool = pool(1, 4);
        let _panics =
            pool.submit_with("a", Kind::Still, 1000, || panic!("expected by this test")).unwrap();
        let (done, result) = mpsc::channel();
        let _next =
            pool.submit_with("a", Kind::Still, 1000, move || done.send(7).unwrap()).unwrap();
        assert_eq!(result.recv().unwrap(), 7);
    }

    #[test]
    fn a_task_for_idle_threads_lets_the_others_pass() {
        let pool = pool(1, 4);
        let (go, _place) = pool.occupy("a", Kind::Still, 0);
        let (done, order) = mpsc::channel();
        let say = |word| {
            let done = done.clone();
            move || done.send(word).unwrap()
        };
        pool.submit_when_idle(say("when idle")).unwrap();
        assert_eq!(pool.submit_when_idle(|| {}).unwrap_err().kind(), ErrorKind::Busy);
        assert!(!pool.is_pressed());
        let _first = pool.submit("a", say("first")).unwrap();
        let _second = pool.submit("a", say("second")).unwrap();
        assert!(pool.is_pressed());
        drop(go);
        let ran: Vec<_> = order.iter().take(3).collect();
        assert_eq!(ran, ["first", "second", "when idle"]);
    }

    #[test]
    fn a_full_queue_is_busy_at_once() {
        let pool = pool(1, 1);
        let (go, _place) = pool.occupy("a", Kind::Still, 0);
        let _waits = pool.submit("a", || {}).unwrap();
        let error = pool.submit("a", || {}).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(error.details().retry_after_secs, Some(1));
        let load = pool.load();
        assert_eq!((load.tasks.waiting, load.tasks.max), (1, 2));
        assert_eq!((load.busy_threads, load.threads), (1, 1));
        drop(go);
    }

    #[test]
    fn an_organization_with_all_threads_and_places_is_not_in_the_way_of_another() {
        let pool = pool(2, 64);
        let (first, _one) = pool.occupy("greedy", Kind::Still, 500);
        let (_second, _other) = pool.occupy("greedy", Kind::Still, 500);
        let (done, order) = mpsc::channel();
        let say = |word| {
            let done = done.clone();
            move || done.send(word).unwrap()
        };
        let mut waiting = Vec::new();
        while let Ok(place) = pool.submit_with("greedy", Kind::Still, 500, say("greedy")) {
            waiting.push(place);
        }
        assert_eq!(waiting.len(), 64);

        let _theirs = pool.submit_with("other", Kind::Still, 500, say("other")).unwrap();
        drop(first);
        assert_eq!(order.recv().unwrap(), "other");
        assert_eq!(order.recv().unwrap(), "greedy");
    }

    #[test]
    fn a_request_that_needs_much_memory_is_not_passed_by_smaller_ones_and_animations_are() {
        let pool = pool(2, 8);
        let (go, _place) = pool.occupy("a", Kind::Still, 600);
        let (done, order) = mpsc::channel();
        let say = |word| {
            let done = done.clone();
            move || done.send(word).unwrap()
        };
        let _large = pool.submit_with("b", Kind::Still, 1000, say("large")).unwrap();
        let _small = pool.submit_with("c", Kind::Still, 100, say("small")).unwrap();
        assert!(pool.memory_if_free(100).is_none(), "a request waits for memory");
        drop(go);
        assert_eq!(order.iter().take(2).collect::<Vec<_>>(), ["large", "small"]);

        // Half of the threads stay free of animations.
        let (go, _place) = pool.occupy("a", Kind::Animation, 0);
        let _moving = pool.submit_with("b", Kind::Animation, 0, say("moving")).unwrap();
        let _still = pool.submit_with("b", Kind::Still, 0, say("still")).unwrap();
        assert_eq!(order.recv().unwrap(), "still");
        drop(go);
        assert_eq!(order.recv().unwrap(), "moving");
        while pool.free_bytes() < 1000 {
            thread::yield_now();
        }
    }

    #[test]
    fn more_memory_than_there_is_is_all_of_it() {
        let pool = pool(1, 1);
        let (done, result) = mpsc::channel();
        let _place =
            pool.submit_with("a", Kind::Still, 5000, move || done.send(7).unwrap()).unwrap();
        assert_eq!(result.recv().unwrap(), 7);
    }

    #[tokio::test]
    async fn a_request_that_lost_its_place_ends_before_its_work() {
        let pool = pool(1, 1);
        let (_go, _running) = pool.occupy("greedy", Kind::Still, 0);
        let mut place = pool.place(&"greedy".parse().unwrap()).unwrap();
        let never = std::future::pending::<Result<()>>();
        let (theirs, lost) =
            tokio::join!(async { pool.submit("other", || {}) }, place.keeps(never));
        assert_eq!(lost.unwrap_err().kind(), ErrorKind::Busy);
        let (dropped, seen) = oneshot::channel::<()>();
        place.submit(Kind::Still, 0, move |_| drop(dropped));
        assert!(seen.await.is_err());
        drop(theirs.unwrap());
    }

    #[test]
    fn a_part_of_a_task_runs_beside_it_while_a_thread_is_idle_and_leaves_that_free() {
        let pool = pool(2, 4);
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
        let gates = [0, 1].map(|_| pool.occupy("a", Kind::Still, 0));
        assert!(pool.start(Box::new(|| {})).is_err());
        drop(gates);
        go.send(()).unwrap();
        assert_eq!(ended.recv().unwrap().as_deref(), Some("variant-aside"));
    }

    #[test]
    fn the_thread_that_worked_last_works_next() {
        let pool = pool(8, 4);
        let (done, ran_on) = mpsc::channel();
        let mut names: Vec<_> = (0..50)
            .map(|_| {
                // All of them, so that the last one is known.
                while pool.owner.queues.lock().idle.len() < 8 {
                    thread::yield_now();
                }
                let done = done.clone();
                let _place = pool
                    .submit("a", move || {
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
        let pool = pool(1, 4);
        let (go, _place) = pool.occupy("a", Kind::Still, 0);
        let (done, order) = mpsc::channel();
        let _waits = pool.submit("a", move || done.send(7).unwrap()).unwrap();
        drop(pool);
        drop(go);
        assert_eq!(order.recv().unwrap(), 7);
        assert!(order.recv().is_err(), "the thread is still there");
    }
}
