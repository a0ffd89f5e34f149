//! The places and the memory that requests share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::domain::error::{Error, ErrorKind, Result};

/// The most places, whatever is configured: a semaphore has no room for more.
const MAX_PLACES: usize = 1 << 16;
/// The unit in which decode memory is handed out, in bytes.
const MEMORY_UNIT: u64 = 1024;

/// Returns the error of a request that finds no place, no memory or no thread.
pub(super) fn busy() -> Error {
    Error::new(ErrorKind::Busy, "too many variants are being made").with_retry_after_secs(1)
}

/// The bounds of the work under way. A permit is released when it is dropped.
pub(super) struct Limits {
    places: Arc<Semaphore>,
    pub(super) memory: Arc<Semaphore>,
    animations: Arc<Semaphore>,
}

impl Limits {
    /// Bounds the requests, the bytes that are held at a time, and the animations by the number of `threads`:
    /// half of them stay free of animations, which take seconds each.
    pub(super) fn new(places: usize, memory_bytes: u64, threads: usize) -> Self {
        Self {
            animations: Arc::new(Semaphore::new((threads / 2).max(1))),
            places: Arc::new(Semaphore::new(places)),
            memory: Arc::new(Semaphore::new(memory_units(memory_bytes) as usize)),
        }
    }

    /// Counts the places for `threads` running and `queue` waiting requests.
    pub(super) fn places(threads: usize, queue: usize) -> usize {
        threads.saturating_add(queue).min(MAX_PLACES)
    }

    /// Takes a place for one request; [`ErrorKind::Busy`] if there is none.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().map_err(|_| busy())
    }

    /// Waits for `bytes` of memory, but not longer than `patience`: [`ErrorKind::Busy`] after that.
    pub(super) async fn wait_for_memory(
        &self,
        bytes: u64,
        patience: Duration,
    ) -> Result<OwnedSemaphorePermit> {
        let memory = self.memory.clone().acquire_many_owned(memory_units(bytes));
        let memory = timeout(patience, memory).await.map_err(|_| busy())?;
        memory.map_err(|error| Error::internal("waiting for decode memory", error))
    }

    /// Waits for a turn of an animation, but not longer than `patience`: [`ErrorKind::Busy`] after that.
    pub(super) async fn wait_for_animation(
        &self,
        patience: Duration,
    ) -> Result<OwnedSemaphorePermit> {
        let turn = timeout(patience, self.animations.clone().acquire_owned());
        let turn = turn.await.map_err(|_| busy())?;
        turn.map_err(|error| Error::internal("waiting for a turn", error))
    }

    /// Takes `bytes` of memory if they are free now.
    pub(super) fn memory_if_free(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        self.memory.clone().try_acquire_many_owned(memory_units(bytes)).ok()
    }
}

/// Converts bytes to the semaphore's units: at least one, and no more than the semaphore can count.
fn memory_units(bytes: u64) -> u32 {
    let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
    u32::try_from(bytes.div_ceil(MEMORY_UNIT)).unwrap_or(most).clamp(1, most)
}
