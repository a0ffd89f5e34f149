//! Reusable buffers for reads.
//!
//! # Purpose
//! The kernel provides a new buffer page by page, and clears each page before it is read into. This costs as
//! much as the copy itself. After a buffer is sent, it therefore returns to this pool.
//!
//! # Locking
//! One mutex for each length. It is held while a pointer is pushed or popped.

use std::mem;

use bytes::Bytes;
use parking_lot::Mutex;

/// The largest range for these reads. A larger range would delay other reads while it is copied.
pub(super) const PIECE_BYTES: u64 = 64 * 1024;

/// The size of one read, and of the largest range that is read without a stream.
pub const READ_BLOCK_BYTES: u64 = 256 * 1024;

/// The maximum number of spare buffers for each length: 20 MiB in total.
const KEPT: usize = 64;

/// Unused buffers of one length. Buffers belong to the process and not to a store, like the memory pages that
/// they save.
struct Spare {
    length: u64,
    buffers: Mutex<Vec<Vec<u8>>>,
}

static SPARE: [Spare; 2] = [Spare::of(PIECE_BYTES), Spare::of(READ_BLOCK_BYTES)];

impl Spare {
    const fn of(length: u64) -> Self {
        Self { length, buffers: Mutex::new(Vec::new()) }
    }

    /// Returns the spare buffers of exactly this length, if the pool has this length.
    fn of_length(length: usize) -> Option<&'static Self> {
        SPARE.iter().find(|spare| spare.length == length as u64)
    }

    /// Adds a buffer to the spare buffers, unless there are enough.
    fn keep(&self, buffer: Vec<u8>) {
        let mut buffers = self.buffers.lock();
        if buffers.len() < KEPT {
            buffers.push(buffer);
        }
    }
}

/// A buffer to read into. When it or the last clone of its bytes is dropped, a buffer of a pooled length
/// returns to the pool.
pub(super) struct Block(Vec<u8>);

impl Block {
    /// Returns a spare or new buffer of `length` bytes. The buffer can contain bytes of an earlier read.
    pub(in crate::storage::local) fn take(length: usize) -> Self {
        let spare = Spare::of_length(length).and_then(|spare| spare.buffers.lock().pop());
        Self(spare.unwrap_or_else(|| vec![0; length]))
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// Converts a filled buffer to bytes.
    pub(in crate::storage::local) fn share(mut self) -> Bytes {
        match Spare::of_length(self.0.len()) {
            Some(_) => Bytes::from_owner(self),
            None => mem::take(&mut self.0).into(),
        }
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(spare) = Spare::of_length(self.0.len()) {
            spare.keep(mem::take(&mut self.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = READ_BLOCK_BYTES;

    fn spare() -> &'static Spare {
        &SPARE[1]
    }

    fn take() -> Block {
        Block::take(usize::try_from(LENGTH).unwrap())
    }

    #[test]
    fn a_buffer_is_not_used_again_before_the_last_bytes_are_dropped() {
        let block = take();
        let place = block.0.as_ptr();

        let bytes = block.share();
        assert_eq!(bytes.len() as u64, LENGTH);
        let slice = bytes.slice(2..4);
        drop(bytes);
        let is_spare = || spare().buffers.lock().iter().any(|spare| spare.as_ptr() == place);
        assert_eq!(slice.len(), 2);
        assert!(!is_spare());
    }

    #[test]
    fn buffers_of_other_lengths_are_not_kept() {
        assert!(Spare::of_length(10).is_none());
        assert_eq!(Block::take(10).share().len(), 10);
    }

    #[test]
    fn no_more_than_so_many_are_kept() {
        let blocks: Vec<_> = (0..KEPT + 8).map(|_| take().share()).collect();
        drop(blocks);
        assert!(spare().buffers.lock().len() <= KEPT);

        let spare = Spare::of(4);
        for _ in 0..KEPT + 8 {
            spare.keep(vec![0; 4]);
        }
        assert_eq!(spare.buffers.lock().len(), KEPT);
    }
}
