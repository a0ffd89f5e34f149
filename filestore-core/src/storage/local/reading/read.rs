//! Reads blobs with `pread`. The module never uses a memory map, so that a failing disk causes an error and
//! not a signal. Bytes in the kernel's memory are read at once ([`cached_read`](super::cached_read)). The
//! rest is read in blocks on the blocking pool.
//!
//! A blob is looked up under its final name, then under the staged name, and then again under the final name,
//! because it can be renamed between the first two look-ups. The blob's length must match the record.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, stream};
use rustix::fs::{Mode, OFlags, fstat, openat};
use rustix::io::{Errno, pread};
use tokio::task::JoinHandle;

use super::blocks::{Block, PIECE_BYTES, READ_BLOCK_BYTES};
use super::cached_read::CachedReads;
use crate::domain::error::{Error, Result};
use crate::domain::file::path::BlobKey;
use crate::storage::BlobRead;
use crate::storage::local::pool::{DropOnPool, DropsFiles};
use crate::storage::local::{LocalStore, Shared, pool};
use crate::tasks;
use crate::tasks::step::{Call, attempt};

pub(super) const READING: &str = "reading a blob";
const OPENING: &str = "opening a blob";

/// An open blob. The bytes stay readable to their end, even if the blob is removed.
pub struct LocalBlob {
    pub(in crate::storage::local) file: OpenFile,
    size_bytes: u64,
    pub(in crate::storage::local) cached_reads: CachedReads,
}

/// An open file. Closing it can remove the file: if it was unlinked, and no other process has it open.
pub(super) type OpenFile = DropOnPool<File>;

impl DropsFiles for File {
    fn drops_files(&self) -> bool {
        fstat(self).is_ok_and(|stat| stat.st_nlink == 0)
    }
}

impl fmt::Debug for LocalBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalBlob")
            .field("file", self.file.get())
            .field("size_bytes", &self.size_bytes)
            .finish_non_exhaustive()
    }
}

impl LocalStore {
    /// Opens the blob under `key`. `None` if the blob is absent. A length other than `size_bytes` is an
    /// internal error.
    pub async fn open_blob(&self, key: &BlobKey, size_bytes: u64) -> Result<Option<LocalBlob>> {
        let (shared, key) = (Arc::clone(&self.shared), key.clone());
        pool::run(OPENING, move || {
            shared.open(&key)?.map(|file| shared.checked(file, size_bytes)).transpose()
        })
        .await
    }

    /// Opens a blob's file without checking its length. `None` if the blob is absent. Blocks.
    pub(crate) fn open_file(&self, key: &BlobKey) -> Result<Option<File>> {
        self.shared.open(key)
    }

    /// Returns the possible paths of a blob, in the order of the look-ups.
    pub(crate) fn paths_of(&self, key: &BlobKey) -> [PathBuf; 3] {
        let published = self.shared.dir.blobs().join(key.as_str());
        let staged = self.shared.dir.staging().join(key.blob_id().to_string());
        [published.clone(), staged, published]
    }

    /// Reads a small range, or opens the blob for a large range. See
    /// [`BlobStore::read`](crate::storage::BlobStore::read).
    ///
    /// A length other than `size_bytes`, or a range beyond it, is an internal error.
    pub(in crate::storage::local) async fn read_range(
        &self,
        key: &BlobKey,
        size_bytes: u64,
        range: Range<u64>,
    ) -> Result<Option<BlobRead>> {
        if let Some(read) = self.shared.read_cached(key, size_bytes, &range) {
            return Ok(Some(read));
        }

        let (shared, key) = (Arc::clone(&self.shared), key.clone());
        pool::run(READING, move || {
            let Some(file) = shared.open(&key)? else { return Ok(None) };
            if range.end.saturating_sub(range.start) > READ_BLOCK_BYTES {
                return shared.checked(file, size_bytes).map(BlobRead::File).map(Some);
            }

            let bytes = if range == (0..size_bytes) {
                let bytes = read_whole(&file, size_bytes)?;
                shared.in_memory.insert(key.blob_id(), &bytes);
                bytes
            } else {
                let blob = shared.checked(file, size_bytes)?;
                read_exact(blob.file.get(), &range).map_err(|error| Error::io(READING, error))?
            };
            Ok(Some(BlobRead::Small(bytes)))
        })
        .await
    }
}

impl Shared {
    /// Reads `range` of a blob if its bytes are in our memory or in the kernel's. For a large range, opens
    /// the blob if this needs no disk access. Otherwise returns `None`.
    fn read_cached(&self, key: &BlobKey, size_bytes: u64, range: &Range<u64>) -> Option<BlobRead> {
        if let Some(bytes) = self.in_memory.get(key.blob_id(), size_bytes) {
            return slice(&bytes, range).map(BlobRead::Small);
        }

        // A range beyond the end is an error, which the pool finds.
        let file = self.cached_reads.open(&self.blobs, key.as_str(), size_bytes)?;
        if range.end > size_bytes {
            return None;
        }
        if range.end.saturating_sub(range.start) > PIECE_BYTES {
            return Some(BlobRead::File(self.blob_of(file, size_bytes)));
        }

        let bytes = self.cached_reads.read(&file, range)?;
        if *range == (0..size_bytes) {
            self.in_memory.insert(key.blob_id(), &bytes);
        }
        Some(BlobRead::Small(bytes))
    }

    /// Opens the file under either name of the blob.
    pub(in crate::storage::local) fn open(&self, key: &BlobKey) -> Result<Option<File>> {
        if let Some(file) = open(&self.blobs, key.as_str())? {
            return Ok(Some(file));
        }
        if let Some(file) = open(&self.staging, &key.blob_id().to_string())? {
            return Ok(Some(file));
        }
        open(&self.blobs, key.as_str())
    }

    /// Compares the length of the file with the recorded one.
    fn checked(&self, file: File, size_bytes: u64) -> Result<LocalBlob> {
        let stat = fstat(&file).map_err(|error| Error::io(OPENING, error.into()))?;
        let found = u64::try_from(stat.st_size).unwrap_or(0);
        if found == size_bytes {
            Ok(self.blob_of(file, size_bytes))
        } else {
            Err(other_size(size_bytes, found))
        }
    }

    fn blob_of(&self, file: File, size_bytes: u64) -> LocalBlob {
        let cached_reads = self.cached_reads.clone();
        LocalBlob { file: DropOnPool::new(file), size_bytes, cached_reads }
    }
}

/// Returns `range` of `bytes`. `None` if the range exceeds them.
fn slice(bytes: &Bytes, range: &Range<u64>) -> Option<Bytes> {
    let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
    (start <= end && end <= bytes.len()).then(|| bytes.slice(start..end))
}

fn open(dir: &File, name: &str) -> Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(dir, name, flags, Mode::empty()) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(Error::io(OPENING, error.into())),
    }
}

fn other_size(recorded: u64, found: u64) -> Error {
    Error::internal(OPENING, format!("{recorded} bytes are recorded, found are {found}"))
}

/// Reads a whole blob. Requests one more byte than recorded, which also checks the length.
fn read_whole(file: &File, size_bytes: u64) -> Result<Bytes> {
    let length = usize::try_from(size_bytes).map_err(|error| Error::internal(READING, error))?;
    let mut bytes = vec![0; length + 1];
    let read = fill(file, &mut bytes, 0).map_err(|error| Error::io(READING, error))?;

    if read == length {
        bytes.truncate(length);
        Ok(bytes.into())
    } else {
        Err(other_size(size_bytes, read as u64))
    }
}

/// Reads all of `range`. A file that ends within it returns [`io::ErrorKind::UnexpectedEof`].
pub(in crate::storage::local) fn read_exact(file: &File, range: &Range<u64>) -> io::Result<Bytes> {
    let length =
        usize::try_from(range.end.saturating_sub(range.start)).map_err(io::Error::other)?;
    let mut block = Block::take(length);
    if fill(file, block.bytes_mut(), range.start)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(block.share())
}

/// Reads from `start` until the buffer is full or the file ends. Returns the number of bytes.
fn fill(file: &File, buffer: &mut [u8], start: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        attempt(Call::Read)?;
        match pread(file, &mut buffer[filled..], start + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(filled)
}

impl LocalBlob {
    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.size_bytes
    }

    /// Returns true if the blob has no bytes.
    pub fn is_empty(&self) -> bool {
        self.size_bytes == 0
    }

    /// Returns the file.
    pub fn into_file(self) -> File {
        self.file.take()
    }

    /// Reads the whole blob into memory. Use this call only for small blobs.
    pub async fn read(self) -> Result<Bytes> {
        pool::run(READING, move || {
            read_exact(self.file.get(), &(0..self.size_bytes))
                .map_err(|error| Error::io(READING, error))
        })
        .await
    }

    /// Streams the bytes of `range`. Uses small pieces while the kernel has them in memory, and then blocks
    /// of [`READ_BLOCK_BYTES`] with one block read ahead. If the file ends early or a read fails, the last
    /// item is an error.
    pub fn into_stream(
        self,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<Bytes>> + Send + 'static {
        let is_empty = range.start >= range.end;
        let first = (!is_empty).then_some(Reading::AtOnce(self, range));
        stream::unfold(first, |reading| async move { Some(reading?.next().await) })
    }
}

/// A range during its read.
enum Reading {
    /// From the kernel's memory.
    AtOnce(LocalBlob, Range<u64>),
    /// By the blocking pool.
    Ahead(Ahead),
}

impl Reading {
    async fn next(self) -> (Result<Bytes>, Option<Self>) {
        let ahead = match self {
            Self::AtOnce(blob, rest) => {
                let (piece, after) = split(&rest, PIECE_BYTES);
                if let Some(bytes) = blob.cached_reads.read(blob.file.get(), &piece) {
                    let is_over = after.is_empty();
                    return (Ok(bytes), (!is_over).then_some(Self::AtOnce(blob, after)));
                }
                Ahead::start(blob.into_file(), &rest)
            }
            Self::Ahead(ahead) => ahead,
        };

        let (block, ahead) = ahead.next().await;
        (block, ahead.map(Self::Ahead))
    }
}

/// Splits a range after its first `length` bytes.
fn split(range: &Range<u64>, length: u64) -> (Range<u64>, Range<u64>) {
    let middle = range.end.min(range.start.saturating_add(length));
    (range.start..middle, middle..range.end)
}

/// A block that is being read. The file moves with the work, so that the pool closes it.
struct Ahead {
    block: JoinHandle<(io::Result<Bytes>, Option<File>)>,
    rest: Range<u64>,
}

impl Ahead {
    fn start(file: File, range: &Range<u64>) -> Self {
        let (block, rest) = split(range, READ_BLOCK_BYTES);
        let is_last = rest.is_empty();

        let block = tasks::blocking(move || {
            let bytes = read_exact(&file, &block);
            let is_over = is_last || bytes.is_err();
            (bytes, (!is_over).then_some(file))
        });
        Self { block, rest }
    }

    async fn next(self) -> (Result<Bytes>, Option<Self>) {
        match self.block.await {
            Ok((Ok(bytes), file)) => (Ok(bytes), file.map(|file| Self::start(file, &self.rest))),
            Ok((Err(error), _)) => (Err(Error::io(READING, error)), None),
            Err(lost) => (Err(Error::internal(READING, lost)), None),
        }
    }
}
