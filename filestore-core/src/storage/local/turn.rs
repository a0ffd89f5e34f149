//! Turns: the right of an upload to large blocks, and to a file that stays open between them.
//!
//! # Purpose
//! Large blocks make an upload fast; memory and descriptors bound how many uploads can have them. Only
//! an upload whose bytes come fast takes a turn, and one that slows down loses it. An upload without
//! a turn goes on in small blocks, and opens its file for each. So uploads never wait for one another,
//! and a client that sends little holds little, for however long it does so.
//!
//! # Locking
//! A semaphore, of which a permit is tried and never waited for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::clock::Clock;

/// Bytes of a block of an upload that has a turn.
pub(super) const LARGE_BLOCK_BYTES: usize = 256 * 1024;

/// Bytes of a block of an upload without a turn.
pub(super) const SMALL_BLOCK_BYTES: usize = 16 * 1024;

/// Longest time of a small block whose upload gets a turn, and so a rate of 64 KiB/s.
const SMALL_BLOCK_TIME: Duration = Duration::from_millis(250);

/// Longest time of a large block whose upload keeps its turn: the same rate.
const LARGE_BLOCK_TIME: Duration = Duration::from_secs(4);

/// The turns of a store.
pub(super) struct Turns {
    free: Arc<Semaphore>,
    clock: Clock,
}

impl Turns {
    pub(super) fn new(count: usize, clock: Clock) -> Self {
        let count = count.clamp(1, Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(count)), clock }
    }

    /// Begins to watch the pace of an upload.
    pub(super) fn pace(&self) -> Pace {
        let (free, clock) = (Arc::clone(&self.free), self.clock.clone());
        let since = clock.monotonic();
        Pace { free, clock, since, turn: None }
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.free.available_permits()
    }
}

/// The pace of one upload, and its turn while that is fast.
pub(super) struct Pace {
    free: Arc<Semaphore>,
    clock: Clock,
    /// The time at which the present block was begun.
    since: Duration,
    turn: Option<OwnedSemaphorePermit>,
}

impl Pace {
    /// Begins another block.
    pub(super) fn begin_block(&mut self) {
        self.since = self.clock.monotonic();
    }

    /// Returns the size of the present block, which has `filled` bytes: no more than those if the block
    /// is to be written now. Takes a turn, or gives the turn back, by how long the bytes took.
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

    /// Tells whether the upload has a turn.
    pub(super) fn has_turn(&self) -> bool {
        self.turn.is_some()
    }
}
