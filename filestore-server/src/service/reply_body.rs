//! The bodies of a service that another program mounts.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

use crate::listen::body::BoxError;
use crate::listen::{BriefDrain, Endless, Held};

/// The reply body. A request counts as running until its reply's body is dropped.
pub struct ReplyBody {
    inner: UnsyncBoxBody<Bytes, BoxError>,
    _held: Option<Held>,
}

impl ReplyBody {
    /// Takes a reply's body, and the marks for our own listener.
    pub(super) fn take_over(mut response: warp::reply::Response) -> Response<Self> {
        response.extensions_mut().remove::<BriefDrain>();
        response.extensions_mut().remove::<Endless>();
        let held = response.extensions_mut().remove::<Held>();
        response
            .map(|body| Self { inner: body.map_err(BoxError::from).boxed_unsync(), _held: held })
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplyBody")
    }
}

/// The body of a request, read by one thread at a time. warp requires `Sync`, which bodies of other programs
/// need not have. The lock is never contended, because polling has the only reference.
pub(super) struct Exclusive<B> {
    inner: Mutex<Pin<Box<B>>>,
}

impl<B> Exclusive<B> {
    pub(super) fn new(body: B) -> Self {
        Self { inner: Mutex::new(Box::pin(body)) }
    }
}

impl<B: Body> Body for Exclusive<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.inner.get_mut().as_mut().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.lock().size_hint()
    }
}
