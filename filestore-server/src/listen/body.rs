//! Reads request bodies with a time limit.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use filestore_core::ErrorKind;
use futures_util::Stream;
use tokio::time::Instant;

use super::deadline::Deadline;
pub use super::least_rate::LeastRate;
use super::least_rate::Slack;
use crate::error::{Refusal, RefusalKind, Result};

/// Any error of a body stream.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Limits for a client's silence and slowness while its body is read. Time in which the server does not read,
/// for example because of a slow disk, does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// The maximum silence before the first byte.
    pub first_byte: Duration,
    /// The maximum silence between two chunks.
    pub idle: Duration,
    /// The minimum rate of the client.
    pub least_rate: LeastRate,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            least_rate: LeastRate::default(),
        }
    }
}

/// A body stream that fails if the client is silent for too long, or sends too slowly.
pub struct BodyReader<S> {
    stream: Pin<Box<S>>,
    timeouts: Timeouts,
    timer: Deadline,
    slack: Slack,
    started: bool,
}

impl<S, B, E> BodyReader<S>
where
    S: Stream<Item = Result<B, E>>,
    B: Buf,
    E: Into<BoxError>,
{
    /// Creates a reader of `stream`.
    pub fn new(stream: S, timeouts: Timeouts) -> Self {
        let slack = Slack::new(timeouts.least_rate, timeouts.idle.max(timeouts.first_byte));
        let timer = Deadline::default();
        Self { stream: Box::pin(stream), timeouts, timer, slack, started: false }
    }

    /// Returns the next chunk, or `None` at the end. Cancelling the call loses no data.
    ///
    /// Returns [`RefusalKind::BodyTimeout`] if the client stops sending or sends too slowly. Returns
    /// [`ErrorKind::MalformedBody`] if the body ends before its length, or the connection breaks.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let mut waiting = Waiting { since: None, patience: self.patience() };
        let chunk = poll_fn(|cx| self.poll_chunk(cx, &mut waiting)).await?;

        self.started = true;
        if let Some(since) = waiting.since {
            self.slack.waited(since.elapsed());
        }
        self.slack.moved(chunk.as_ref().map_or(0, |chunk| chunk.len() as u64));
        Ok(chunk)
    }

    /// Returns how long the client can be silent now.
    fn patience(&self) -> Duration {
        let silence = if self.started { self.timeouts.idle } else { self.timeouts.first_byte };
        silence.min(self.slack.left())
    }

    /// Reads the rest of the body. [`ErrorKind::TooLarge`] if it has more than `limit_bytes`.
    pub async fn collect(mut self, limit_bytes: usize) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.len() > limit_bytes {
                let message = format!("the body has more bytes than {limit_bytes}");
                let error = filestore_core::Error::new(ErrorKind::TooLarge, message);
                return Err(error.with_limit(limit_bytes as u64).into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        waiting: &mut Waiting,
    ) -> Poll<Result<Option<Bytes>>> {
        match self.stream.as_mut().poll_next(cx) {
            Poll::Ready(Some(Ok(mut chunk))) => {
                Poll::Ready(Ok(Some(chunk.copy_to_bytes(chunk.remaining()))))
            }
            Poll::Ready(None) => Poll::Ready(Ok(None)),
            Poll::Ready(Some(Err(error))) => {
                let message = "the body did not arrive whole";
                let broken = filestore_core::Error::new(ErrorKind::MalformedBody, message);
                Poll::Ready(Err(broken.with_source(error).into()))
            }

            Poll::Pending => {
                let since = *waiting.since.get_or_insert_with(Instant::now);
                ready!(self.timer.poll_passed(cx, since + waiting.patience));
                let message = "the client stopped sending the body, or sends it too slowly";
                Poll::Ready(Err(Refusal::new(RefusalKind::BodyTimeout, message).into()))
            }
        }
    }
}

/// A wait for a chunk. The wait reads the clock only if the chunk has not arrived yet.
struct Waiting {
    since: Option<Instant>,
    patience: Duration,
}

#[cfg(test)]
mod tests {
    use filestore_core::api::ErrorCode;

    use super::*;
    use futures_util::{StreamExt, stream};
    use tokio::time::interval_at;

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
        assert_eq!((error.code(), error.details().limit), (ErrorCode::TooLarge, Some(4)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_starts_has_a_time_of_its_own() {
        let silent = stream::pending::<Result<Bytes, std::io::Error>>();
        let (first_byte, idle) = (Duration::from_secs(7), Duration::from_secs(3));
        let timeouts = Timeouts { first_byte, idle, ..Timeouts::default() };
        let start = Instant::now();
        let error = BodyReader::new(silent, timeouts).chunk().await.unwrap_err();
        assert_eq!((error.code(), start.elapsed().as_secs()), (ErrorCode::BodyTimeout, 7));

        let one = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"a"))]);
        let mut body = BodyReader::new(one.chain(stream::pending()), timeouts);
        let start = Instant::now();
        assert_eq!(body.chunk().await.unwrap().unwrap(), "a");
        assert_eq!(body.chunk().await.unwrap_err().code(), ErrorCode::BodyTimeout);
        assert_eq!(start.elapsed().as_secs(), 3);
    }

    /// A body of `bytes` in each second, for ever.
    fn trickle(bytes: usize) -> impl Stream<Item = Result<Bytes, std::io::Error>> {
        let second = Duration::from_secs(1);
        let seconds = interval_at(Instant::now() + second, second);
        stream::unfold(seconds, move |mut seconds| async move {
            seconds.tick().await;
            Some((Ok(Bytes::from(vec![0; bytes])), seconds))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_given_up_though_it_is_never_silent_for_long() {
        for (bytes, secs) in [(1, Some(30)), (512, Some(59)), (1127, None)] {
            let mut body = BodyReader::new(trickle(bytes), Timeouts::default());
            let start = Instant::now();
            let ended = async { while body.chunk().await.is_ok() {} };
            let ended = tokio::time::timeout(Duration::from_hours(1), ended).await;
            assert_eq!(ended.ok().map(|()| start.elapsed().as_secs()), secs, "{bytes} bytes/s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_start_is_no_credit_for_a_slow_end() {
        let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from(vec![0; 1 << 20]))]);
        let mut body = BodyReader::new(first.chain(trickle(1)), Timeouts::default());
        let start = Instant::now();
        let error = loop {
            match body.chunk().await {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!((error.code(), start.elapsed().as_secs()), (ErrorCode::BodyTimeout, 30));
    }
}
