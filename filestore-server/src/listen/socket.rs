//! A common type for TCP and Unix sockets.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::tls::{Tls, TlsConnection};

/// A bound socket that accepts connections. The caller binds the socket, so that tests can use port 0 and a
/// Unix socket can have the right file mode.
#[derive(Debug)]
pub enum Listener {
    /// A socket that other machines can reach over the network.
    Tcp(TcpListener),
    /// A TCP socket with TLS.
    Tls(TcpListener, Tls),
    /// A socket that only processes on this machine can reach.
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A TCP address: the client's, or its proxy's.
    Tcp(SocketAddr),
    /// A process on this machine with access to the socket's file.
    Unix,
}

/// The maximum bytes of a reply that wait in the kernel.
///
/// With a larger value, a slow client would receive megabytes before the kernel accepts the next byte, which
/// is the observed progress. Each slow client would also use this much memory.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
const UNSENT_BYTES: u32 = 64 << 10;

impl Listener {
    /// Limits the unsent bytes in the kernel for each connection that is accepted from now on.
    pub(super) fn bound_unsent(&self) {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        if let Self::Tcp(listener) | Self::Tls(listener, _) = self {
            // Accepted sockets inherit it. Without it all works, but for the slowest of clients.
            let _ = socket2::SockRef::from(listener).set_tcp_notsent_lowat(UNSENT_BYTES);
        }
    }

    /// Accepts the next connection. TCP connections disable Nagle's algorithm, because the body of a reply
    /// must not wait for the client's delayed acknowledgement of the head.
    pub(super) async fn accept(&self) -> io::Result<(Stream, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = accept_tcp(listener).await?;
                Ok((Stream::Tcp(stream), Peer::Tcp(address)))
            }
            Self::Tls(listener, tls) => {
                let (stream, address) = accept_tcp(listener).await?;
                Ok((Stream::Tls(Box::new(tls.accept(stream))), Peer::Tcp(address)))
            }
            Self::Unix(listener) => Ok((Stream::Unix(listener.accept().await?.0), Peer::Unix)),
        }
    }
}

async fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, address) = listener.accept().await?;
    // Fails only on a connection that is gone already, which its first read finds out.
    let _ = stream.set_nodelay(true);
    Ok((stream, address))
}

/// The byte stream of one connection.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    /// Boxed, because the state of TLS is a kilobyte, which other connections do not need.
    Tls(Box<TlsConnection>),
    Unix(UnixStream),
}

/// The reply to a connection beyond the limit. The request is not read.
const CROWDED: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\n\
    connection: close\r\n\r\n";

impl Stream {
    /// Closes a connection that will not be served. The reply is sent only if this needs no wait. A client
    /// that is sending its request might not see it.
    pub(super) fn turn_away(self) {
        if let Self::Tcp(stream) = self
            && let Ok(mut stream) = stream.into_std()
        {
            let _ = stream.write(CROWDED);
        }
    }

    /// Returns ready when a read might find bytes, the end or an error. Meanwhile, written bytes are sent.
    ///
    /// With TLS, it does not see bytes that are decrypted but unread. Read until there are no more bytes
    /// before you call it.
    pub(super) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let readable = match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Tls(connection) => connection.poll_readable(cx),
            Self::Unix(stream) => stream.poll_read_ready(cx),
        };
        // The read will meet the error as well.
        readable.map(drop)
    }

    /// Returns true if bytes of a file can go to the socket unchanged, which is not possible with TLS.
    pub(super) fn takes_files(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) => true,
            Self::Tls(_) => false,
        }
    }

    /// Calls `send` with the socket until it does not fail with [`io::ErrorKind::WouldBlock`]. Returns
    /// [`io::ErrorKind::Unsupported`] with TLS.
    pub(super) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        mut send: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let sent = match self {
                Self::Tcp(stream) => {
                    ready!(stream.poll_write_ready(cx))?;
                    stream.try_io(Interest::WRITABLE, || send(stream.as_fd()))
                }
                Self::Unix(stream) => {
                    ready!(stream.poll_write_ready(cx))?;
                    stream.try_io(Interest::WRITABLE, || send(stream.as_fd()))
                }
                Self::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
            };
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
        }
    }

    /// Writes bytes that are followed by more bytes at once. The kernel can wait for these before it sends a
    /// packet.
    #[cfg(target_os = "linux")]
    pub(super) fn poll_write_ahead(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| {
            let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
            Ok(sendmsg(socket, bufs, &mut SendAncillaryBuffer::default(), flags)?)
        })
    }

    /// Writes bytes that are followed by more bytes at once.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn poll_write_ahead(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self).poll_write_vectored(cx, bufs)
    }

    /// Turns the close into a reset, which discards bytes that the client has not accepted. Otherwise the
    /// kernel would continue to offer them for minutes to a client that was cut because it accepts no bytes.
    pub(super) fn reset_on_close(&self) {
        let socket = match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(connection) => connection.socket(),
            Self::Unix(_) => None,
        };
        if let Some(socket) = socket {
            // Fails only on a connection that is gone already.
            let _ = socket2::SockRef::from(socket).set_linger(Some(Duration::ZERO));
        }
    }
}

macro_rules! either {
    ($this:expr, $cx:ident, $stream:ident => $call:expr) => {
        match $this.get_mut() {
            Stream::Tcp(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Stream::Tls(connection) => {
                let $stream = ready!(connection.poll_open($cx))?;
                $call
            }
            Stream::Unix(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, cx, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, cx, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, cx, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, cx, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Self::Tls(connection) = &mut *self
            && !connection.is_open()
        {
            // Nothing was agreed on, so nothing has to be taken leave of.
            return Poll::Ready(Ok(()));
        }
        either!(self, cx, stream => stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn accepted_tcp_connections_have_nodelay_set() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Listener::from(listener);
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (stream, peer) = accepted.unwrap();
        assert_eq!(peer, Peer::Tcp(client.unwrap().local_addr().unwrap()));

        let Stream::Tcp(stream) = stream else { panic!("not a TCP stream") };
        assert!(stream.nodelay().unwrap());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_kernel_keeps_little_unsent_for_an_accepted_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Listener::from(listener);
        listener.bound_unsent();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        client.unwrap();

        let (Stream::Tcp(stream), _) = accepted.unwrap() else { panic!("not a TCP stream") };
        let unsent = socket2::SockRef::from(&stream).tcp_notsent_lowat().unwrap();
        assert_eq!(unsent, UNSENT_BYTES);
    }
}
