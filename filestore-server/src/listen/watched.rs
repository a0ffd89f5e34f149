//! A connection's socket, service and bodies, each of which reports to the connection's [`Activity`].

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
use super::socket::{Peer, Stream};

/// The socket of one connection.
pub(super) struct WatchedSocket {
    pub(super) stream: Stream,
    activity: Arc<Activity>,
    /// Bytes that were read, and are to be read again before those of the stream.
    ahead: Bytes,
}

impl WatchedSocket {
    /// Watches a stream of which nothing was read.
    pub(super) fn new(stream: Stream, activity: Arc<Activity>) -> Self {
        Self { stream, activity, ahead: Bytes::new() }
    }

    /// Puts bytes back that were read of the stream and not used.
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
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.activity.wrote(&written);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.activity.wrote(&written);
        written
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

/// A mark that a service puts into the extensions of a reply to a stranger: what is left of the request
/// is read for a moment only.
#[derive(Debug, Clone, Copy)]
pub struct BriefDrain;

/// The service of one connection.
pub(super) struct WatchedService<S> {
    pub(super) service: S,
    pub(super) peer: Peer,
    pub(super) activity: Arc<Activity>,
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
        let request = request.map(|inner| RequestBody::new(inner, self.peer, &self.activity));
        Reply { future: self.service.call(request), running: Some(Running(self.activity.clone())) }
    }
}

pin_project! {
    /// The future of a reply.
    pub(super) struct Reply<F> {
        #[pin]
        future: F,
        running: Option<Running>,
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
        running.0.set_brief_drain(response.extensions_mut().remove::<BriefDrain>().is_some());

        // The rest of the body will not be read: the connection ends with this reply (RFC 9112
        // section 9.6), and the reply says so.
        if running.0.body_unread() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let held = response.extensions_mut().remove::<Held>();
        Poll::Ready(Ok(response.map(|inner| ResponseBody {
            inner,
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
        _running: Running,
        _held: Option<Held>,
    }
}

/// A value among the extensions of a reply that lives until the reply is sent.
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

impl<B: Body> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.project().inner.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a request: hyper's, the end of the connection that sends it, and a record of whether it was
/// read to its end.
#[derive(Debug)]
pub struct RequestBody {
    inner: Incoming,
    peer: Peer,
    activity: Arc<Activity>,
}

impl RequestBody {
    fn new(inner: Incoming, peer: Peer, activity: &Arc<Activity>) -> Self {
        activity.set_body_unread(!inner.is_end_stream());
        Self { inner, peer, activity: activity.clone() }
    }

    /// Returns the other end of the connection that the request came on.
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
