//! Ranges of objects as streams.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt, stream};
use opendal::{Buffer, BufferStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::Cloud;
use super::breaker::Direction;
use crate::domain::error::{Error, ErrorKind, Result};

const READING: &str = "reading a blob";

/// Size of the largest piece that a stream yields.
const PIECE_BYTES: usize = 256 << 10;

impl Cloud {
    /// Reads `range` of an object, in pieces of at most 256 KiB; see
    /// [`BlobStore::read`](crate::storage::BlobStore::read). [`ErrorKind::NotFound`] if it is
    /// absent.
    pub(super) async fn read_path(
        &self,
        path: &str,
        size_bytes: u64,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = Result<Bytes>> + Send + 'static + use<>> {
        if range.start > range.end || range.end > size_bytes {
            return Err(Error::internal(READING, format!("{range:?} of {size_bytes} bytes")));
        }

        let _admission = self.inner.breakers.admit(Direction::Read)?;
        let turns = Arc::clone(&self.inner.reads).acquire_owned();
        let turn = timeout(self.inner.timeout, turns)
            .await
            .map_err(|_| Error::new(ErrorKind::Busy, "too many reads from the provider at once"))?
            .expect("the turns are never closed");

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

    /// Compares the length of the stored object with `size_bytes`, without reading it.
    async fn check_length(&self, path: &str, size_bytes: u64) -> Result<()> {
        let stored = self.ask(Direction::Read, self.inner.reading.stat(path)).await;
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

/// A read under way. Keeps one of the provider's turns until dropped.
struct Reading {
    cloud: Cloud,
    _turn: OwnedSemaphorePermit,
    arriving: Option<BufferStream>,
    /// Bytes that arrived and were not handed out yet.
    ready: Buffer,
    /// How many bytes are still to be handed out.
    left: u64,
}

impl Reading {
    /// Asks for `range` and waits for its first bytes.
    async fn begin(&mut self, path: &str, size_bytes: u64, range: Range<u64>) -> Result<()> {
        let first = async {
            let reader = self.cloud.inner.reading.reader(path).await?;
            let mut arriving = reader.into_stream(range).await?;
            let ready = arriving.next().await.transpose()?.unwrap_or_default();
            Ok((arriving, ready))
        };
        let first = self.cloud.ask(Direction::Read, first).await;
        let (mut arriving, ready) = first.map_err(|error| self.cloud.fault(READING, &error))?;

        // The reply to a range tells the whole length too, but not from every service.
        if let Ok(stored) = arriving.metadata().await {
            self.cloud.compare(stored.content_length(), size_bytes)?;
        }

        self.ready = ready;
        self.arriving = Some(arriving);
        Ok(())
    }

    /// Takes the next piece; `None` at the end.
    async fn next_piece(&mut self) -> Result<Option<Bytes>> {
        if self.left == 0 {
            return Ok(None);
        }

        if self.ready.is_empty() {
            let next = match &mut self.arriving {
                Some(arriving) => {
                    let next = async { arriving.next().await.transpose() };
                    self.cloud.ask(Direction::Read, next).await
                }
                None => Ok(None),
            };
            self.ready =
                next.map_err(|error| self.cloud.fault(READING, &error))?.unwrap_or_default();
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
}
