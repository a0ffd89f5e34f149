//! Reads bytes that are in the kernel's memory, on the caller's own thread.
//!
//! For a small cached file, a task on the blocking pool costs more than the read itself. At 18 KB, a single
//! reader is five times as fast without the pool, and 32 readers are one and a half times as fast. Linux can
//! open and read only if neither needs the disk (`openat2` with `RESOLVE_CACHED`, 5.12; `preadv2` with
//! `RWF_NOWAIT`, 4.14). The store tries such a read first, and uses the pool otherwise. `O_NOATIME` is set,
//! because an access time would have to wait for the file system's journal.
//!
//! Larger files are read in pieces of [`PIECE_BYTES`]. A piece is written to the socket while it is still in
//! the processor's cache. If the socket accepts plain bytes, the kernel sends them itself (`sendfile`),
//! without any copy.

#[cfg(target_os = "linux")]
pub(in crate::storage::local) use linux::{CachedReads, send};
#[cfg(not(target_os = "linux"))]
pub(in crate::storage::local) use portable::{CachedReads, send};

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

    use crate::storage::local::reading::blocks::{Block, PIECE_BYTES};

    /// Reads of cached bytes. Disabled for good if a sandbox or a file system lacks a call. Clones share this
    /// state.
    #[derive(Clone, Default)]
    pub(in crate::storage::local) struct CachedReads {
        pub(super) is_unsupported: Arc<AtomicBool>,
        /// Whether files here can be sent by the kernel. Set after the first attempt.
        sends: Arc<OnceLock<bool>>,
    }

    impl CachedReads {
        /// Opens the file `name` of `size_bytes`. `None` if it cannot be opened at once for any reason. The
        /// pool then opens it and reports the reason.
        pub(in crate::storage::local) fn open(
            &self,
            dir: &File,
            name: &str,
            size_bytes: u64,
        ) -> Option<File> {
            self.attempt(|| open(dir, name, size_bytes))
        }

        /// Reads `range` of a file, at most [`PIECE_BYTES`]. `None` if the bytes are not available at once.
        pub(in crate::storage::local) fn read(
            &self,
            file: &File,
            range: &Range<u64>,
        ) -> Option<Bytes> {
            self.attempt(|| read(file, range))
        }

        /// Returns true if `range` of a file is in memory. Tests one byte in each [`PIECE_BYTES`], and the
        /// last byte.
        pub(in crate::storage::local) fn holds(&self, file: &File, range: &Range<u64>) -> bool {
            let step = usize::try_from(PIECE_BYTES).expect("it is small");
            let last = range.end.saturating_sub(1);
            range
                .clone()
                .step_by(step)
                .chain((range.start < last).then_some(last))
                .all(|at| self.attempt(|| holds_byte(file, at)).is_some())
        }

        /// Returns true if the kernel can send bytes of such files. The file must not be empty. The first
        /// file in memory is used for a test.
        pub(in crate::storage::local) fn can_send(&self, file: &File) -> bool {
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

    /// Tells the kernel to send at most `length` bytes of a file from `start` on. Returns the number of sent
    /// bytes, which is 0 at the file's end.
    pub(in crate::storage::local) fn send(
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

    /// A replacement for systems without such reads.
    #[derive(Clone, Default)]
    pub(in crate::storage::local) struct CachedReads;

    impl CachedReads {
        #[expect(clippy::unused_self, reason = "the signature is the one of Linux")]
        pub(in crate::storage::local) fn open(&self, _: &File, _: &str, _: u64) -> Option<File> {
            None
        }

        #[expect(clippy::unused_self, reason = "the signature is the one of Linux")]
        pub(in crate::storage::local) fn read(&self, _: &File, _: &Range<u64>) -> Option<Bytes> {
            None
        }

        #[expect(clippy::unused_self, reason = "the signature is the one of Linux")]
        pub(in crate::storage::local) fn holds(&self, _: &File, _: &Range<u64>) -> bool {
            false
        }

        #[expect(clippy::unused_self, reason = "the signature is the one of Linux")]
        pub(in crate::storage::local) fn can_send(&self, _: &File) -> bool {
            false
        }
    }

    pub(in crate::storage::local) fn send(
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
