//! Free disk space, and the reserve that uploads cannot use.
//!
//! Two rules keep a full disk usable. First, uploads are refused while less than `reserve_bytes` is free.
//! Second, the store can delete a preallocated file of this size in an emergency, so that deletes and the
//! purge can commit on a completely full disk. While this file is missing, its size also counts as reserved.
//! Otherwise the next upload would use the space that was freed for a delete.

use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::{
    AtFlags, FallocateFlags, Mode, OFlags, fallocate, fstatvfs, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::durable::sync;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::report::overview::DiskSpace;
use crate::tasks::step::{Step, reached};

const RESERVE_FILE: &str = "reserve";

/// The time for which a measurement of free space is valid. Uploads measure again while they write.
const FRESH: Duration = Duration::from_secs(1);

/// The free space of a data directory.
pub(super) struct Space {
    root: File,
    reserve_bytes: u64,
    seen: Mutex<Seen>,
    /// Held while the reserve file is created or deleted. Otherwise one thread could record a file that
    /// another thread deleted.
    changing: Mutex<()>,
}

struct Seen {
    is_low: bool,
    at: Option<Instant>,
    has_reserve: bool,
}

impl Space {
    /// Watches the file system of `root`. Creates the reserve file if there is enough space.
    pub(super) fn new(root: File, reserve_bytes: u64) -> Self {
        let seen = Seen { is_low: false, at: None, has_reserve: false };
        let space =
            Self { root, reserve_bytes, seen: Mutex::new(seen), changing: Mutex::default() };

        space.refill_reserve();
        space
    }

    /// Returns the result of the last measurement, if it is recent. Does not block.
    pub(super) fn recent(&self) -> Option<Result<()>> {
        if self.reserve_bytes == 0 {
            return Some(Ok(()));
        }

        let seen = self.seen.lock();
        seen.at.filter(|at| at.elapsed() < FRESH).map(|_| verdict(seen.is_low))
    }

    /// Measures the free space. [`ErrorKind::StorageFull`] if uploads must stop.
    pub(super) fn look(&self) -> Result<()> {
        if self.reserve_bytes == 0 {
            return Ok(());
        }

        let free = self.free().map_err(|error| Error::io("looking at the free space", error))?;

        let mut seen = self.seen.lock();
        let missing = if seen.has_reserve { 0 } else { self.reserve_bytes };
        seen.is_low = free < self.reserve_bytes.saturating_add(missing);
        seen.at = Some(Instant::now());
        verdict(seen.is_low)
    }

    fn free(&self) -> io::Result<u64> {
        let stat = fstatvfs(&self.root)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Returns the space of the disk.
    pub(super) fn disk(&self) -> Result<DiskSpace> {
        let stat = fstatvfs(&self.root);
        let stat = stat.map_err(|error| Error::io("looking at the free space", error.into()))?;
        let (free, total) = (stat.f_bavail, stat.f_blocks);

        let mut disk = DiskSpace::new(
            free.saturating_mul(stat.f_frsize),
            total.saturating_mul(stat.f_frsize),
            self.reserve_bytes,
        );
        disk.takes_uploads = self.look().is_ok();
        Ok(disk)
    }

    /// Deletes the reserve file. The freed space is usable when this returns. Returns false if there is no
    /// such file.
    pub(super) fn free_reserve(&self) -> bool {
        let _changing = self.changing.lock();
        let mut seen = self.seen.lock();
        if unlinkat(&self.root, RESERVE_FILE, AtFlags::empty()).is_err() {
            return false;
        }
        (seen.has_reserve, seen.at) = (false, None);

        // A journalling file system hands freed blocks out again only after its next commit.
        if let Err(error) = self.root.sync_all() {
            tracing::warn!(%error, "the freed reserve may not be usable yet");
        }
        true
    }

    /// Creates the reserve file if it is missing, and if there is enough space beyond the reserve.
    pub(super) fn refill_reserve(&self) {
        let _changing = self.changing.lock();
        if self.reserve_bytes == 0 || self.keep_existing() {
            return;
        }

        match self.free() {
            Ok(free) if free >= self.reserve_bytes.saturating_mul(2) => {}
            Ok(free) => {
                tracing::warn!(free, "no room for the reserve file: uploads are refused");
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "the free space is unknown");
                return;
            }
        }

        match self.allocate() {
            Ok(()) => self.note_reserve(),
            Err(error) => {
                tracing::warn!(%error, "the reserve file could not be made");
                unlinkat(&self.root, RESERVE_FILE, AtFlags::empty()).ok();
            }
        }
    }

    /// Records an existing reserve file. Returns false if there is no file of the right size.
    fn keep_existing(&self) -> bool {
        let size =
            statat(&self.root, RESERVE_FILE, AtFlags::SYMLINK_NOFOLLOW).map(|stat| stat.st_size);
        let is_right = size.is_ok_and(|size| u64::try_from(size) == Ok(self.reserve_bytes));
        if is_right {
            self.note_reserve();
        }
        is_right
    }

    fn note_reserve(&self) {
        let mut seen = self.seen.lock();
        (seen.has_reserve, seen.at) = (true, None);
    }

    /// Creates the file. The size is set last, so that a file of the right size has all its blocks.
    fn allocate(&self) -> io::Result<()> {
        unlinkat(&self.root, RESERVE_FILE, AtFlags::empty()).ok();
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&self.root, RESERVE_FILE, flags, Mode::RUSR | Mode::WUSR)?);

        match fallocate(&file, FallocateFlags::empty(), 0, self.reserve_bytes) {
            Ok(()) => file.set_len(self.reserve_bytes)?,
            Err(Errno::NOTSUP | Errno::NOSYS | Errno::INVAL) => {
                write_zeros(&file, self.reserve_bytes)?;
            }
            Err(error) => return Err(error.into()),
        }

        sync(&file)?;
        reached(Step::ReserveMade);
        Ok(())
    }
}

fn write_zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut file)?;
    file.flush()
}

fn verdict(is_low: bool) -> Result<()> {
    if is_low { Err(Error::new(ErrorKind::StorageFull, "the storage is full")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const MIB: u64 = 1 << 20;

    fn space(home: &tempfile::TempDir, reserve_bytes: u64) -> Space {
        Space::new(File::open(home.path()).unwrap(), reserve_bytes)
    }

    #[test]
    fn the_reserve_is_allocated_freed_once_and_made_again() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(RESERVE_FILE);
        let space = space(&home, MIB);
        let allocated =
            |path| std::os::unix::fs::MetadataExt::blocks(&fs::metadata(path).unwrap()) * 512;
        assert!(allocated(&path) >= MIB, "space is taken, not only promised");
        assert!(space.free_reserve());
        assert!(!path.exists());
        assert!(!space.free_reserve());
        space.refill_reserve();
        assert_eq!(fs::metadata(&path).unwrap().len(), MIB);
    }

    #[test]
    fn a_reserve_of_another_size_is_made_anew() {
        let home = tempfile::tempdir().unwrap();
        drop(space(&home, MIB));
        drop(space(&home, 2 * MIB));
        assert_eq!(fs::metadata(home.path().join(RESERVE_FILE)).unwrap().len(), 2 * MIB);
    }

    #[test]
    fn uploads_stop_when_less_than_the_reserve_is_free() {
        let home = tempfile::tempdir().unwrap();
        let low = space(&home, 1 << 60);
        assert!(!home.path().join(RESERVE_FILE).exists(), "what does not fit is not begun");
        assert!(low.recent().is_none());
        assert_eq!(low.look().unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(low.recent().unwrap().unwrap_err().kind(), ErrorKind::StorageFull);
        let ample = space(&home, MIB);
        ample.look().unwrap();
        ample.recent().unwrap().unwrap();
    }

    #[test]
    fn a_freed_reserve_counts_as_kept_back() {
        let home = tempfile::tempdir().unwrap();
        let space = space(&home, MIB);
        space.look().unwrap();
        space.free_reserve();
        assert!(space.recent().is_none(), "the next upload looks again");
        assert!(!space.seen.lock().has_reserve);
    }

    #[test]
    fn a_reserve_that_is_freed_while_it_is_made_is_not_taken_to_be_there() {
        let home = tempfile::tempdir().unwrap();
        let space = space(&home, 4096);
        for _ in 0..300 {
            std::thread::scope(|threads| {
                threads.spawn(|| space.refill_reserve());
                threads.spawn(|| space.free_reserve());
            });
            assert_eq!(space.seen.lock().has_reserve, home.path().join(RESERVE_FILE).exists());
        }
    }

    #[test]
    fn without_a_reserve_nothing_is_kept_back() {
        let home = tempfile::tempdir().unwrap();
        let space = space(&home, 0);
        space.recent().unwrap().unwrap();
        assert!(!home.path().join(RESERVE_FILE).exists());
        assert!(!space.free_reserve());
    }
}
