//! Variants made in advance, when a picture arrives: in the background, one decode for all sizes.
//!
//! Purpose: a favour to the first who looks. It is best effort: what waits is lost when the process
//! ends, and given up whenever requests need the threads or the memory; whatever is missing is made
//! when it is asked for. Nothing here delays or fails an upload.
//!
//! Locking: one mutex around the sender to the task that works the queue off, held for a `try_send`.
//! That task is started by the first who finds none, owns what waits, and ends when nothing does.

use std::collections::HashMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::engine::{Inner, VariantEngine, memory_units};
use super::flight::Claim;
use super::source::Deadline;
use super::{KeyDigest, Variant, VariantKey};
use crate::domain::error::{Error, ErrorKind, Result};

/// How many files may wait; more are dropped.
const WAITING: usize = 256;

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The files whose variants are to be made.
#[derive(Default)]
pub(super) struct EagerQueue {
    worker: Mutex<Option<mpsc::Sender<Job>>>,
    made: AtomicU64,
    dropped: AtomicU64,
}

impl EagerQueue {
    /// Files waiting.
    pub(super) fn waiting(&self) -> u64 {
        let worker = self.worker.lock();
        worker.as_ref().map_or(0, |worker| (worker.max_capacity() - worker.capacity()) as u64)
    }

    /// Variants made so far.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Files given up so far.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Queues `job`; drops it if too many wait.
    fn push(&self, job: Job) {
        let mut worker = self.worker.lock();
        let job = match worker.as_ref() {
            None => job,
            Some(worker) => match worker.try_send(job) {
                Ok(()) => return,
                Err(TrySendError::Full(_)) => return self.count_dropped("too many files wait"),
                Err(TrySendError::Closed(job)) => job,
            },
        };
        let (sender, waiting) = mpsc::channel(WAITING);
        let _ = sender.try_send(job);
        *worker = Some(sender);
        tokio::spawn(work_off(waiting));
    }

    fn count_dropped(&self, why: &str) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(why, "variants are not made in advance");
    }
}

/// One file after the other, until none waits: on one thread at most, so that requests have the others.
async fn work_off(mut waiting: mpsc::Receiver<Job>) {
    loop {
        while let Ok(job) = waiting.try_recv() {
            // A task of its own, so that a panic ends nothing but it.
            let _ = tokio::spawn(job).await;
        }
        if waiting.is_closed() {
            return;
        }
        // From here on senders start another worker; what came just before is still done here.
        waiting.close();
    }
}

impl VariantEngine {
    /// Makes the variants of one file in the background, those that are not there yet, from one
    /// decode. Returns at once; must be called within a Tokio runtime.
    ///
    /// `keys` differ in size and fit only; `source` and `still_current` are those of
    /// [`get`](Self::get). Best effort: nothing is reported, and the work is dropped when too many
    /// files wait, when requests need the threads or the memory, and when the process ends.
    pub fn prepare<S, C, F>(&self, keys: Vec<VariantKey>, source: S, still_current: C)
    where
        S: Future<Output = Result<File>> + Send + 'static,
        C: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = bool> + Send + 'static,
    {
        if keys.is_empty() {
            return;
        }
        let inner = self.inner.clone();
        let job = async move {
            let file_id = keys[0].file_id;
            match Arc::clone(&inner).prepare(keys, source, still_current).await {
                Ok(made) => {
                    inner.eager.made.fetch_add(made, Ordering::Relaxed);
                    tracing::debug!(%file_id, made, "variants made in advance");
                }
                Err(error) if error.kind() == ErrorKind::Busy => {
                    inner.eager.count_dropped(error.message())
                }
                // Who asks for one will hear it; most of them are no pictures.
                Err(error) => {
                    tracing::debug!(%file_id, %error, "variants cannot be made in advance")
                }
            }
        };
        self.inner.eager.push(Box::pin(job));
    }
}

impl Inner {
    /// Returns how many were made.
    async fn prepare<C, F>(
        self: Arc<Self>,
        keys: Vec<VariantKey>,
        source: impl Future<Output = Result<File>> + Send,
        still_current: C,
    ) -> Result<u64>
    where
        C: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = bool> + Send + 'static,
    {
        let keys = self.missing(keys).await;
        if keys.is_empty() || !still_current().await {
            return Ok(0);
        }
        let wanted = keys.iter().map(|key| (key.size, key.fit)).collect();
        let assessed = self.assess(source.await?, wanted).await;
        let (mut work, file) = assessed.inspect_err(|error| self.remember_all(&keys, error))?;
        if work.memory_bytes == 0 {
            return Ok(0);
        }
        // Never waits for memory: the requests behind it would wait as well.
        let memory =
            self.decode_memory.clone().try_acquire_many_owned(memory_units(work.memory_bytes));
        let memory = memory.map_err(|_| pressed("requests need the memory"))?;

        let (made, mut results) = mpsc::unbounded_channel();
        let (keep, rest) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let (inner, digests) =
            (Arc::clone(&self), keys.iter().map(VariantKey::digest).collect::<Vec<_>>());
        self.pool.submit_patient(move || {
            // Only now, so that nobody waits for work that has not begun.
            let mut claims: Claims = work
                .rendered()
                .filter_map(|index| Some((index, inner.flights.claim(digests[index])?)))
                .collect();
            work.retain(|index| claims.contains_key(&index));
            let deadline = Deadline::after(inner.config.deadline);
            let outcome = work.run(&file, inner.config.quality, deadline, |index, variant| {
                if let Some(claim) = claims.remove(&index) {
                    let _ = made.send((index, variant, claim));
                }
                if inner.pool.is_pressed() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            let outcome = outcome.map(|stock| {
                if let Some(kept) = stock.and_then(|stock| stock.keep(inner.max_kept_bytes())) {
                    let _ = keep.send(kept);
                }
            });
            drop(memory);
            let complete = claims.is_empty();
            let _ = end.send(outcome.and_then(|()| {
                if complete { Ok(()) } else { Err(pressed("requests need the threads")) }
            }));
        })?;

        let mut count = 0;
        while let Some((index, variant, claim)) = results.recv().await {
            let key = &keys[index];
            if still_current().await {
                self.publish(key, key.digest(), &variant).await;
                self.withdraw_unless(still_current().await, key, key.digest()).await;
            }
            claim.land(Ok(variant));
            count += 1;
        }
        Arc::clone(&self).keep(keys[0].clone(), rest, still_current).await;
        match ended.await {
            Ok(Ok(())) => Ok(count),
            Ok(Err(error)) => {
                self.remember_all(&keys, &error);
                self.eager.made.fetch_add(count, Ordering::Relaxed);
                Err(error)
            }
            Err(_) => Err(Error::internal("making variants in advance", "the decoder panicked")),
        }
    }

    async fn missing(&self, keys: Vec<VariantKey>) -> Vec<VariantKey> {
        let mut missing = Vec::with_capacity(keys.len());
        for key in keys {
            if self.memory.get(&key).is_none()
                && self.read_disk(key.file_id, key.digest()).await.is_none()
            {
                missing.push(key);
            }
        }
        missing
    }

    fn remember_all(&self, keys: &[VariantKey], error: &Error) {
        for key in keys {
            self.remember(key.digest(), error);
        }
    }
}

type Claims = HashMap<usize, Claim<KeyDigest, Variant>>;

/// The outcome of work given up in favour of requests.
fn pressed(why: &str) -> Error {
    Error::new(ErrorKind::Busy, why)
}
