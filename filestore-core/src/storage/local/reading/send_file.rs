//! Bytes of a blob that the kernel sends to a socket, without a copy in this process.
//!
//! If the kernel does not have the bytes in memory, `sendfile` waits for the disk, and a task must not wait
//! for a disk that can hang. The store therefore first checks if the bytes are in memory (`preadv2` with
//! `RWF_NOWAIT`, one byte in each 64 KiB). If not, the blocking pool reads them. If the socket accepts no
//! bytes for a while, the store checks again.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use tokio::task::JoinHandle;

use super::cached_read::send;
use super::open_files::{STAYS, SharedFile};
use super::read::{READING, read_exact};
use crate::domain::error::{Error, Result};
use crate::domain::file::path::BlobKey;
use crate::storage::local::pool::DropOnPool;
use crate::storage::local::{LocalBlob, LocalStore, Shared};
use crate::tasks;
use crate::tasks::step::{Call, attempt};

/// A range of an open blob on its way to a socket.
pub struct SendFile {
    file: Arc<SharedFile>,
    /// The bytes that are still to be sent.
    rest: Range<u64>,
    /// The end of the bytes in memory, counted from the start of the rest.
    in_memory: u64,
    /// The time since which the socket accepts no bytes.
    stalled: Option<Instant>,
    /// A read on the blocking pool, up to this end.
    reading: Option<(u64, JoinHandle<io::Result<()>>)>,
}

impl LocalBlob {
    /// Prepares `range` of the blob for sending by the kernel. Returns the blob if the system or the file
    /// system does not support this. In that case, call [`into_stream`](Self::into_stream).
    pub fn into_send_file(self, range: Range<u64>) -> Result<SendFile, Self> {
        if !is_within(&range, self.len()) || !self.cached_reads.can_send(self.file.get()) {
            return Err(self);
        }
        let size_bytes = self.len();
        let Self { file, cached_reads, .. } = self;
        Ok(SendFile::new(Arc::new(SharedFile::new(file, size_bytes, cached_reads)), range))
    }
}

impl LocalStore {
    /// Prepares `range` of a blob for sending by the kernel. The file must be open already, or be available
    /// without waiting for the disk. The file then stays open for further requests.
    pub fn send_file(&self, key: &BlobKey, size_bytes: u64, range: Range<u64>) -> Option<SendFile> {
        if !is_within(&range, size_bytes) {
            return None;
        }
        let shared = &self.shared;
        let file = match shared.open_files.get(key.blob_id(), size_bytes) {
            Some(file) => file,
            None => shared.keep_open(key, size_bytes)?,
        };
        Some(SendFile::new(file, range))
    }
}

impl Shared {
    fn keep_open(&self, key: &BlobKey, size_bytes: u64) -> Option<Arc<SharedFile>> {
        let file = self.cached_reads.open(&self.blobs, key.as_str(), size_bytes)?;
        if !self.cached_reads.can_send(&file) {
            return None;
        }
        let file = DropOnPool::new(file);
        let shared = SharedFile::new(file, size_bytes, self.cached_reads.clone());
        Some(self.open_files.insert(key.blob_id(), shared))
    }
}

/// Returns true if a range is not empty and is within a blob.
fn is_within(range: &Range<u64>, size_bytes: u64) -> bool {
    range.start < range.end && range.end <= size_bytes
}

impl SendFile {
    /// The maximum bytes to load into memory before a write to the socket.
    pub const BYTES_AHEAD: usize = 256 << 10;

    fn new(file: Arc<SharedFile>, range: Range<u64>) -> Self {
        Self { file, rest: range, in_memory: 0, stalled: None, reading: None }
    }

    /// Prepares a whole file of `length` bytes that exists only in memory.
    pub(crate) fn of_memory(file: Arc<File>, length: u64) -> Self {
        Self::new(Arc::new(SharedFile::of_memory(file, length)), 0..length)
    }

    /// Counts the bytes still to be sent.
    pub fn remaining(&self) -> u64 {
        self.rest.end - self.rest.start
    }

    /// Returns ready when the next bytes, at most [`BYTES_AHEAD`](Self::BYTES_AHEAD), are in memory. Sending
    /// them then does not wait for the disk. Returns the error of a failed read.
    pub fn poll_in_memory(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some((end, reading)) = &mut self.reading {
            let (end, read) = (*end, ready!(Pin::new(reading).poll(cx)));
            self.reading = None;
            read.map_err(io::Error::other)??;
            (self.in_memory, self.stalled) = (end, None);
        }

        let is_recent = self.stalled.is_none_or(|since| since.elapsed() < STAYS);
        if is_recent && self.rest.start < self.in_memory {
            return Poll::Ready(Ok(()));
        }
        let end = self.rest.end.min(self.rest.start + Self::BYTES_AHEAD as u64);
        let next = self.rest.start..end;
        if self.file.is_in_memory(&next) {
            (self.in_memory, self.stalled) = (end, None);
            return Poll::Ready(Ok(()));
        }

        let file = Arc::clone(&self.file);
        let read = tasks::blocking(move || read_exact(file.get(), &next).map(drop));
        self.reading = Some((end, read));
        // Which notes whom to wake.
        self.poll_in_memory(cx)
    }

    /// Tells the kernel to send at most `length` of the next bytes. Returns the number of bytes that a
    /// non-blocking socket accepted. Returns [`io::ErrorKind::WouldBlock`] if the socket accepts no bytes
    /// now, and [`io::ErrorKind::UnexpectedEof`] if the file has ended.
    pub fn send(&mut self, socket: impl AsFd, length: usize) -> io::Result<usize> {
        attempt(Call::Read)?;
        let length = length.min(usize::try_from(self.remaining()).unwrap_or(usize::MAX));
        match send(socket, self.file.get(), self.rest.start, length) {
            Ok(0) if length > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(sent) => {
                self.rest.start += sent as u64;
                self.stalled = None;
                Ok(sent)
            }
            Err(error) => {
                self.stalled.get_or_insert_with(Instant::now);
                Err(error)
            }
        }
    }

    /// Reads the rest instead, for a connection to which the kernel cannot send. If a read fails, the last item is
    /// an error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes>> + Send + 'static {
        stream::unfold(Some((self.file, self.rest)), |left| async move {
            let (file, rest) = left.filter(|(_, rest)| !rest.is_empty())?;
            let next = rest.start..rest.end.min(rest.start + Self::BYTES_AHEAD as u64);
            let (reader, range) = (Arc::clone(&file), next.clone());
            let read = tasks::blocking(move || read_exact(reader.get(), &range)).await;
            Some(match read.map_err(io::Error::other).flatten() {
                Ok(bytes) => (Ok(bytes), Some((file, next.end..rest.end))),
                Err(error) => (Err(Error::io(READING, error)), None),
            })
        })
    }
}

impl fmt::Debug for SendFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFile").field("rest", &self.rest).finish_non_exhaustive()
    }
}
