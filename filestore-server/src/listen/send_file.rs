//! Replies whose body is a file that the kernel sends.
//!
//! # Purpose
//! hyper writes bytes that are in memory. So the body that it is given is a stand-in: slices of the right length
//! of one block of memory that nobody else has. The socket, which sees each slice before it would be written,
//! knows it by its place and lets the kernel send as many bytes of the file instead. The block itself is never
//! written to a socket.
//!
//! # Why nothing else can come of it
//! hyper queues the bytes of a body as they are wherever [`is_write_vectored`] holds for the socket, which it asks
//! once for a connection; and a reply is only made so where the socket's kind has said that it can
//! ([`RequestBody::takes_files`]). Stand-ins arrive in the order in which they were given out, which is that of the
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

/// The memory whose slices stand for bytes of files. It is never touched, so it takes no room.
static STAND_IN: LazyLock<&'static [u8]> = LazyLock::new(|| Box::leak(vec![0; LENGTH].into()));

/// The bytes of a file in place of the body of a reply, in whose extensions this is put.
///
/// Only for replies to requests that [take files](super::RequestBody::takes_files).
#[derive(Clone)]
pub(crate) struct SentFile(Arc<Mutex<Option<Outgoing>>>);

/// A file that is sent, and whoever wants to know if it cannot be read.
struct Outgoing {
    file: SendFile,
    broken: Box<dyn FnOnce(&io::Error) + Send>,
}

impl SentFile {
    /// Sends a file; `broken` is called if it cannot be read to its end. The connection is cut then.
    pub(crate) fn new(file: SendFile, broken: impl FnOnce(&io::Error) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Outgoing { file, broken: Box::new(broken) }))))
    }

    /// Returns the body that stands for the file on a connection; `None` if it was taken before.
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

/// A body that stands for a file.
pub(super) struct StandIn {
    /// The file, until the first slice is given out.
    outgoing: Option<Outgoing>,
    left: u64,
    queue: Arc<SendQueue>,
}

impl StandIn {
    /// Returns the number of bytes that are left.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Gives out the next slice; `None` at the end.
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
    /// A body that is left off in its middle ends its connection. Should anything else follow on it after all,
    /// it must not be taken for a part of this one.
    fn drop(&mut self) {
        if self.outgoing.is_none() && self.left > 0 {
            self.queue.is_broken.store(true, Relaxed);
        }
    }
}

/// Tests whether the bytes stand for those of a file.
fn is_stand_in(bytes: &[u8]) -> bool {
    !bytes.is_empty() && STAND_IN.as_ptr_range().contains(&bytes.as_ptr())
}

/// The files that are being sent on a connection, in the order of their replies.
#[derive(Default)]
pub(super) struct SendQueue {
    files: Mutex<VecDeque<Outgoing>>,
    /// True if a file was left off in its middle.
    is_broken: AtomicBool,
}

/// The result of a write.
pub(super) enum Written {
    /// The socket's own result.
    Socket(Poll<io::Result<usize>>),
    /// None yet: the disk has to be waited for first.
    WaitsForDisk,
}

impl SendQueue {
    /// Writes `bufs` to the socket, and bytes of the first file where a stand-in for them comes first.
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

/// Tests whether an error of sending a file is one of the socket.
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
