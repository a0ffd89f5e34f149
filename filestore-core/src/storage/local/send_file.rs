//! Bytes of a blob that the kernel sends to a socket, without a copy in this process.
//!
//! `sendfile` waits for the disk where the kernel has not the bytes in memory, and a task must not wait for a
//! disk that may hang. So it is asked for them first (`preadv2` with `RWF_NOWAIT`, one byte in each 64 KiB). Where
//! it has not, the pool reads them; after a while in which the socket took nothing it is asked again.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::LocalBlob;
use super::cached_read::{CachedReads, send};
use super::read::{OpenFile, read_exact};
use crate::tasks;
use crate::tasks::step::{Call, attempt};

/// The time for which bytes that were in memory are taken to be there still.
const STAYS: Duration = Duration::from_millis(200);

/// A range of an open blob on its way to a socket.
pub struct SendFile {
    file: Arc<OpenFile>,
    cached_reads: CachedReads,
    /// What is still to be sent.
    rest: Range<u64>,
    /// The end of what was in memory, and when it was.
    in_memory: Option<(u64, Instant)>,
    /// A read by the pool, up to an end.
    reading: Option<(u64, JoinHandle<io::Result<()>>)>,
}

impl LocalBlob {
    /// Makes `range` of the blob ready to be sent by the kernel. Gives the blob back where the system or the file
    /// system cannot do that; then [`into_stream`](Self::into_stream) serves.
    pub fn into_send_file(self, range: Range<u64>) -> Result<SendFile, Self> {
        let is_within = range.start < range.end && range.end <= self.len();
        if !is_within || !self.cached_reads.can_send(self.file.get()) {
            return Err(self);
        }

        let Self { file, cached_reads, .. } = self;
        Ok(SendFile {
            file: Arc::new(file),
            cached_reads,
            rest: range,
            in_memory: None,
            reading: None,
        })
    }
}

impl SendFile {
    /// The most bytes that are brought into memory ahead of being sent.
    pub const BYTES_AHEAD: usize = 256 << 10;

    /// Returns the number of bytes that are still to be sent.
    pub fn remaining(&self) -> u64 {
        self.rest.end - self.rest.start
    }

    /// Returns ready when the next bytes, at most [`BYTES_AHEAD`](Self::BYTES_AHEAD), are in memory, so that sending them waits for
    /// no disk. An error of the disk is passed on.
    pub fn poll_in_memory(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if let Some((end, reading)) = &mut self.reading {
                let (end, read) = (*end, ready!(Pin::new(reading).poll(cx)));
                self.reading = None;
                read.map_err(io::Error::other)??;
                self.in_memory = Some((end, Instant::now()));
            }
            if let Some((end, when)) = self.in_memory
                && self.rest.start < end
                && when.elapsed() < STAYS
            {
                return Poll::Ready(Ok(()));
            }

            let end = self.rest.end.min(self.rest.start + Self::BYTES_AHEAD as u64);
            let next = self.rest.start..end;
            if self.cached_reads.holds(self.file.get(), &next) {
                self.in_memory = Some((end, Instant::now()));
                return Poll::Ready(Ok(()));
            }

            let file = Arc::clone(&self.file);
            let read = tasks::blocking(move || read_exact(file.get(), &next).map(drop));
            self.reading = Some((end, read));
        }
    }

    /// Lets the kernel send at most `length` of the next bytes. Returns how many a socket took that does not
    /// block; [`io::ErrorKind::WouldBlock`] if it takes none at present, [`io::ErrorKind::UnexpectedEof`] if the
    /// file has ended.
    pub fn send(&mut self, socket: impl AsFd, length: usize) -> io::Result<usize> {
        attempt(Call::Read)?;
        let length = length.min(usize::try_from(self.remaining()).unwrap_or(usize::MAX));
        let sent = send(socket, self.file.get(), self.rest.start, length)?;
        if sent == 0 && length > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.rest.start += sent as u64;
        Ok(sent)
    }
}

impl fmt::Debug for SendFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFile").field("rest", &self.rest).finish_non_exhaustive()
    }
}
