//! Buffers of reads, used again and again.
//!
//! # Purpose
//! A fresh buffer of this size comes from the kernel page by page, each page cleared before it is
//! read into: that costs as much as the copy itself. A buffer that was sent goes back here instead.
//!
//! # Locking
//! One mutex, for as long as a pointer is pushed or popped.

use std::mem;

use bytes::Bytes;
use parking_lot::Mutex;

use super::read::READ_BLOCK_BYTES;

/// The most buffers that are kept: 16 MiB in all.
const KEPT: usize = 64;

/// Buffers that nobody reads into or sends from. They belong to the process rather than to a store:
/// so do the pages that they save.
static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Returns an empty buffer with room for a block.
pub(super) fn take() -> Vec<u8> {
    let spare = SPARE.lock().pop();
    spare.unwrap_or_else(|| Vec::with_capacity(block_bytes()))
}

/// Makes bytes whose buffer comes back here when the last clone is dropped.
pub(super) fn share(buffer: Vec<u8>) -> Bytes {
    Bytes::from_owner(Block(buffer))
}

fn block_bytes() -> usize {
    usize::try_from(READ_BLOCK_BYTES).expect("a block fits in memory")
}

struct Block(Vec<u8>);

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        keep(&mut SPARE.lock(), mem::take(&mut self.0));
    }
}

/// Puts a buffer among the spare ones, empty, unless there are enough of them.
fn keep(spare: &mut Vec<Vec<u8>>, mut buffer: Vec<u8>) {
    buffer.clear();
    if spare.len() < KEPT && buffer.capacity() >= block_bytes() {
        spare.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_kept_empty_if_it_holds_a_block() {
        let mut spare = Vec::new();
        let mut buffer = take();
        buffer.extend_from_slice(b"0123456789");
        let place = buffer.as_ptr();

        keep(&mut spare, buffer);
        keep(&mut spare, Vec::new());
        assert_eq!((spare.len(), spare[0].len(), spare[0].as_ptr()), (1, 0, place));
    }

    #[test]
    fn a_buffer_is_not_used_again_before_the_last_bytes_are_dropped() {
        let mut buffer = take();
        buffer.extend_from_slice(b"0123456789");
        let place = buffer.as_ptr();

        let bytes = share(buffer);
        let slice = bytes.slice(2..4);
        drop(bytes);
        assert_eq!(slice, "23");
        assert!(!SPARE.lock().iter().any(|spare| spare.as_ptr() == place));
    }

    #[test]
    fn no_more_than_so_many_are_kept() {
        let blocks: Vec<_> = (0..KEPT + 8).map(|_| share(take())).collect();
        drop(blocks);
        assert!(SPARE.lock().len() <= KEPT);
    }
}
