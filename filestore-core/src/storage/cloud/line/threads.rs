//! A provider's own threads, for the `fs` service.
//!
//! # Purpose
//! A call into a file system can hang, for example on a hard NFS mount without a server, and cannot be
//! cancelled. Its thread is lost until the mount answers. OpenDAL makes such calls on the runtime that polls
//! it, and some of them on the polling threads themselves (fsync, extended attributes). An `fs` provider
//! therefore has its own small runtime, separate from all other threads. The runtime starts with the first
//! operation. Its shutdown does not wait for hanging threads.
//!
//! # Locking
//! Two mutexes. They are held for a few instructions, and never across an await.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opendal::ErrorKind as Theirs;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::tasks;

/// The number of concurrent operations. Each can need two threads: one polls, and one blocks.
const THREADS: usize = 8;

/// The threads of one provider.
pub(in crate::storage::cloud) struct Threads {
    runtime: Mutex<Option<Runtime>>,
    free: Arc<Semaphore>,
    running: Arc<Running>,
    /// The time after which an operation counts as hanging.
    patience: Duration,
}

/// The running operations, by the time at which they count as hanging.
#[derive(Default)]
struct Running {
    next: AtomicU64,
    due: Mutex<BTreeMap<u64, Instant>>,
}

/// A running operation. The value ends with the operation itself, not with the wait for the result.
struct Step {
    running: Arc<Running>,
    number: u64,
    _thread: OwnedSemaphorePermit,
}

impl Threads {
    /// Prepares threads. Operations should take at most `patience`.
    pub(in crate::storage::cloud) fn new(patience: Duration) -> Self {
        Self {
            runtime: Mutex::new(None),
            free: Arc::new(Semaphore::new(THREADS)),
            running: Arc::default(),
            patience,
        }
    }

    /// Runs `work` and waits for it, at most `extra` longer than usual. After that, the work continues and
    /// keeps its thread. Fails at once while all threads hang.
    pub(in crate::storage::cloud) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        extra: Duration,
    ) -> opendal::Result<T> {
        if tasks::is_simulated() {
            return Ok(work.await);
        }

        let limit = self.patience + extra;
        let thread = self.thread().await?;
        let step = self.running.begin(thread, limit);

        let task = self.handle()?.spawn(async move {
            let done = work.await;
            drop(step);
            done
        });
        match timeout(limit, task).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(lost)) => Err(fault("an operation broke off").set_source(lost)),
            Err(_) => Err(fault("file system timeout reached")),
        }
    }

    async fn thread(&self) -> opendal::Result<OwnedSemaphorePermit> {
        if let Ok(thread) = Arc::clone(&self.free).try_acquire_owned() {
            return Ok(thread);
        }
        if self.running.all_hang() {
            return Err(fault("all threads of the provider hang"));
        }

        let thread = timeout(self.patience, Arc::clone(&self.free).acquire_owned()).await;
        let thread = thread.map_err(|_| fault("all threads of the provider hang"))?;
        Ok(thread.expect("the threads are never closed"))
    }

    fn handle(&self) -> opendal::Result<Handle> {
        let mut runtime = self.runtime.lock();
        if let Some(runtime) = &*runtime {
            return Ok(runtime.handle().clone());
        }

        let started = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(THREADS)
            .thread_name("fs provider")
            .enable_time()
            .build();
        let started = started.map_err(|error| fault("no threads").set_source(error))?;
        let handle = started.handle().clone();
        *runtime = Some(started);
        Ok(handle)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.get_mut().take() {
            runtime.shutdown_background();
        }
    }
}

impl Running {
    fn begin(self: &Arc<Self>, thread: OwnedSemaphorePermit, limit: Duration) -> Step {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.due.lock().insert(number, Instant::now() + limit);
        Step { running: Arc::clone(self), number, _thread: thread }
    }

    fn all_hang(&self) -> bool {
        let (due, now) = (self.due.lock(), Instant::now());
        due.len() >= THREADS && due.values().all(|due| *due <= now)
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.running.due.lock().remove(&self.number);
    }
}

/// Returns the error for an outage, which is neither an answer nor a refusal.
fn fault(message: &'static str) -> opendal::Error {
    opendal::Error::new(Theirs::Unexpected, message).set_persistent()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn operations_that_hang_fail_the_next_at_once_and_their_threads_come_back() {
        // Enough for an operation that does not hang, also on a busy machine.
        let threads = Threads::new(Duration::from_secs(1));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));

        let hanging = (0..THREADS).map(|_| {
            let held = Arc::clone(&held);
            let work = async move { held.lock().recv().is_err() };
            threads.run(work, Duration::ZERO)
        });
        for outcome in futures_util::future::join_all(hanging).await {
            assert!(outcome.unwrap_err().message().contains("timeout"));
        }

        let refused = threads.run(async {}, Duration::ZERO).now_or_never();
        let refused = refused.expect("an answer at once").unwrap_err();
        assert!(refused.message().contains("all threads"), "{refused}");

        drop(release);
        while threads.free.available_permits() < THREADS {
            tokio::task::yield_now().await;
        }
        threads.run(async {}, Duration::ZERO).await.unwrap();
    }
}
