//! A cache of open files.
//!
//! # Purpose
//! The kernel sends an open file without a copy ([`SendFile`](crate::storage::local::SendFile)). Opening,
//! examining and closing a file needs three system calls for each reply. The most requested files therefore
//! stay open.
//!
//! The key is the blob's id. A blob is written once and its id is never reused, so an entry cannot be stale.
//! A replaced file has another blob. When a blob's names are removed, the cache forgets it. A blob that is
//! removed while it is being opened is not cached, so that its disk space becomes free.
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
use super::read::OpenFile;
use crate::domain::id::BlobId;
use crate::storage::local::pool::DropsFiles as _;

/// The time for which bytes in the kernel's memory are assumed to stay there.
pub(super) const STAYS: Duration = Duration::from_millis(200);

/// A file that is sent, shared by its requests.
pub(in crate::storage::local) struct SharedFile {
    file: Place,
    size_bytes: u64,
    /// The time at which the whole file was last in memory, in milliseconds from [`BEGIN`], plus 1. 0 means
    /// never.
    in_memory: AtomicU64,
}

/// Where a file is.
enum Place {
    /// The file of a blob.
    Disk(OpenFile, CachedReads),
    /// The file exists only in memory.
    Memory(Arc<File>),
}

static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

impl SharedFile {
    pub(in crate::storage::local) fn new(
        file: OpenFile,
        size_bytes: u64,
        cached_reads: CachedReads,
    ) -> Self {
        let file = Place::Disk(file, cached_reads);
        Self { file, size_bytes, in_memory: AtomicU64::new(0) }
    }

    /// Wraps a file that exists only in memory.
    pub(super) fn of_memory(file: Arc<File>, size_bytes: u64) -> Self {
        Self { file: Place::Memory(file), size_bytes, in_memory: AtomicU64::new(0) }
    }

    pub(in crate::storage::local) fn get(&self) -> &File {
        match &self.file {
            Place::Disk(file, _) => file.get(),
            Place::Memory(file) => file,
        }
    }

    pub(in crate::storage::local) fn len(&self) -> u64 {
        self.size_bytes
    }

    /// Returns true if a range is in memory. If the whole file was in memory recently, it is assumed to be
    /// still there.
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

/// The open files.
pub(in crate::storage::local) struct OpenFiles {
    files: Cache<BlobId, Arc<SharedFile>>,
}

impl OpenFiles {
    /// Keeps at most `capacity` files open. 0 disables the cache.
    pub(in crate::storage::local) fn new(capacity: usize) -> Self {
        Self { files: Cache::new(capacity) }
    }

    /// Returns the file of a blob with this length, if it is open.
    pub(in crate::storage::local) fn get(
        &self,
        id: BlobId,
        size_bytes: u64,
    ) -> Option<Arc<SharedFile>> {
        self.files.get(&id).filter(|file| file.len() == size_bytes)
    }

    /// Adds an open file. The new file can displace other files.
    pub(in crate::storage::local) fn insert(
        &self,
        id: BlobId,
        file: SharedFile,
    ) -> Arc<SharedFile> {
        let file = Arc::new(file);
        self.files.insert(id, Arc::clone(&file));
        // Whoever removes a blob unlinks it before it is forgotten.
        if file.get().drops_files() {
            self.forget(id);
        }
        file
    }

    /// Removes a file from the cache.
    pub(in crate::storage::local) fn forget(&self, id: BlobId) {
        self.files.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::domain::time::clock::Timestamp;
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
