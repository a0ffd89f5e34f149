//! Reading bytes that the kernel holds in memory, on the caller's own thread.
//!
//! A visit to the blocking pool costs more than reading a small file that is cached: without the
//! visit, at 18 KB, a lone reader is five times as fast and 32 readers half as fast again. Linux
//! can be asked to open and read only if neither needs the disk (`openat2` with `RESOLVE_CACHED`,
//! 5.12; `preadv2` with `RWF_NOWAIT`, 4.14), so such a read is attempted first, and the pool does
//! the rest. `O_NOATIME` is set because an access time would have to wait for the file system's
//! journal.
//!
//! Larger files are read in pieces of [`PIECE_BYTES`]: what is copied from the kernel is copied back into
//! a socket at once, while it is still in the processor's own cache. Where the socket takes bytes as they are,
//! the kernel is asked to send them itself (`sendfile`), and nothing is copied.

/// Largest range read this way. A larger one takes so long to copy that others would have to wait.
pub(super) const PIECE_BYTES: u64 = 64 * 1024;

#[cfg(target_os = "linux")]
pub(super) use linux::{CachedReads, send};
#[cfg(not(target_os = "linux"))]
pub(super) use portable::{CachedReads, send};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::IoSliceMut;
    use std::ops::Range;
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, OnceLock};

    use bytes::Bytes;
    use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, openat2, sendfile};
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    use super::PIECE_BYTES;
    use crate::storage::local::blocks::Block;

    /// Reads of cached bytes, given up for good where a sandbox or a file system lacks one of the
    /// calls. Clones give up together.
    #[derive(Clone, Default)]
    pub(in super::super) struct CachedReads {
        pub(super) is_unsupported: Arc<AtomicBool>,
        /// Tells whether files here can be sent, once that was tried.
        sends: Arc<OnceLock<bool>>,
    }

    impl CachedReads {
        /// Opens the file `name`, which has `size_bytes`. `None` if it cannot be opened at once, for
        /// whatever reason: then the pool opens it, and finds out.
        pub(in super::super) fn open(
            &self,
            dir: &File,
            name: &str,
            size_bytes: u64,
        ) -> Option<File> {
            self.attempt(|| open(dir, name, size_bytes))
        }

        /// Reads `range` of a file, at most [`PIECE_BYTES`]. `None` if the bytes cannot be had at once,
        /// for whatever reason.
        pub(in super::super) fn read(&self, file: &File, range: &Range<u64>) -> Option<Bytes> {
            self.attempt(|| read(file, range))
        }

        /// Tests whether `range` of a file is in memory: one byte in each [`PIECE_BYTES`], and the last one.
        pub(in super::super) fn holds(&self, file: &File, range: &Range<u64>) -> bool {
            let step = usize::try_from(PIECE_BYTES).expect("it is small");
            let last = range.end.saturating_sub(1);
            range
                .clone()
                .step_by(step)
                .chain((range.start < last).then_some(last))
                .all(|at| self.attempt(|| holds_byte(file, at)).is_some())
        }

        /// Tests whether the kernel sends bytes of files like this one, which has bytes. It is tried with the
        /// first of them that is in memory.
        pub(in super::super) fn can_send(&self, file: &File) -> bool {
            if let Some(can) = self.sends.get() {
                return *can;
            }
            if !self.holds(file, &(0..1)) {
                return false;
            }
            *self.sends.get_or_init(|| {
                let nowhere = File::options().write(true).open("/dev/null");
                nowhere.is_ok_and(|nowhere| matches!(send(&nowhere, file, 0, 1), Ok(1)))
            })
        }

        fn attempt<T>(&self, call: impl FnOnce() -> Result<Option<T>, Errno>) -> Option<T> {
            if self.is_unsupported.load(Ordering::Relaxed) {
                return None;
            }
            match call() {
                Ok(answer) => answer,
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::NOTSUP) => {
                    self.is_unsupported.store(true, Ordering::Relaxed);
                    None
                }
                Err(_) => None,
            }
        }
    }

    fn open(dir: &File, name: &str, size_bytes: u64) -> Result<Option<File>, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOATIME;
        let file: OwnedFd = openat2(dir, name, flags, Mode::empty(), ResolveFlags::CACHED)?;
        let is_whole = u64::try_from(fstat(&file)?.st_size) == Ok(size_bytes);
        Ok(is_whole.then(|| file.into()))
    }

    fn read(file: &File, range: &Range<u64>) -> Result<Option<Bytes>, Errno> {
        let length = range.end.saturating_sub(range.start);
        let Some(length) = usize::try_from(length).ok().filter(|_| length <= PIECE_BYTES) else {
            return Ok(None);
        };

        let mut block = Block::take(length);
        let mut buffers = [IoSliceMut::new(block.bytes_mut())];
        let read = preadv2(file, &mut buffers, range.start, ReadWriteFlags::NOWAIT)?;
        Ok((read == length).then(|| block.share()))
    }

    fn holds_byte(file: &File, at: u64) -> Result<Option<()>, Errno> {
        let mut byte = [0];
        let mut buffers = [IoSliceMut::new(&mut byte)];
        let read = preadv2(file, &mut buffers, at, ReadWriteFlags::NOWAIT)?;
        Ok((read == 1).then_some(()))
    }

    /// Lets the kernel send at most `length` bytes of a file from `start` on. Returns how many it took; none at
    /// the file's end.
    pub(in super::super) fn send(
        to: impl AsFd,
        file: &File,
        start: u64,
        length: usize,
    ) -> std::io::Result<usize> {
        let mut offset = start;
        Ok(sendfile(to, file, Some(&mut offset), length)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::fs::File;
    use std::ops::Range;
    use std::os::fd::AsFd;

    use bytes::Bytes;

    /// Stand-in for systems without such reads.
    #[derive(Clone, Default)]
    pub(in super::super) struct CachedReads;

    impl CachedReads {
        #[expect(clippy::unused_self, reason = "the signature is the one of Linux")]
        pub(in super::super) fn open(&self, _: &File, _: &str, _: u64) -> Option<File> {
            None
        }

        #[expect(clippy::unused_self, reason = "the signature is the one of Linux")]
        pub(in super::super) fn read(&self, _: &File, _: &Range<u64>) -> Option<Bytes> {
            None
        }

        #[expect(clippy::unused_self, reason = "the signature is the one of Linux")]
        pub(in super::super) fn holds(&self, _: &File, _: &Range<u64>) -> bool {
            false
        }

        #[expect(clippy::unused_self, reason = "the signature is the one of Linux")]
        pub(in super::super) fn can_send(&self, _: &File) -> bool {
            false
        }
    }

    pub(in super::super) fn send(
        _: impl AsFd,
        _: &File,
        _: u64,
        _: usize,
    ) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn cached_bytes_are_read_and_anything_odd_is_left_to_the_pool() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("blob"), b"0123456789").unwrap();
        let dir = std::fs::File::open(home.path()).unwrap();
        let reads = CachedReads::default();
        // The kernel may decline now and then, and a sandbox for good.
        let read = |name, size, range| reads.read(&reads.open(&dir, name, size)?, &range);
        let mut attempts = (0..1000).map(|_| read("blob", 10, 2..5));
        match attempts.find(Option::is_some).flatten() {
            Some(bytes) => assert_eq!(bytes, "234"),
            None => {
                assert!(
                    reads.is_unsupported.load(Ordering::Relaxed),
                    "cached bytes are never read"
                );
            }
        }
        for (name, size, range) in [("blob", 9, 0..9), ("blob", 10, 8..11), ("none", 10, 0..1)] {
            assert!(read(name, size, range.clone()).is_none(), "{name} {size} {range:?}");
        }
    }
}
