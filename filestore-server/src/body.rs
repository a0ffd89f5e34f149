//! Request bodies, read under a time limit.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use filestore_core::{Error, ErrorKind, Result};
use futures_util::Stream;
use tokio::time::Instant;

use crate::deadline::Deadline;

/// Any error, as streams of bodies fail with.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Limits on a client's silence while its body is read. Time in which the server does not read
/// (because the disk is slow, say) does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// The longest silence before the first byte.
    pub first_byte: Duration,
    /// The longest silence between two chunks.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { first_byte: Duration::from_secs(30), idle: Duration::from_secs(30) }
    }
}

/// A body stream that fails when the client stays silent for too long.
pub struct BodyReader<S> {
    stream: Pin<Box<S>>,
    timeouts: Timeouts,
    timer: Deadline,
    started: bool,
}

impl<S, B, E> BodyReader<S>
where
    S: Stream<Item = Result<B, E>>,
    B: Buf,
    E: Into<BoxError>,
{
    /// Makes a reader of `stream`.
    pub fn new(stream: S, timeouts: Timeouts) -> Self {
        Self { stream: Box::pin(stream), timeouts, timer: Deadline::default(), started: false }
    }

    /// Returns the next chunk, or `None` at the end. Cancelling the call loses nothing.
    ///
    /// Fails with [`ErrorKind::BodyTimeout`] when the client stops sending, and
    /// [`ErrorKind::MalformedBody`] when the body ends before its length or the connection breaks.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let patience = if self.started { self.timeouts.idle } else { self.timeouts.first_byte };
        let deadline = Instant::now() + patience;
        let chunk = poll_fn(|cx| self.poll_chunk(cx, deadline)).await?;
        self.started = true;
        Ok(chunk)
    }

    /// Reads the whole rest of the body: [`ErrorKind::TooLarge`] if it has more than `limit_bytes`.
    pub async fn collect(mut self, limit_bytes: usize) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.len() > limit_bytes {
                let message = format!("the body has more bytes than {limit_bytes}");
                return Err(Error::new(ErrorKind::TooLarge, message).with_limit(limit_bytes as u64));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Instant,
    ) -> Poll<Result<Option<Bytes>>> {
        match self.stream.as_mut().poll_next(cx) {
            Poll::Ready(Some(Ok(mut chunk))) => {
                Poll::Ready(Ok(Some(chunk.copy_to_bytes(chunk.remaining()))))
            }
            Poll::Ready(None) => Poll::Ready(Ok(None)),
            Poll::Ready(Some(Err(error))) => {
                let broken = Error::new(ErrorKind::MalformedBody, "the body did not arrive whole");
                Poll::Ready(Err(broken.with_source(error)))
            }

            Poll::Pending => {
                ready!(self.timer.poll_passed(cx, deadline));
                Poll::Ready(Err(Error::new(
                    ErrorKind::BodyTimeout,
                    "the client stopped sending the body",
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, stream};

    fn reader(
        chunks: &[&'static str],
    ) -> BodyReader<impl Stream<Item = Result<Bytes, std::io::Error>> + use<>> {
        let chunks: Vec<_> =
            chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
        BodyReader::new(stream::iter(chunks), Timeouts::default())
    }

    #[tokio::test]
    async fn a_body_is_collected_up_to_its_limit() {
        assert_eq!(reader(&["ab", "cd"]).collect(4).await.unwrap(), b"abcd");
        let error = reader(&["ab", "cd", "e"]).collect(4).await.unwrap_err();
        assert_eq!((error.kind(), error.details().limit), (ErrorKind::TooLarge, Some(4)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_starts_has_a_time_of_its_own() {
        let silent = stream::pending::<Result<Bytes, std::io::Error>>();
        let timeouts =
            Timeouts { first_byte: Duration::from_secs(7), idle: Duration::from_secs(3) };
        let start = Instant::now();
        let error = BodyReader::new(silent, timeouts).chunk().await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed().as_secs()), (ErrorKind::BodyTimeout, 7));

        let one = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"a"))]);
        let mut body = BodyReader::new(one.chain(stream::pending()), timeouts);
        let start = Instant::now();
        assert_eq!(body.chunk().await.unwrap().unwrap(), "a");
        assert_eq!(body.chunk().await.unwrap_err().kind(), ErrorKind::BodyTimeout);
        assert_eq!(start.elapsed().as_secs(), 3);
    }
}
