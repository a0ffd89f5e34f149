//! Files of blobs that are kept open.
//!
//! # Purpose
//! The kernel sends an open file without a copy ([`SendFile`](super::SendFile)). To open a file, look at it and
//! close it again costs a third of what a reply of 20 KB does, so those that are asked for most stay open.
//!
//! Keyed by the blob's id. A blob is written once and an id is never used again, so an entry cannot be stale: a
//! replaced file has another blob. A removed blob is forgotten when its names are gone, and one that is removed
//! while it is being opened is not kept, so that nothing holds its bytes on the disk.
//!
//! # Locking
//! The cache's own shards.

use std::fs::File;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;

use super::pool::{DropOnPool, DropsFiles as _};
use super::read::OpenFile;
use crate::domain::id::BlobId;

/// The time for which bytes that were in the kernel's memory are taken to be there still.
pub(super) const STAYS: Duration = Duration::from_millis(200);

/// A file that is sent, shared by those who ask for it.
pub(super) struct SharedFile {
    file: Place,
    size_bytes: u64,
    /// The milliseconds, counted from [`BEGIN`], at which all of it was last in memory, plus 1; 0 for never.
    in_memory: AtomicU64,
}

/// The place of a file.
enum Place {
    /// The file of a blob.
    Disk(OpenFile),
    /// The file has no place on a disk.
    Memory(Arc<File>),
}

static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

impl SharedFile {
    pub(super) fn new(file: OpenFile, size_bytes: u64) -> Self {
        Self { file: Place::Disk(file), size_bytes, in_memory: AtomicU64::new(0) }
    }

    /// Takes a file that is in memory alone.
    pub(super) fn of_memory(file: Arc<File>, size_bytes: u64) -> Self {
        Self { file: Place::Memory(file), size_bytes, in_memory: AtomicU64::new(0) }
    }

    pub(super) fn get(&self) -> &File {
        match &self.file {
            Place::Disk(file) => file.get(),
            Place::Memory(file) => file,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.size_bytes
    }

    /// Notes that all of the file is in memory.
    pub(super) fn is_in_memory(&self, now: Instant) {
        self.in_memory.store(millis(now) + 1, Relaxed);
    }

    /// Tests whether all of the file was in memory a moment ago, or is nowhere else.
    pub(super) fn was_in_memory(&self, now: Instant) -> bool {
        if matches!(self.file, Place::Memory(_)) {
            return true;
        }
        let noted = self.in_memory.load(Relaxed);
        noted > 0 && u128::from(millis(now).saturating_sub(noted - 1)) < STAYS.as_millis()
    }
}

fn millis(now: Instant) -> u64 {
    u64::try_from(now.saturating_duration_since(*BEGIN).as_millis()).unwrap_or(u64::MAX - 1)
}

/// The files that are kept open.
pub(super) struct OpenFiles {
    files: Cache<BlobId, Arc<SharedFile>>,
}

impl OpenFiles {
    /// Keeps at most `capacity` files open; 0 for none.
    pub(super) fn new(capacity: usize) -> Self {
        Self { files: Cache::new(capacity) }
    }

    /// Returns the file of a blob of that length, if it is open.
    pub(super) fn get(&self, id: BlobId, size_bytes: u64) -> Option<Arc<SharedFile>> {
        self.files.get(&id).filter(|file| file.len() == size_bytes)
    }

    /// Keeps a file open, perhaps at the cost of others.
    pub(super) fn insert(&self, id: BlobId, file: File, size_bytes: u64) -> Arc<SharedFile> {
        let file = Arc::new(SharedFile::new(DropOnPool::new(file), size_bytes));
        self.files.insert(id, Arc::clone(&file));
        // Whoever removes a blob unlinks it before it is forgotten.
        if file.get().drops_files() {
            self.forget(id);
        }
        file
    }

    /// Lets go of a file.
    pub(super) fn forget(&self, id: BlobId) {
        self.files.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::domain::clock::Timestamp;

    fn id() -> BlobId {
        BlobId::generate(Timestamp::now())
    }

    #[test]
    fn files_stay_open_within_the_capacity_and_until_they_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("blob");
        fs::write(&path, b"12345").unwrap();
        let open = || File::open(&path).unwrap();

        let (files, ids) = (OpenFiles::new(10), [(); 100].map(|()| id()));
        for id in ids {
            files.insert(id, open(), 5);
        }
        let held = ids.iter().filter(|id| files.get(**id, 5).is_some()).count();
        assert!((1..=10).contains(&held), "{held} of at most 10");

        let last = id();
        files.insert(last, open(), 5);
        files.insert(last, open(), 5);
        assert!(files.get(last, 4).is_none());
        files.forget(last);
        assert!(files.get(last, 5).is_none());

        let late = open();
        fs::remove_file(&path).unwrap();
        files.insert(last, late, 5);
        assert!(files.get(last, 5).is_none(), "it would hold the bytes of a removed blob");
    }

    #[test]
    fn what_was_in_memory_is_taken_to_be_there_for_a_moment() {
        let file = SharedFile::new(DropOnPool::new(tempfile::tempfile().unwrap()), 0);
        let now = Instant::now();
        assert!(!file.was_in_memory(now));
        file.is_in_memory(now);
        assert!(file.was_in_memory(now + STAYS / 2));
        assert!(!file.was_in_memory(now + STAYS * 2));
    }
}
