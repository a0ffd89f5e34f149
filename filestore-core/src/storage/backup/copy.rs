//! Copies a file and computes its digest at the same time.

use std::fs::File;
use std::io;

use rustix::io::{pread, write};
use sha2::Digest;

use crate::domain::id::Sha256;

/// The size of one read.
const BLOCK_BYTES: usize = 256 << 10;

/// The copy result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copying {
    /// The number of bytes read.
    pub size_bytes: u64,
    /// The digest of these bytes.
    pub sha256: Sha256,
}

/// The side of the copy that failed.
#[derive(Debug)]
pub(super) enum CopyError {
    /// Reading the original failed.
    Read(io::Error),
    /// Writing the copy failed.
    Write(io::Error),
}

impl From<CopyError> for io::Error {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Read(error) | CopyError::Write(error) => error,
        }
    }
}

/// Copies all of `from` to the empty file `to`. On a file system with shared blocks (`FICLONE`), no block is
/// written. Every byte is still read, so that a snapshot contains only the recorded bytes.
pub(super) fn copy(from: &File, to: &File, buffer: &mut Vec<u8>) -> Result<Copying, CopyError> {
    let is_shared = share_blocks(from, to);
    each_block(from, buffer, |block| if is_shared { Ok(()) } else { write_all(to, block) })
}

/// Reads all of `from` from its disk, as far as the system supports this. Cached pages of a recently written
/// file would not prove that the disk has the bytes.
pub(super) fn digest_of_disk(from: &File, buffer: &mut Vec<u8>) -> io::Result<Copying> {
    forget_cached(from);
    digest(from, buffer)
}

/// Asks the system to drop a file's cached pages. Pages stay if they are not flushed yet, if the file is
/// mapped, or if the system uses them at the moment (posix_fadvise(2) gives no guarantee). If the system
/// refuses, reads work as usual.
#[cfg(target_os = "linux")]
fn forget_cached(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
}

#[cfg(not(target_os = "linux"))]
fn forget_cached(_: &File) {}

/// Reads all of `from` and computes the digest.
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

    /// The type number of in-memory file systems (statfs(2), `TMPFS_MAGIC`).
    const TMPFS: rustix::fs::FsWord = 0x0102_1994;

    /// Returns true if the first bytes can be read without the disk. `None` if the file system does not tell.
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
