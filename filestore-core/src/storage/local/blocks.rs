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
        let mut buffer = mem::take(&mut self.0);
        buffer.clear();

        let mut spare = SPARE.lock();
        if spare.len() < KEPT && buffer.capacity() >= block_bytes() {
            spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_empty_once_the_last_bytes_are_dropped() {
        let mut buffer = take();
        buffer.extend_from_slice(b"0123456789");
        let place = buffer.as_ptr();

        let bytes = share(buffer);
        let slice = bytes.slice(2..4);
        drop(bytes);
        assert_eq!(slice, "23");
        assert!(!SPARE.lock().iter().any(|spare| spare.as_ptr() == place));
        drop(slice);

        let again = take();
        assert!(again.is_empty() && again.capacity() >= block_bytes());
    }

    #[test]
    fn no_more_than_so_many_are_kept() {
        let blocks: Vec<_> = (0..KEPT + 8).map(|_| share(take())).collect();
        drop(blocks);
        assert!(SPARE.lock().len() <= KEPT);
    }
}
