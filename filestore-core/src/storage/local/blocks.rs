//! Buffers of reads, used again and again.
//!
//! # Purpose
//! A fresh buffer of this size comes from the kernel page by page, each page cleared before it is
//! read into: that costs as much as the copy itself. A buffer that was sent goes back here instead.
//!
//! # Locking
//! One mutex for each length, for as long as a pointer is pushed or popped.

use std::mem;

use bytes::Bytes;
use parking_lot::Mutex;

use super::cached_read::PIECE_BYTES;
use super::read::READ_BLOCK_BYTES;

/// The most buffers of a length that are kept: 20 MiB in all.
const KEPT: usize = 64;

/// Buffers of a length that nobody reads into or sends from. They belong to the process rather than to a
/// store: so do the pages that they save.
struct Spare {
    length: u64,
    buffers: Mutex<Vec<Vec<u8>>>,
}

static SPARE: [Spare; 2] = [Spare::of(PIECE_BYTES), Spare::of(READ_BLOCK_BYTES)];

impl Spare {
    const fn of(length: u64) -> Self {
        Self { length, buffers: Mutex::new(Vec::new()) }
    }

    /// Returns the spare buffers of just that length, if such are kept.
    fn of_length(length: usize) -> Option<&'static Self> {
        SPARE.iter().find(|spare| spare.length == length as u64)
    }

    /// Puts a buffer among the spare ones, unless there are enough of them.
    fn keep(&self, buffer: Vec<u8>) {
        let mut buffers = self.buffers.lock();
        if buffers.len() < KEPT {
            buffers.push(buffer);
        }
    }
}

/// A buffer to read into. One of a usual length comes back here when it, or the last clone of its bytes, is
/// dropped.
pub(super) struct Block(Vec<u8>);

impl Block {
    /// Takes a spare buffer of `length` bytes, or a new one. What is in it is left over from another read.
    pub(super) fn take(length: usize) -> Self {
        let spare = Spare::of_length(length).and_then(|spare| spare.buffers.lock().pop());
        Self(spare.unwrap_or_else(|| vec![0; length]))
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// Makes bytes of a buffer that was filled.
    pub(super) fn share(mut self) -> Bytes {
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
