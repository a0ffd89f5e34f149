//! The queue of files that wait for variants in advance. The files are processed one after the other.
//!
//! # Purpose
//! Organizations share the places and the turns fairly (`variant/fair.rs`). An organization with many uploads
//! does not delay the files of others.
//!
//! # Locking
//! One mutex protects the queue, and is held only for look-ups. If no task processes the queue, the next
//! caller starts a task. The task ends with the last file.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::domain::id::OrganizationId;
use crate::tasks;
use crate::variant::fair::{FairQueue, Fit};

/// The maximum number of waiting files. Further files are dropped.
const WAITING: usize = 256;

/// The work for one file.
pub(super) type Preparation = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The files that wait for their variants.
pub(super) struct EagerQueue {
    line: Arc<Mutex<Line>>,
    made: AtomicU64,
    dropped: AtomicU64,
}

struct Line {
    files: FairQueue<Preparation>,
    /// True while a task processes the queue.
    is_worked_off: bool,
}

impl Default for EagerQueue {
    fn default() -> Self {
        let line = Line { files: FairQueue::new(1, WAITING), is_worked_off: false };
        Self {
            line: Arc::new(Mutex::new(line)),
            made: AtomicU64::default(),
            dropped: AtomicU64::default(),
        }
    }
}

impl EagerQueue {
    /// Returns the number of waiting files.
    pub(super) fn waiting(&self) -> u64 {
        self.line.lock().files.waiting().count() as u64
    }

    /// Returns the number of variants made since the start.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Returns the number of files dropped since the start.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Queues the work for a file of `organization`. If too many files wait, drops this file or a file of the
    /// organization with the most files.
    pub(super) fn push(&self, organization: &OrganizationId, file: Preparation) {
        let (displaced, starts) = {
            let mut line = self.line.lock();
            let displaced = match line.files.join(organization) {
                None => Some(file),
                Some(joined) => {
                    line.files.ready(&joined.ticket, file);
                    joined.displaced
                }
            };
            (displaced, !std::mem::replace(&mut line.is_worked_off, true))
        };

        if displaced.is_some() {
            self.count_dropped("too many files wait");
        }
        if starts {
            tasks::spawn(work_off(Working::begin(&self.line)));
        }
    }

    pub(super) fn count_made(&self, variants: u64) {
        self.made.fetch_add(variants, Ordering::Relaxed);
    }

    pub(super) fn count_dropped(&self, why: &str) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(why, "variants are not made in advance");
    }
}

/// The duty to process a queue. If its task ends early, the next caller gets the duty.
struct Working {
    line: Arc<Mutex<Line>>,
    /// The organization of the current file.
    current: Option<OrganizationId>,
    is_over: bool,
}

impl Working {
    fn begin(line: &Arc<Mutex<Line>>) -> Self {
        Self { line: Arc::clone(line), current: None, is_over: false }
    }

    /// Ends the work on a file and returns the next one. `None` if no file waits. The duty then ends.
    fn next(&mut self) -> Option<Preparation> {
        let mut line = self.line.lock();
        if let Some(done) = self.current.take() {
            line.files.end(&done);
        }
        let Some((organization, file)) = line.files.next(|_| Fit::Now) else {
            line.is_worked_off = false;
            self.is_over = true;
            return None;
        };
        self.current = Some(organization);
        Some(file)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut line = self.line.lock();
        line.is_worked_off = false;
        if let Some(begun) = self.current.take() {
            line.files.end(&begun);
        }
    }
}

/// Processes one file after the other until none waits. The call uses at most one thread, so that requests
/// have the other threads.
async fn work_off(mut working: Working) {
    while let Some(file) = working.next() {
        // A task of its own, so that a panic ends nothing but that task.
        let _ = tasks::spawn(file).await;
    }
}
