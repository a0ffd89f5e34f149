//! The files whose variants are to be made in advance, one after the other.
//!
//! # Locking
//! One mutex around the sender to the task that works the queue off, held for a `try_send`. The
//! first caller who finds no such task starts one; it owns the waiting files, and ends with the
//! last of them.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::tasks;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// The most files that wait; more are dropped.
const WAITING: usize = 256;

/// The work for one file.
pub(super) type Preparation = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The files whose variants are to be made.
#[derive(Default)]
pub(super) struct EagerQueue {
    worker: Mutex<Option<mpsc::Sender<Preparation>>>,
    made: AtomicU64,
    dropped: AtomicU64,
}

impl EagerQueue {
    /// Counts the files that wait.
    pub(super) fn waiting(&self) -> u64 {
        let worker = self.worker.lock();
        worker.as_ref().map_or(0, |worker| (worker.max_capacity() - worker.capacity()) as u64)
    }

    /// Returns the variants made since the start.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Returns the files dropped since the start.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Queues the work for a file, and drops it if too many wait.
    pub(super) fn push(&self, file: Preparation) {
        let mut worker = self.worker.lock();
        let file = match worker.as_ref() {
            None => file,
            Some(worker) => match worker.try_send(file) {
                Ok(()) => return,
                Err(TrySendError::Full(_)) => return self.count_dropped("too many files wait"),
                Err(TrySendError::Closed(file)) => file,
            },
        };

        let (sender, waiting) = mpsc::channel(WAITING);
        let _ = sender.try_send(file);
        *worker = Some(sender);
        tasks::spawn(work_off(waiting));
    }

    pub(super) fn count_made(&self, variants: u64) {
        self.made.fetch_add(variants, Ordering::Relaxed);
    }

    pub(super) fn count_dropped(&self, why: &str) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(why, "variants are not made in advance");
    }
}

/// Does one file after the other, until none waits: on one thread at most, so that requests have
/// the others.
async fn work_off(mut waiting: mpsc::Receiver<Preparation>) {
    loop {
        while let Ok(file) = waiting.try_recv() {
            // A task of its own, so that a panic ends nothing but that task.
            let _ = tasks::spawn(file).await;
        }
        if waiting.is_closed() {
            return;
        }

        // From here on senders start another worker; files that came just before are still done.
        waiting.close();
    }
}
