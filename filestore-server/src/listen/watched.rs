//! A connection's socket, service and bodies. Each reports to the connection's [`Activity`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderValue;
use http::header::CONNECTION;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::Service;
use hyper::{Request, Response};
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::Activity;
use super::lengths;
use super::send_file::{SendQueue, SentFile, StandIn, Written};
use super::socket::{Peer, Stream};

/// The socket of one connection.
pub(super) struct WatchedSocket {
    pub(super) stream: Stream,
    activity: Arc<Activity>,
    /// Bytes that were read, and must be read again before the stream's bytes.
    ahead: Bytes,
    /// The files that are being sent, if the stream supports files.
    files: Option<Arc<SendQueue>>,
    /// True if the last piece read was a part of a head without its end.
    is_within_head: bool,
}

impl WatchedSocket {
    /// Watches an unread stream, and sends `files` on it.
    pub(super) fn new(
        stream: Stream,
        activity: Arc<Activity>,
        files: Option<Arc<SendQueue>>,
    ) -> Self {
        Self { stream, activity, ahead: Bytes::new(), files, is_within_head: false }
    }

    /// Puts back bytes that were read from the stream and not used.
    pub(super) fn put_back(&mut self, unused: Bytes) {
        self.ahead = unused;
    }
}

impl AsyncRead for WatchedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.ahead.is_empty() {
            let again = this.ahead.split_to(buf.remaining().min(this.ahead.len()));
            buf.put_slice(&again);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();

        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            if this.activity.awaits_head() {
                // The rest of a head that began in an earlier piece could be a body.
                let piece = &mut buf.filled_mut()[before..];
                if !this.is_within_head {
                    lengths::lower(piece);
                }
                this.is_within_head = memchr::memmem::find(piece, b"\r\n\r\n").is_none();
            }
            this.activity.received(buf.filled().len() - before);
        } else if matches!(read, Poll::Ready(Ok(())))
            && buf.remaining() > 0
            && this.activity.client_closed()
        {
            // The reply to the last request ends the connection, or `Options::half_closed` does.
            return Poll::Pending;
        }
        read
    }
}

impl AsyncWrite for WatchedSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, files, activity, .. } = self.get_mut();
        let written = match files {
            Some(files) => files.poll_write(stream, cx, bufs),
            None => Written::Socket(Pin::new(stream).poll_write_vectored(cx, bufs)),
        };
        match written {
            Written::Socket(written) => {
                activity.wrote(&written);
                written
            }
            // No fault of the client's.
            Written::WaitsForDisk => Poll::Pending,
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// A mark in the extensions of a reply to an unknown caller. The rest of the request is then read only for a
/// moment.
#[derive(Debug, Clone, Copy)]
pub struct BriefDrain;

/// A mark in the extensions of a reply that goes on for as long as its client wants. A client that closes its writing
/// side has left such a reply, and a stop waits for no client that does not take it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endless;

/// The service of one connection.
pub(super) struct WatchedService<S> {
    pub(super) service: S,
    pub(super) peer: Peer,
    pub(super) activity: Arc<Activity>,
    /// The queue of the socket, if it supports files.
    pub(super) files: Option<Arc<SendQueue>>,
}

impl<S, B> Service<Request<Incoming>> for WatchedService<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>>,
{
    type Response = Response<ResponseBody<B>>;
    type Error = S::Error;
    type Future = Reply<S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.activity.begin();
        let takes_files = self.files.is_some();
        let request =
            request.map(|inner| RequestBody::new(inner, self.peer, &self.activity, takes_files));
        let running = Some(Running(self.activity.clone()));
        Reply { future: self.service.call(request), running, files: self.files.clone() }
    }
}

pin_project! {
    /// The future of a reply.
    pub(super) struct Reply<F> {
        #[pin]
        future: F,
        running: Option<Running>,
        files: Option<Arc<SendQueue>>,
    }
}

impl<F, B, E> Future for Reply<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<ResponseBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.future.poll(cx))?;
        let running = this.running.take().expect("not polled after its end");
        running.0.answered();
        running.0.set_endless(response.extensions_mut().remove::<Endless>().is_some());
        running.0.set_brief_drain(response.extensions_mut().remove::<BriefDrain>().is_some());

        // The rest of the body will not be read: the connection ends with this reply (RFC 9112
        // section 9.6), and the reply says so.
        if running.0.body_unread() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let extensions = response.extensions_mut();
        let held = extensions.remove::<Held>();
        let file = extensions.remove::<SentFile>().map(|file| {
            let queue = this.files.take();
            queue
                .and_then(|queue| file.stand_in(queue))
                .expect("a file is sent once, to who takes files")
        });
        Poll::Ready(Ok(response.map(|inner| ResponseBody {
            inner,
            file,
            _running: running,
            _held: held,
        })))
    }
}

/// Marks a request as running until dropped.
struct Running(Arc<Activity>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.finish();
    }
}

pin_project! {
    /// The body of a reply. The request counts as running until hyper drops the body.
    pub(super) struct ResponseBody<B> {
        #[pin]
        inner: B,
        // In place of `inner`.
        file: Option<StandIn>,
        _running: Running,
        _held: Option<Held>,
    }
}

/// A value in the extensions of a reply that lives until the reply is sent.
#[derive(Clone)]
pub(crate) struct Held {
    _value: Arc<dyn Send + Sync>,
}

impl Held {
    pub(crate) fn new(value: impl Send + Sync + 'static) -> Self {
        Self { _value: Arc::new(value) }
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        match this.file {
            Some(file) => Poll::Ready(file.next().map(|slice| Ok(Frame::data(slice)))),
            None => this.inner.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.file {
            Some(file) => file.left() == 0,
            None => self.inner.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.file {
            Some(file) => SizeHint::with_exact(file.left()),
            None => self.inner.size_hint(),
        }
    }
}

/// The request body: hyper's body, the peer of the connection, and whether it was read to its end.
#[derive(Debug)]
pub struct RequestBody {
    inner: Incoming,
    peer: Peer,
    activity: Arc<Activity>,
    takes_files: bool,
}

impl RequestBody {
    fn new(inner: Incoming, peer: Peer, activity: &Arc<Activity>, takes_files: bool) -> Self {
        activity.set_body_unread(!inner.is_end_stream());
        Self { inner, peer, activity: activity.clone(), takes_files }
    }

    /// Returns true if the reply can be a [`SentFile`].
    pub(crate) fn takes_files(&self) -> bool {
        self.takes_files
    }

    /// Returns the peer of the request's connection.
    pub fn peer(&self) -> Peer {
        self.peer
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        let ended = matches!(frame, Poll::Ready(None));
        if ended || (frame.is_ready() && self.inner.is_end_stream()) {
            self.activity.set_body_unread(false);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
