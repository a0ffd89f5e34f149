//! Work that a rendering gives to a second thread, while its own thread continues.
//!
//! # Purpose
//! On an idle machine, a client waits less. On a busy machine, the rendering does all work on its own thread.
//! The result is the same.
//!
//! # Faults
//! If the work panics, it has no outcome, and the waiting thread gets `None` or an error.

use std::error::Error;
use std::mem;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::guard::guarded;

/// Work for another thread.
pub type Task = Box<dyn FnOnce() + Send>;

/// The reason why a step accepts no more bytes.
type Broken = Box<dyn Error + Send + Sync>;

/// The bytes in one batch. A batch fits into the second-level cache.
const BATCH_BYTES: usize = 64 << 10;
/// The maximum number of batches in progress.
const BATCHES: usize = 4;
/// The minimum size of a stream that is worth a second thread, in bytes.
const WORTH_BYTES: u64 = 1 << 20;

/// Lends a second thread to a rendering. Implement this trait on your thread pool, and refuse if the pool is
/// busy.
pub trait Spare {
    /// Starts `task` on another thread. Returns the task as `Err` if no thread is idle.
    fn start(&self, task: Task) -> Result<(), Task>;
}

/// A [`Spare`] without threads: the caller's own thread does all work.
pub struct NoSpare;

impl Spare for NoSpare {
    fn start(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }
}

/// A [`Spare`] that starts a new thread for each task.
#[cfg(test)]
pub(crate) struct NewThreads;

#[cfg(test)]
impl Spare for NewThreads {
    fn start(&self, task: Task) -> Result<(), Task> {
        std::thread::spawn(task);
        Ok(())
    }
}

/// The future outcome of work on another thread.
pub(crate) struct Aside<T>(Receiver<T>);

impl<T: Send + 'static> Aside<T> {
    /// Starts `work` on `with` on another thread. Returns `with` as `Err` if no thread is idle.
    pub(crate) fn start<W: Send + 'static>(
        spare: &dyn Spare,
        with: W,
        work: impl FnOnce(W) -> T + Send + 'static,
    ) -> Result<Self, W> {
        let (give, given) = bounded(1);
        let (report, outcome) = bounded(1);
        let task = move || {
            if let Ok(Ok(made)) = guarded(|| given.recv().map(work)) {
                let _ = report.send(made);
            }
        };

        if spare.start(Box::new(task)).is_err() {
            return Err(with);
        }
        // The receiver is the task's, which the thread has.
        let _ = give.send(with);
        Ok(Self(outcome))
    }

    /// Waits for the outcome. `None` if the work panicked.
    pub(crate) fn wait(self) -> Option<T> {
        self.0.recv().ok()
    }
}

/// A consumer of a byte stream.
pub(crate) trait Step: Send + 'static {
    /// Consumes the next bytes. The bytes are one or more pushed pieces.
    fn take(&mut self, bytes: &[u8]) -> Result<(), Broken>;
}

/// A stream of bytes into a step. The step runs on an idle thread if there is one, otherwise on this thread.
pub(crate) enum Stream<S> {
    Here(S),
    Aside(Feed<S>),
}

/// The connection to a step on another thread.
pub(crate) struct Feed<S> {
    batch: Vec<u8>,
    batches: usize,
    full: Sender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    outcome: Aside<Result<S, Broken>>,
}

impl<S: Step> Stream<S> {
    /// Starts a stream of about `bytes` bytes.
    pub(crate) fn start(step: S, bytes: u64, spare: &dyn Spare) -> Self {
        if bytes < WORTH_BYTES {
            return Self::Here(step);
        }

        let (full, filled) = bounded(BATCHES);
        let (emptied, empty) = bounded(BATCHES);
        let all = move |mut step: S| {
            for batch in filled {
                let mut batch: Vec<u8> = batch;
                step.take(&batch)?;
                batch.clear();
                // Nobody may want it any more.
                let _ = emptied.send(batch);
            }
            Ok(step)
        };
        match Aside::start(spare, step, all) {
            Ok(outcome) => {
                Self::Aside(Feed { batch: Vec::new(), batches: 1, full, empty, outcome })
            }
            Err(step) => Self::Here(step),
        }
    }

    /// Passes the next bytes to the step. Fails if the step accepts no more.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        match self {
            Self::Here(step) => step.take(bytes),
            Self::Aside(feed) => feed.push(bytes),
        }
    }

    /// Waits until the step has consumed all bytes, and returns the step.
    pub(crate) fn finish(self) -> Result<S, Broken> {
        match self {
            Self::Here(step) => Ok(step),
            Self::Aside(mut feed) => {
                // If it takes no more, the outcome says why.
                let _ = feed.hand_over(Vec::new());
                let Feed { full, outcome, .. } = feed;
                drop(full);
                outcome.wait().ok_or("the thread panicked")?
            }
        }
    }
}

impl<S> Feed<S> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.batch.extend_from_slice(bytes);
        if self.batch.len() < BATCH_BYTES {
            return Ok(());
        }

        let next = if self.batches < BATCHES {
            self.batches += 1;
            Vec::with_capacity(self.batch.len())
        } else {
            self.empty.recv()?
        };
        self.hand_over(next)
    }

    /// Sends the current batch, and continues with an empty batch.
    fn hand_over(&mut self, next: Vec<u8>) -> Result<(), Broken> {
        let batch = mem::replace(&mut self.batch, next);
        self.full.send(batch).map_err(|_| "no more is taken".into())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Collects bytes, and breaks off after so many.
    struct Collected {
        bytes: Vec<u8>,
        most: usize,
        on: Option<thread::ThreadId>,
    }

    impl Step for Collected {
        fn take(&mut self, bytes: &[u8]) -> Result<(), Broken> {
            self.on = Some(thread::current().id());
            self.bytes.extend_from_slice(bytes);
            if self.bytes.len() > self.most { Err("enough".into()) } else { Ok(()) }
        }
    }

    fn collected(
        pieces: &[u8],
        most: usize,
        announced: u64,
        spare: &dyn Spare,
    ) -> Result<Collected, Broken> {
        let step = Collected { bytes: Vec::new(), most, on: None };
        let mut stream = Stream::start(step, announced, spare);
        for piece in pieces.chunks(1000) {
            if stream.push(piece).is_err() {
                break;
            }
        }
        stream.finish()
    }

    #[test]
    fn a_step_takes_all_bytes_in_their_order_wherever_it_runs() {
        let pieces: Vec<u8> = (0..3_000_001u32).map(|at| (at % 251) as u8).collect();
        let here = thread::current().id();
        for length in [0, 1, 1000, 65_536, 2_000_000, pieces.len()] {
            let pieces = &pieces[..length];
            let aside = collected(pieces, usize::MAX, WORTH_BYTES, &NewThreads).unwrap();
            assert!(aside.bytes == pieces && aside.on != Some(here), "{length}");
            for (bytes, spare) in [(WORTH_BYTES, &NoSpare as &dyn Spare), (1000, &NewThreads)] {
                let alone = collected(pieces, usize::MAX, bytes, spare).unwrap();
                assert!(alone.bytes == pieces, "{length}");
                assert!(length == 0 || alone.on == Some(here), "{length}");
            }
        }
    }

    #[test]
    fn a_step_that_breaks_off_stops_the_stream_and_says_why() {
        let pieces = vec![7; 2_000_000];
        for spare in [&NoSpare as &dyn Spare, &NewThreads] {
            for most in [0, 100_000, 1_999_999] {
                let step = Collected { bytes: Vec::new(), most, on: None };
                let mut stream = Stream::start(step, WORTH_BYTES, spare);
                let broken = pieces.chunks(1000).find_map(|piece| stream.push(piece).err());
                let error = match (stream, broken) {
                    (Stream::Here(_), broken) => broken.unwrap(),
                    (aside, _) => aside.finish().err().unwrap(),
                };
                assert_eq!(error.to_string(), "enough");
            }
        }
    }

    #[test]
    fn work_that_panics_has_no_outcome() {
        let panics = Aside::<u8>::start(&NewThreads, (), |()| panic!("expected by this test"));
        assert_eq!(panics.ok().unwrap().wait(), None);
        let made = Aside::start(&NewThreads, 6, |six| six + 1);
        assert_eq!(made.ok().unwrap().wait(), Some(7));
        assert_eq!(Aside::start(&NoSpare, 6, |six| six + 1).err(), Some(6));
    }
}
