//! Turns: the right of an upload to large blocks, and to a file that stays open between them.
//!
//! # Purpose
//! Large blocks make an upload fast. Memory and file descriptors limit the number of such uploads. Only an
//! upload with fast bytes gets a turn, and loses it when it slows down. An upload without a turn continues in
//! small blocks, and opens its file for each block. Uploads therefore never wait for each other, and a slow
//! client uses few resources, even over a long time.
//!
//! # Locking
//! A semaphore. The code tries to take a permit, but never waits for one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::time::clock::Clock;

/// The block size of an upload with a turn.
pub(super) const LARGE_BLOCK_BYTES: usize = 256 * 1024;

/// The block size of an upload without a turn.
pub(super) const SMALL_BLOCK_BYTES: usize = 16 * 1024;

/// The maximum duration of a small block for an upload to get a turn: a rate of 64 KiB/s.
const SMALL_BLOCK_TIME: Duration = Duration::from_millis(250);

/// The maximum duration of a large block for an upload to keep its turn: the same rate.
const LARGE_BLOCK_TIME: Duration = Duration::from_secs(4);

/// The turns of a store.
pub(in crate::storage::local) struct Turns {
    free: Arc<Semaphore>,
    clock: Clock,
}

impl Turns {
    pub(in crate::storage::local) fn new(count: usize, clock: Clock) -> Self {
        let count = count.clamp(1, Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(count)), clock }
    }

    /// Begins to watch the speed of an upload.
    pub(super) fn pace(&self) -> Pace {
        let (free, clock) = (Arc::clone(&self.free), self.clock.clone());
        let since = clock.monotonic();
        Pace { free, clock, since, turn: None }
    }

    #[cfg(test)]
    pub(in crate::storage::local) fn free(&self) -> usize {
        self.free.available_permits()
    }
}

/// The speed of one upload, and its turn while it is fast.
pub(super) struct Pace {
    free: Arc<Semaphore>,
    clock: Clock,
    /// The start time of the current block.
    since: Duration,
    turn: Option<OwnedSemaphorePermit>,
}

impl Pace {
    /// Begins the next block.
    pub(super) fn begin_block(&mut self) {
        self.since = self.clock.monotonic();
    }

    /// Returns the size of the current block, which has `filled` bytes. If the result is no more than that,
    /// write the block now. Takes or returns a turn, depending on the duration of the bytes.
    pub(super) fn block_bytes(&mut self, filled: usize) -> usize {
        let took = self.clock.monotonic().saturating_sub(self.since);

        if self.turn.is_some() && took > LARGE_BLOCK_TIME {
            self.turn = None;
            return filled;
        }
        if self.turn.is_none() && filled >= SMALL_BLOCK_BYTES && took <= SMALL_BLOCK_TIME {
            self.turn = Arc::clone(&self.free).try_acquire_owned().ok();
        }
        if self.turn.is_some() { LARGE_BLOCK_BYTES } else { SMALL_BLOCK_BYTES.max(filled) }
    }

    /// Returns true if the upload has a turn.
    pub(super) fn has_turn(&self) -> bool {
        self.turn.is_some()
    }
}
