//! Copying a file while its digest is made.

use std::fs::File;
use std::io;

use rustix::io::{pread, write};
use sha2::Digest;

use crate::domain::id::Sha256;

/// Size of one read.
const BLOCK_BYTES: usize = 256 << 10;

/// The result of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copying {
    /// Number of bytes read.
    pub size_bytes: u64,
    /// Digest of these bytes.
    pub sha256: Sha256,
}

/// The side on which a copy failed.
#[derive(Debug)]
pub(super) enum CopyError {
    /// The original cannot be read.
    Read(io::Error),
    /// The copy cannot be written.
    Write(io::Error),
}

impl From<CopyError> for io::Error {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Read(error) | CopyError::Write(error) => error,
        }
    }
}

/// Copies all of `from` to the empty file `to`. On a file system with shared blocks (`FICLONE`) none is
/// written; every byte is read in any case, so that a snapshot never holds others than were recorded.
pub(super) fn copy(from: &File, to: &File, buffer: &mut Vec<u8>) -> Result<Copying, CopyError> {
    let is_shared = share_blocks(from, to);
    each_block(from, buffer, |block| if is_shared { Ok(()) } else { write_all(to, block) })
}

/// Reads all of `from` from its disk, as far as the system allows it: what memory still has of a file that
/// was just written says nothing about what the disk has.
pub(super) fn digest_of_disk(from: &File, buffer: &mut Vec<u8>) -> io::Result<Copying> {
    forget_cached(from);
    digest(from, buffer)
}

/// Tells the system that what it keeps of a file in memory is not needed. Pages stay that are not flushed
/// yet, are of a file that is mapped, or are in the system's own hands at the moment (posix_fadvise(2)
/// promises nothing); a system that refuses reads as it always does.
#[cfg(target_os = "linux")]
fn forget_cached(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
}

#[cfg(not(target_os = "linux"))]
fn forget_cached(_: &File) {}

/// Reads all of `from`.
pub(super) fn digest(from: &File, buffer: &mut Vec<u8>) -> io::Result<Copying> {
    Ok(each_block(from, buffer, |_| Ok(()))?)
}

#[cfg(target_os = "linux")]
fn share_blocks(from: &File, to: &File) -> bool {
    rustix::fs::ioctl_ficlone(to, from).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn share_blocks(_: &File, _: &File) -> bool {
    false
}

fn each_block(
    from: &File,
    buffer: &mut Vec<u8>,
    mut give: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Copying, CopyError> {
    buffer.resize(BLOCK_BYTES, 0);
    let (mut hasher, mut size_bytes) = (sha2::Sha256::new(), 0_u64);

    loop {
        let block = match pread(from, &mut buffer[..], size_bytes) {
            Ok(0) => break,
            Ok(length) => &buffer[..length],
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(CopyError::Read(error.into())),
        };
        hasher.update(block);
        give(block).map_err(CopyError::Write)?;
        size_bytes += block.len() as u64;
    }
    Ok(Copying { size_bytes, sha256: Sha256(hasher.finalize().into()) })
}

fn write_all(to: &File, mut block: &[u8]) -> io::Result<()> {
    while !block.is_empty() {
        match write(to, block) {
            Ok(written) => block = &block[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::IoSliceMut;
    use std::thread;
    use std::time::{Duration, Instant};

    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    use super::*;

    /// The type of file systems in memory (statfs(2), `TMPFS_MAGIC`).
    const TMPFS: rustix::fs::FsWord = 0x0102_1994;

    /// Tells whether reading the first bytes needs no disk; `None` if the file system does not say so.
    fn is_cached(file: &File) -> Option<bool> {
        let mut byte = [0];
        match preadv2(file, &mut [IoSliceMut::new(&mut byte)], 0, ReadWriteFlags::NOWAIT) {
            Ok(_) => Some(true),
            Err(Errno::AGAIN) => Some(false),
            Err(_) => None,
        }
    }

    #[test]
    fn a_flushed_file_is_read_from_the_disk_and_not_from_memory() {
        // Not in /tmp, which is in memory more often than where programs are built.
        let program = std::env::current_exe().unwrap();
        let mut file = tempfile::tempfile_in(program.parent().unwrap()).unwrap();
        if rustix::fs::fstatfs(&file).unwrap().f_type == TMPFS {
            eprintln!("NOT TESTED: there is no disk here");
            return;
        }

        io::Write::write_all(&mut file, &[7; 8 << 10]).unwrap();
        file.sync_all().unwrap();
        assert_ne!(is_cached(&file), Some(false), "it was just written");

        let written = digest(&file, &mut Vec::new()).unwrap();
        // The system may be about to do something with a page, and keeps it then: it is asked again.
        let deadline = Instant::now() + Duration::from_mins(1);
        forget_cached(&file);
        while is_cached(&file) == Some(true) {
            assert!(Instant::now() < deadline, "the next read asks the disk");
            thread::yield_now();
            forget_cached(&file);
        }
        assert_eq!(digest_of_disk(&file, &mut Vec::new()).unwrap(), written);
    }
}
