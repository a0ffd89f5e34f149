//! The body of a reply, for any server.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body::{Frame, SizeHint};

use super::payload::Payload;
use crate::domain::error::Error;
use crate::storage::ByteStream;

/// The body of a reply, for every server that takes an `http_body::Body`: axum, hyper, tonic, warp.
///
/// Bytes pass through in pieces of at most 256 KiB. If the source fails, the body logs the failure and ends with an
/// error, so that the server cuts the connection and a client cannot take the part for the whole. A body without
/// bytes is `Body::default()`.
#[derive(Default)]
pub struct Body {
    rest: Rest,
    /// The bytes that follow, if known.
    remaining: Option<u64>,
}

/// The bytes that follow.
#[derive(Default)]
enum Rest {
    #[default]
    Empty,
    Bytes(Bytes),
    Stream(ByteStream),
}

impl Body {
    /// Creates a body of the `length` bytes of a payload.
    pub(super) fn of(payload: Payload, length: Option<u64>) -> Self {
        let rest = match payload {
            Payload::Empty => return Self::default(),
            Payload::Bytes(bytes) => return bytes.into(),
            Payload::Blob(blob, range) => Rest::Stream(blob.into_stream(range).boxed()),
            Payload::Sent(file) => Rest::Stream(file.into_stream().boxed()),
            Payload::Stream(bytes) => Rest::Stream(bytes),
        };
        Self { rest, remaining: length }
    }

    /// Ends the body with an error, and logs the error.
    fn cut(&mut self, error: &Error) {
        tracing::error!(error = %error.chain(), "a reply was cut");
        self.rest = Rest::Empty;
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        let remaining = Some(bytes.len() as u64);
        Self { rest: Rest::Bytes(bytes), remaining }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let next = match &mut self.rest {
            Rest::Empty => None,
            Rest::Bytes(bytes) => Some(Ok(std::mem::take(bytes))),
            Rest::Stream(stream) => ready!(stream.poll_next_unpin(cx)),
        };
        if !matches!(self.rest, Rest::Stream(_)) || next.is_none() {
            self.rest = Rest::Empty;
        }

        Poll::Ready(match next {
            None => None,
            Some(Ok(bytes)) => {
                let length = bytes.len() as u64;
                self.remaining = self.remaining.map(|rest| rest.saturating_sub(length));
                Some(Ok(Frame::data(bytes)))
            }
            Some(Err(error)) => {
                self.cut(&error);
                Some(Err(error))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.rest {
            Rest::Empty => true,
            Rest::Bytes(bytes) => bytes.is_empty(),
            Rest::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.rest, self.remaining) {
            (Rest::Empty, _) => SizeHint::with_exact(0),
            (_, Some(remaining)) => SizeHint::with_exact(remaining),
            (_, None) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("remaining", &self.remaining).finish_non_exhaustive()
    }
}
