//! Files of blobs that are kept open.
//!
//! # Purpose
//! The kernel sends an open file without a copy ([`SendFile`](super::SendFile)). To open a file, look at it and
//! close it again are three calls for each reply, so the files that are asked for most stay open.
//!
//! Keyed by the blob's id. A blob is written once and an id is never used again, so an entry cannot be stale: a
//! replaced file has another blob. A removed blob is forgotten when its names are gone, and one that is removed
//! while it is being opened is not kept, so that nothing holds its bytes on the disk.
//!
//! # Locking
//! The cache's own shards.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;

use super::cached_read::CachedReads;
use super::pool::DropsFiles as _;
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
    Disk(OpenFile, CachedReads),
    /// The file has no place on a disk.
    Memory(Arc<File>),
}

static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

impl SharedFile {
    pub(super) fn new(file: OpenFile, size_bytes: u64, cached_reads: CachedReads) -> Self {
        let file = Place::Disk(file, cached_reads);
        Self { file, size_bytes, in_memory: AtomicU64::new(0) }
    }

    /// Takes a file that is in memory alone.
    pub(super) fn of_memory(file: Arc<File>, size_bytes: u64) -> Self {
        Self { file: Place::Memory(file), size_bytes, in_memory: AtomicU64::new(0) }
    }

    pub(super) fn get(&self) -> &File {
        match &self.file {
            Place::Disk(file, _) => file.get(),
            Place::Memory(file) => file,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.size_bytes
    }

    /// Tests whether a range is in memory. All of a file that was a moment ago is taken to be there still.
    pub(super) fn is_in_memory(&self, range: &Range<u64>) -> bool {
        match &self.file {
            Place::Memory(_) => true,
            Place::Disk(..) if self.was_in_memory(Instant::now()) => true,
            Place::Disk(file, cached_reads) => {
                let held = cached_reads.holds(file.get(), range);
                if held && *range == (0..self.size_bytes) {
                    self.note_in_memory(Instant::now());
                }
                held
            }
        }
    }

    fn note_in_memory(&self, now: Instant) {
        self.in_memory.store(millis(now) + 1, Relaxed);
    }

    fn was_in_memory(&self, now: Instant) -> bool {
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
    pub(super) fn insert(&self, id: BlobId, file: SharedFile) -> Arc<SharedFile> {
        let file = Arc::new(file);
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
    use crate::storage::local::pool::DropOnPool;

    fn shared(file: File) -> SharedFile {
        SharedFile::new(DropOnPool::new(file), 5, CachedReads::default())
    }

    fn id() -> BlobId {
        BlobId::generate(Timestamp::now())
    }

    #[test]
    fn files_stay_open_within_the_capacity_and_until_they_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("blob");
        fs::write(&path, b"12345").unwrap();
        let open = || shared(File::open(&path).unwrap());

        let (files, ids) = (OpenFiles::new(10), [(); 100].map(|()| id()));
        for id in ids {
            files.insert(id, open());
        }
        let held = ids.iter().filter(|id| files.get(**id, 5).is_some()).count();
        assert!((1..=10).contains(&held), "{held} of at most 10");

        let last = id();
        files.insert(last, open());
        files.insert(last, open());
        assert!(files.get(last, 4).is_none());
        files.forget(last);
        assert!(files.get(last, 5).is_none());
        let none = OpenFiles::new(0);
        none.insert(last, open());
        assert!(none.get(last, 5).is_none());

        let late = open();
        fs::remove_file(&path).unwrap();
        files.insert(last, late);
        assert!(files.get(last, 5).is_none(), "it would hold the bytes of a removed blob");
    }

    #[test]
    fn what_was_in_memory_is_taken_to_be_there_for_a_moment() {
        let file = shared(tempfile::tempfile().unwrap());
        let now = Instant::now();
        assert!(!file.was_in_memory(now));
        file.note_in_memory(now);
        assert!(file.was_in_memory(now + STAYS / 2));
        assert!(!file.was_in_memory(now + STAYS * 2));
    }
}
