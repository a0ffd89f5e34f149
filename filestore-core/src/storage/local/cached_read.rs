//! Reading bytes that the kernel holds in memory, on the caller's own thread.
//!
//! A visit to the blocking pool costs more than reading a small file that is cached: without the
//! visit, at 18 KB, a lone reader is five times as fast and 32 readers half as fast again. Linux
//! can be asked to open and read only if neither needs the disk (`openat2` with `RESOLVE_CACHED`,
//! 5.12; `preadv2` with `RWF_NOWAIT`, 4.14), so such a read is attempted first, and the pool does
//! the rest. `O_NOATIME` is set because an access time would have to wait for the file system's
//! journal.

#[cfg(target_os = "linux")]
pub(super) use linux::CachedReads;
#[cfg(not(target_os = "linux"))]
pub(super) use portable::CachedReads;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::IoSliceMut;
    use std::ops::Range;
    use std::os::fd::OwnedFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    use bytes::Bytes;
    use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, openat2};
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    /// Largest range read this way. A larger one takes so long to copy that it belongs on the pool.
    const LIMIT_BYTES: u64 = 64 * 1024;

    /// Reads of cached bytes, given up for good where a sandbox or a file system lacks one of the
    /// calls.
    #[derive(Default)]
    pub(in super::super) struct CachedReads {
        pub(super) is_unsupported: AtomicBool,
    }

    impl CachedReads {
        /// Reads `range` of the file `name`, which has `size_bytes`. `None` if the bytes cannot be
        /// had at once, for whatever reason: then the pool reads, and finds out.
        pub(in super::super) fn read(
            &self,
            dir: &File,
            name: &str,
            size_bytes: u64,
            range: &Range<u64>,
        ) -> Option<Bytes> {
            let is_small = range.end.saturating_sub(range.start) <= LIMIT_BYTES;
            if !is_small || self.is_unsupported.load(Ordering::Relaxed) {
                return None;
            }

            match read_cached(dir, name, size_bytes, range) {
                Ok(bytes) => bytes,
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::NOTSUP) => {
                    self.is_unsupported.store(true, Ordering::Relaxed);
                    None
                }
                Err(_) => None,
            }
        }
    }

    fn read_cached(
        dir: &File,
        name: &str,
        size_bytes: u64,
        range: &Range<u64>,
    ) -> Result<Option<Bytes>, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOATIME;
        let file: OwnedFd = openat2(dir, name, flags, Mode::empty(), ResolveFlags::CACHED)?;
        if u64::try_from(fstat(&file)?.st_size) != Ok(size_bytes) || range.end > size_bytes {
            return Ok(None);
        }
        let Ok(length) = usize::try_from(range.end.saturating_sub(range.start)) else {
            return Ok(None);
        };

        let mut bytes = vec![0; length];
        let mut buffers = [IoSliceMut::new(&mut bytes)];
        let read = preadv2(&file, &mut buffers, range.start, ReadWriteFlags::NOWAIT)?;
        Ok((read == length).then(|| bytes.into()))
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::fs::File;
    use std::ops::Range;

    use bytes::Bytes;

    /// Stand-in for systems without such reads.
    #[derive(Default)]
    pub(in super::super) struct CachedReads;

    impl CachedReads {
        #[expect(clippy::unused_self, reason = "the signature is the one of Linux")]
        pub(in super::super) fn read(
            &self,
            _: &File,
            _: &str,
            _: u64,
            _: &Range<u64>,
        ) -> Option<Bytes> {
            None
        }
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
        let mut attempts = (0..1000).map(|_| reads.read(&dir, "blob", 10, &(2..5)));
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
            assert!(reads.read(&dir, name, size, &range).is_none(), "{name} {size} {range:?}");
        }
    }
}
