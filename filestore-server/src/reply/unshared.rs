//! Streams for warp.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use parking_lot::Mutex;

/// A stream that one thread polls at a time. warp requires `Sync`, which streams of futures need not have. The lock
/// is never contended, because polling has the only reference.
pub(super) struct Unshared<S>(Mutex<Pin<Box<S>>>);

impl<S> Unshared<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(Mutex::new(Box::pin(stream)))
    }
}

impl<S: Stream> Stream for Unshared<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.0.get_mut().as_mut().poll_next(cx)
    }
}
