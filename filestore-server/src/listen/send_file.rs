//! Replies with a file as the body, which the kernel sends.
//!
//! # Purpose
//! hyper writes bytes from memory. For a file, it therefore gets a stand-in: slices of the right length from
//! a reserved block of memory. The socket recognizes each slice by its address, and lets the kernel send the
//! same number of bytes from the file instead. The block itself is never written to a socket.
//!
//! # Safety
//! hyper queues the bytes of a body unchanged if [`is_write_vectored`] is true for the socket, which hyper
//! asks once for each connection. Such a reply is created only if the socket's kind supports it
//! ([`RequestBody::takes_files`]). Stand-ins arrive in the order of their creation, which is the order of the
//! queue of files.
//!
//! [`is_write_vectored`]: tokio::io::AsyncWrite::is_write_vectored
//! [`RequestBody::takes_files`]: super::RequestBody::takes_files

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use filestore_core::SendFile;
use parking_lot::Mutex;
use tokio::io::AsyncWrite as _;

use super::socket::Stream;

/// The length of the longest slice.
const LENGTH: usize = SendFile::BYTES_AHEAD;

/// The memory of the stand-ins. The server never touches this memory, so it uses no physical memory.
static STAND_IN: LazyLock<&'static [u8]> = LazyLock::new(|| Box::leak(vec![0; LENGTH].into()));

/// The bytes of a file as a reply's body. Put it into the extensions of the reply.
///
/// Use it only for replies to requests that [take files](super::RequestBody::takes_files).
#[derive(Clone)]
pub(crate) struct SentFile(Arc<Mutex<Option<Outgoing>>>);

/// A file that is sent, and the callback for a read error.
struct Outgoing {
    file: SendFile,
    broken: Box<dyn FnOnce(&io::Error) + Send>,
}

impl SentFile {
    /// Sends a file. If the file cannot be read to its end, `broken` is called and the connection is cut.
    pub(crate) fn new(file: SendFile, broken: impl FnOnce(&io::Error) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Outgoing { file, broken: Box::new(broken) }))))
    }

    /// Returns the stand-in body for the file on a connection. `None` if it was taken before.
    pub(super) fn stand_in(&self, queue: Arc<SendQueue>) -> Option<StandIn> {
        let outgoing = self.0.lock().take()?;
        Some(StandIn { left: outgoing.file.remaining(), outgoing: Some(outgoing), queue })
    }
}

impl fmt::Debug for SentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SentFile")
    }
}

/// A body in place of a file.
pub(super) struct StandIn {
    /// The file, until the first slice is returned.
    outgoing: Option<Outgoing>,
    left: u64,
    queue: Arc<SendQueue>,
}

impl StandIn {
    /// Returns the number of remaining bytes.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the next slice. `None` at the end.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        if let Some(outgoing) = self.outgoing.take() {
            self.queue.files.lock().push_back(outgoing);
        }

        let length = usize::try_from(self.left).map_or(LENGTH, |left| left.min(LENGTH));
        self.left -= length as u64;
        (length > 0).then(|| Bytes::from_static(&STAND_IN[..length]))
    }
}

impl Drop for StandIn {
    /// An incomplete body ends its connection. If other data followed anyway, it must not be mistaken for
    /// this body.
    fn drop(&mut self) {
        if self.outgoing.is_none() && self.left > 0 {
            self.queue.is_broken.store(true, Relaxed);
        }
    }
}

/// Returns true if the bytes stand for bytes of a file.
fn is_stand_in(bytes: &[u8]) -> bool {
    !bytes.is_empty() && STAND_IN.as_ptr_range().contains(&bytes.as_ptr())
}

/// The files that are being sent on a connection, in the order of their replies.
#[derive(Default)]
pub(super) struct SendQueue {
    files: Mutex<VecDeque<Outgoing>>,
    /// True if a file was not sent completely.
    is_broken: AtomicBool,
}

/// The result of a write.
pub(super) enum Written {
    /// The socket's own result.
    Socket(Poll<io::Result<usize>>),
    /// No result yet. The disk must be read first.
    WaitsForDisk,
}

impl SendQueue {
    /// Writes `bufs` to the socket. If a stand-in comes first, writes bytes of the first file.
    pub(super) fn poll_write(
        &self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Written {
        let Some(before) = bufs.iter().position(|buf| is_stand_in(buf)) else {
            return Written::Socket(Pin::new(stream).poll_write_vectored(cx, bufs));
        };
        let (before, stand_in) = (&bufs[..before], bufs[before].len());

        let mut files = self.files.lock();
        let fits = |outgoing: &&mut Outgoing| outgoing.file.remaining() >= stand_in as u64;
        let Some(outgoing) =
            files.front_mut().filter(fits).filter(|_| !self.is_broken.load(Relaxed))
        else {
            let error = io::Error::other("bytes stand for no file");
            return Written::Socket(Poll::Ready(Err(error)));
        };

        let written = match outgoing.file.poll_in_memory(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            // The head of a reply goes with the first bytes of its body, unless they are slow to come.
            Poll::Pending if before.is_empty() => return Written::WaitsForDisk,
            Poll::Pending => {
                return Written::Socket(Pin::new(stream).poll_write_vectored(cx, before));
            }
            Poll::Ready(Ok(())) if !before.is_empty() => {
                return Written::Socket(stream.poll_write_ahead(cx, before));
            }
            Poll::Ready(Ok(())) => {
                stream.poll_send(cx, |socket| outgoing.file.send(socket, stand_in))
            }
        };

        let is_over = match &written {
            Poll::Pending => false,
            Poll::Ready(Ok(_)) => outgoing.file.remaining() == 0,
            Poll::Ready(Err(_)) => true,
        };
        if is_over
            && let Some(Outgoing { broken, .. }) = files.pop_front()
            && let Poll::Ready(Err(error)) = &written
            && !is_of_connection(error)
        {
            broken(error);
        }
        Written::Socket(written)
    }
}

/// Returns true if an error of sending a file came from the socket.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, HostUnreachable, NetworkDown,
        NetworkUnreachable, NotConnected, TimedOut,
    };
    matches!(
        error.kind(),
        BrokenPipe
            | ConnectionAborted
            | ConnectionReset
            | HostUnreachable
            | NetworkDown
            | NetworkUnreachable
            | NotConnected
            | TimedOut
    )
}
