//! Reads the lengths of stored blobs, and the digests of the bytes on the disk.

use std::fs::File;

use rustix::buffer::spare_capacity;
use rustix::fs::{Advice, fadvise, fstat};
use rustix::io::{Errno, pread};
use sha2::Digest;

use super::{LocalStore, pool};
use crate::domain::error::{Error, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::Sha256;

/// The number of bytes between two pauses.
const STEP_BYTES: usize = 4 << 20;

const LOOKING: &str = "looking at a blob";

impl LocalStore {
    /// Returns the length of each blob under either of its names, or `None` if the blob is absent.
    pub async fn lengths(&self, keys: Vec<BlobKey>) -> Result<Vec<Result<Option<u64>>>> {
        self.on_pool(LOOKING, move |shared| {
            let lengths =
                keys.iter().map(|key| shared.open(key)?.map(|file| length(&file)).transpose());
            Ok(lengths.collect())
        })
        .await
    }

    /// Opens a blob in order to read its bytes from the disk. `None` if the blob is absent.
    pub async fn read_anew(&self, key: &BlobKey) -> Result<Option<BlobDigest>> {
        let key = key.clone();
        self.on_pool(LOOKING, move |shared| {
            let Some(file) = shared.open(&key)? else { return Ok(None) };
            // What the kernel has in memory says nothing of the disk.
            fadvise(&file, 0, None, Advice::DontNeed)
                .map_err(|error| Error::io(LOOKING, error.into()))?;
            Ok(Some(BlobDigest { file, hasher: sha2::Sha256::new(), bytes: 0 }))
        })
        .await
    }
}

/// A blob that is read from its beginning to its end, independently of its record.
#[derive(Debug)]
pub struct BlobDigest {
    file: File,
    hasher: sha2::Sha256,
    bytes: u64,
}

/// The blob state after a step.
#[derive(Debug)]
pub enum DigestStep {
    /// This many more bytes were read, and more follow.
    More(BlobDigest, u64),
    /// The length and digest of the blob.
    Done(u64, Sha256),
}

impl BlobDigest {
    /// Reads the next bytes.
    pub async fn step(mut self) -> Result<DigestStep> {
        pool::run(LOOKING, move || {
            let mut block = Vec::with_capacity(STEP_BYTES.min(64 << 10));
            let mut read = 0;
            while read < STEP_BYTES {
                block.clear();
                match pread(&self.file, spare_capacity(&mut block), self.bytes) {
                    Ok(0) => return Ok(self.done()),
                    Ok(_) => {}
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(Error::io(LOOKING, error.into())),
                }
                self.hasher.update(&block);
                self.bytes += block.len() as u64;
                read += block.len();
            }
            Ok(DigestStep::More(self, read as u64))
        })
        .await
    }

    fn done(self) -> DigestStep {
        DigestStep::Done(self.bytes, Sha256(self.hasher.finalize().into()))
    }
}

fn length(file: &File) -> Result<u64> {
    let stat = fstat(file).map_err(|error| Error::io(LOOKING, error.into()))?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}
