//! Reads ranges of objects as streams.

use std::ops::Range;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use opendal::{Buffer, BufferStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::storage::cloud::Cloud;
use crate::storage::cloud::line::breaker::Direction;
use crate::storage::cloud::line::gate::Pass;
use crate::storage::cloud::line::turns::ReaderTurn;
use crate::tasks;

const READING: &str = "reading a blob";

/// The size of the largest piece in a stream.
const PIECE_BYTES: usize = 256 << 10;

/// The minimum time that a reader has for a piece of any size.
const LEAST_READER_TIME: Duration = Duration::from_secs(10);

/// The turn of a read. Dropping it returns the turn.
pub(super) enum ReadTurn {
    /// The turn of a client.
    Reader(#[expect(dead_code, reason = "held until the read is over")] ReaderTurn),
    /// The turn of the service's own work.
    Own(#[expect(dead_code, reason = "held until the read is over")] Pass),
}

impl Cloud {
    /// Reads `range` of an object in pieces of at most 256 KiB, for a client of the organization in the path.
    /// See [`BlobStore::read`](crate::storage::BlobStore::read). [`ErrorKind::NotFound`] if the object is
    /// absent, and [`ErrorKind::Busy`] if no turn becomes free.
    pub(in crate::storage::cloud) async fn read_for_client(
        &self,
        path: &str,
        size_bytes: u64,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        self.inner.breakers.check(Direction::Read)?;
        let organization = path.split('/').next().unwrap_or_default();
        let turn = self.inner.turns.reader(organization, self.request_patience()).await;
        let turn = turn.map_err(|waited| self.busy("reads", waited))?;

        let length = range.end.saturating_sub(range.start);
        let pieces = self.read_path(path, size_bytes, range, ReadTurn::Reader(turn)).await?;
        Ok(if length <= PIECE_BYTES as u64 {
            // Taken at once, so that the turn does not last as long as the reader likes.
            stream::iter(pieces.collect::<Vec<_>>().await).boxed()
        } else {
            self.keeping_pace(pieces, length)
        })
    }

    /// Reads a whole object in order to copy it elsewhere, at the speed of the target.
    pub(super) async fn read_all(
        &self,
        path: &str,
        size_bytes: u64,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        self.inner.breakers.check(Direction::Read)?;
        let turn = self.inner.turns.copies.pass(1, self.request_patience()).await;
        let turn = turn.map_err(|waited| self.busy("copies", waited))?;

        let all = 0..size_bytes;
        Ok(self.read_path(path, size_bytes, all, ReadTurn::Own(turn)).await?.boxed())
    }

    /// Reads `range` of an object in pieces of at most 256 KiB. [`ErrorKind::NotFound`] if it is absent.
    pub(super) async fn read_path(
        &self,
        path: &str,
        size_bytes: u64,
        range: Range<u64>,
        turn: ReadTurn,
    ) -> Result<impl Stream<Item = Result<Bytes>> + Send + 'static + use<>> {
        if range.start > range.end || range.end > size_bytes {
            return Err(Error::internal(READING, format!("{range:?} of {size_bytes} bytes")));
        }

        let _admission = self.inner.breakers.admit(Direction::Read)?;
        let mut reading = Reading {
            cloud: self.clone(),
            _turn: turn,
            arriving: None,
            ready: Buffer::new(),
            left: range.end - range.start,
        };
        if reading.left == 0 {
            // No request can ask for no bytes, but one can ask for the object's length.
            self.check_length(path, size_bytes).await?;
        } else {
            reading.begin(path, size_bytes, range).await?;
        }

        Ok(stream::unfold(Some(reading), |reading| async move {
            let mut reading = reading?;
            match reading.next_piece().await {
                Ok(Some(piece)) => Some((Ok(piece), Some(reading))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        }))
    }

    /// Passes `pieces` of `length` bytes to a reader that must keep the provider's minimum rate. If the
    /// reader is too slow, the stream ends with an error. The memory and the turn of the stream are then free
    /// at once, even if the reader never asks for the next piece.
    fn keeping_pace(
        &self,
        pieces: impl Stream<Item = Result<Bytes>> + Send + 'static,
        length: u64,
    ) -> BoxStream<'static, Result<Bytes>> {
        let (give, take) = mpsc::channel(1);
        let (rate, cloud) = (self.inner.min_read_rate, self.clone());

        tasks::spawn(async move {
            let mut pieces = std::pin::pin!(pieces);
            while let Some(piece) = tokio::select! {
                biased;
                piece = pieces.next() => piece,
                () = give.closed() => None,
            } {
                let taken = timeout(reader_time(&piece, rate), give.send(piece)).await;
                match taken {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return,
                    Err(_) => {
                        tracing::debug!(provider = %cloud.code(), "a reader was too slow and is cut");
                        return;
                    }
                }
            }
        });

        stream::unfold(Some((take, length)), |state| async move {
            let (mut take, left) = state?;
            match take.recv().await {
                Some(Ok(piece)) => {
                    let left = left.saturating_sub(piece.len() as u64);
                    Some((Ok(piece), Some((take, left))))
                }
                Some(Err(error)) => Some((Err(error), None)),
                None if left == 0 => None,
                None => Some((Err(Error::new(ErrorKind::Busy, "the reader is too slow")), None)),
            }
        })
        .boxed()
    }

    /// Compares the length of the stored object with `size_bytes`, without reading it.
    async fn check_length(&self, path: &str, size_bytes: u64) -> Result<()> {
        let (operator, path) = (self.inner.operator.clone(), path.to_owned());
        let stored = self.ask(Direction::Read, async move { operator.stat(&path).await }).await;
        let stored = stored.map_err(|error| self.fault(READING, &error))?;
        self.compare(stored.content_length(), size_bytes)
    }

    fn compare(&self, stored_bytes: u64, size_bytes: u64) -> Result<()> {
        if stored_bytes == size_bytes {
            return Ok(());
        }
        Err(self.broken(READING, format!("it has {stored_bytes} bytes, not {size_bytes}")))
    }
}

/// A running read. The read keeps one of the provider's turns until it is dropped.
struct Reading {
    cloud: Cloud,
    _turn: ReadTurn,
    arriving: Option<BufferStream>,
    /// Bytes that arrived and were not returned yet.
    ready: Buffer,
    /// The number of bytes still to return.
    left: u64,
}

impl Reading {
    /// Requests `range` and waits for its first bytes.
    async fn begin(&mut self, path: &str, size_bytes: u64, range: Range<u64>) -> Result<()> {
        let (operator, path) = (self.cloud.inner.operator.clone(), path.to_owned());
        let first = async move {
            let reader = operator.reader(&path).await?;
            let mut arriving = reader.into_stream(range).await?;
            let ready = arriving.next().await.transpose()?.unwrap_or_default();
            // The reply to a range tells the whole length too, but not from every service.
            let stored = arriving.metadata().await.ok().map(|stored| stored.content_length());
            Ok((arriving, ready, stored))
        };

        let first = self.cloud.ask(Direction::Read, first).await;
        let (arriving, ready, stored) = first.map_err(|error| self.cloud.fault(READING, &error))?;
        if let Some(stored) = stored {
            self.cloud.compare(stored, size_bytes)?;
        }

        self.ready = ready;
        self.arriving = Some(arriving);
        Ok(())
    }

    /// Returns the next piece. `None` at the end.
    async fn next_piece(&mut self) -> Result<Option<Bytes>> {
        if self.left == 0 {
            return Ok(None);
        }

        if self.ready.is_empty() {
            self.ready = self.arrive().await?;
        }
        if self.ready.is_empty() {
            return Err(self.cloud.broken(READING, format!("it ends {} bytes early", self.left)));
        }

        // Not by the buffer's own pieces, one of which may be empty.
        let length = self.ready.len().min(PIECE_BYTES);
        self.left = match self.left.checked_sub(length as u64) {
            Some(left) => left,
            None => return Err(self.cloud.broken(READING, "more bytes came than were asked for")),
        };

        Ok(Some(self.ready.copy_to_bytes(length)))
    }

    /// Waits for more bytes. Empty at the end.
    async fn arrive(&mut self) -> Result<Buffer> {
        let Some(arriving) = self.arriving.take() else { return Ok(Buffer::new()) };
        let (arriving, next) = self
            .cloud
            .ask_with(Direction::Read, 0, arriving, |arriving| {
                async move { arriving.next().await.transpose() }.boxed()
            })
            .await;
        self.arriving = arriving;
        Ok(next.map_err(|error| self.cloud.fault(READING, &error))?.unwrap_or_default())
    }
}

/// Returns the time that a reader has for a piece at `rate` bytes per second.
fn reader_time(piece: &Result<Bytes>, rate: u64) -> Duration {
    let length = piece.as_ref().map_or(0, Bytes::len) as u64;
    match length.checked_div(rate) {
        Some(secs) => Duration::from_secs(secs).max(LEAST_READER_TIME),
        None => Duration::MAX,
    }
}
