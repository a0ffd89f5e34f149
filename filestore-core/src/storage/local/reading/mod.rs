//! Reads blobs: with pread, from memory, or sent by the kernel.

pub(super) mod read;
pub(super) mod blocks;
pub(super) mod cached_read;
pub(super) mod in_memory;
pub(super) mod open_files;
pub(super) mod send_file;
mod staged_bytes;
