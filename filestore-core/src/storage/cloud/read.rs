//! Ranges of objects as streams.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt, stream};
use opendal::{Buffer, BufferStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::Cloud;
use crate::domain::error::{Error, ErrorKind, Result};

const READING: &str = "reading a blob";

/// The largest piece that a stream yields.
const PIECE_BYTES: usize = 256 << 10;

impl Cloud {
    /// Reads `range` of an object, in pieces of at most 256 KiB; see
    /// [`BlobStore::read`](crate::storage::BlobStore::read). [`ErrorKind::NotFound`] if it is absent.
    pub(super) async fn read_path(
        &self,
        path: &str,
        size_bytes: u64,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = Result<Bytes>> + Send + 'static + use<>> {
        if range.start > range.end || range.end > size_bytes {
            return Err(Error::internal(READING, format!("{range:?} of {size_bytes} bytes")));
        }
        let turns = Arc::clone(&self.inner.reads).acquire_owned();
        let turn = timeout(self.inner.timeout, turns)
            .await
            .map_err(|_| Error::new(ErrorKind::Busy, "too many reads from the provider at once"))?
            .expect("the turns are never closed");
        let mut reading = Reading {
            cloud: self.clone(),
            _turn: turn,
            source: None,
            ready: Buffer::new(),
            left: range.end - range.start,
        };
        if reading.left == 0 {
            // No request can ask for no bytes, but whether the object is there can be asked.
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

    async fn check_length(&self, path: &str, size_bytes: u64) -> Result<()> {
        let stored =
            self.inner.reading.stat(path).await.map_err(|error| self.fault(READING, &error))?;
        self.compare(stored.content_length(), size_bytes)
    }

    fn compare(&self, stored_bytes: u64, size_bytes: u64) -> Result<()> {
        if stored_bytes == size_bytes {
            return Ok(());
        }
        Err(self.broken(READING, format!("it has {stored_bytes} bytes, not {size_bytes}")))
    }
}

struct Reading {
    cloud: Cloud,
    _turn: OwnedSemaphorePermit,
    source: Option<BufferStream>,
    /// What arrived and was not handed out yet.
    ready: Buffer,
    /// Bytes still to be handed out.
    left: u64,
}

impl Reading {
    async fn begin(&mut self, path: &str, size_bytes: u64, range: Range<u64>) -> Result<()> {
        let cloud = self.cloud.clone();
        let fault = |error: opendal::Error| cloud.fault(READING, &error);
        let reader = cloud.inner.reading.reader(path).await.map_err(fault)?;
        let mut source = reader.into_stream(range).await.map_err(fault)?;
        self.ready = source.next().await.transpose().map_err(fault)?.unwrap_or_default();
        // The whole length, which comes with the reply to a range too. Services without it say nothing.
        if let Ok(stored) = source.metadata().await {
            self.cloud.compare(stored.content_length(), size_bytes)?;
        }
        self.source = Some(source);
        Ok(())
    }

    /// The next bytes; `None` at the end.
    async fn next_piece(&mut self) -> Result<Option<Bytes>> {
        if self.left == 0 {
            return Ok(None);
        }
        if self.ready.is_empty() {
            let next = match &mut self.source {
                Some(source) => source.next().await.transpose(),
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
