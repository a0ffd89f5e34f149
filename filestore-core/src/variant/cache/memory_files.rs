//! Variants as files in memory, which the kernel sends without a copy.
//!
//! # Purpose
//! A frequently requested variant is put into a file without a name (`memfd_create`). The kernel sends 40 KB
//! from there in four fifths of the time that a copy out of this process takes.
//!
//! # Locking
//! The cache's own shards.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::weighed::weighed;

/// The minimum size of a variant that is worth a file.
const LEAST_BYTES: usize = 16 << 10;
/// The number of requests before a variant gets a file.
const ASKED_BEFORE: u32 = 4;
/// The maximum size of all files together, in bytes.
const CAPACITY_BYTES: u64 = 16 << 20;
/// The minimum weight of a file. The minimum limits the number of files to 256, because each needs a file
/// descriptor.
const FILE_BYTES: u64 = 64 << 10;

type Files = Cache<u64, (Arc<File>, u64), ByBytes>;

#[derive(Clone)]
struct ByBytes;

impl Weighter<u64, (Arc<File>, u64)> for ByBytes {
    fn weight(&self, _: &u64, (_, bytes): &(Arc<File>, u64)) -> u64 {
        FILE_BYTES.max(*bytes)
    }
}

/// The files of the most requested variants.
#[derive(Clone)]
pub(super) struct MemoryFiles(Arc<Files>);

impl MemoryFiles {
    pub(super) fn new() -> Self {
        Self(Arc::new(weighed(CAPACITY_BYTES, ByBytes)))
    }

    /// Creates the slot of one variant.
    pub(super) fn place(&self) -> FilePlace {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        FilePlace { id: NEXT.fetch_add(1, Relaxed), asked: AtomicU32::new(0), files: self.clone() }
    }
}

/// The slot of a variant. Dropping it drops the variant's file.
pub(super) struct FilePlace {
    id: u64,
    asked: AtomicU32,
    files: MemoryFiles,
}

impl FilePlace {
    /// Returns the file, if the variant has a file or gets one now. `bytes` are the variant's bytes.
    pub(super) fn file(&self, bytes: &[u8]) -> Option<Arc<File>> {
        if bytes.len() < LEAST_BYTES {
            return None;
        }
        if let Some((file, _)) = self.files.0.get(&self.id) {
            return Some(file);
        }
        if self.asked.fetch_add(1, Relaxed) < ASKED_BEFORE {
            return None;
        }

        self.asked.store(0, Relaxed);
        let file = Arc::new(in_memory(bytes)?);
        self.files.0.insert(self.id, (Arc::clone(&file), bytes.len() as u64));
        Some(file)
    }
}

impl Drop for FilePlace {
    fn drop(&mut self) {
        self.files.0.remove(&self.id);
    }
}

/// Creates a file in memory. `None` if the system cannot create it.
#[cfg(target_os = "linux")]
fn in_memory(bytes: &[u8]) -> Option<File> {
    use std::io::Write as _;

    use rustix::fs::{MemfdFlags, memfd_create};

    let mut file = File::from(memfd_create("variant", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(bytes).ok()?;
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_: &[u8]) -> Option<File> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn a_variant_that_is_asked_for_often_has_a_file_until_it_goes() {
        let files = MemoryFiles::new();
        let (place, small) = (files.place(), files.place());
        let bytes = vec![7; LEAST_BYTES];
        for _ in 0..ASKED_BEFORE {
            assert!(place.file(&bytes).is_none());
        }
        let file = place.file(&bytes).unwrap();
        let mut read = vec![0; LEAST_BYTES + 1];
        assert_eq!(file.read_at(&mut read, 0).unwrap(), LEAST_BYTES);
        assert_eq!(read[..LEAST_BYTES], bytes);
        assert!(Arc::ptr_eq(&file, &place.file(&bytes).unwrap()));

        for _ in 0..=ASKED_BEFORE {
            assert!(small.file(&bytes[1..]).is_none());
        }
        drop(place);
        assert_eq!(files.0.len(), 0);
    }

    #[test]
    fn files_are_few() {
        let files = MemoryFiles::new();
        let places: Vec<_> = (0..300).map(|_| files.place()).collect();
        for place in &places {
            for _ in 0..=ASKED_BEFORE {
                place.file(&[7; LEAST_BYTES]);
            }
        }
        assert!((1..=256).contains(&files.0.len()), "{} files", files.0.len());
    }
}
