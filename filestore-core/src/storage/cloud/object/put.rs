//! Stores an object: computes its digest, sends it in one request or in parts, and verifies it.

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use opendal::options::WriteOptions;
use opendal::{Buffer, Metadata};
use sha2::Digest;

use super::parts::PartsWriter;
use super::verify::Arrival;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::Sha256;
use crate::storage::cloud::line::breaker::Direction;
use crate::storage::cloud::line::gate::{Pass, Patience};
use crate::storage::cloud::{Cloud, Scheme};
use crate::storage::{BlobInfo, Priority};

pub(in crate::storage::cloud) const STORING: &str = "storing a blob";

/// The bytes in one request, which is also the smallest part that S3 accepts.
const CHUNK_BYTES: u64 = 5 << 20;

/// The maximum number of parts in an upload. S3 accepts 10,000.
const MAX_PARTS: u64 = 9_000;

/// The memory of a put in addition to its bytes.
const PUT_OVERHEAD_BYTES: u64 = 16 << 10;

impl Cloud {
    /// Stores an object. See [`BlobStore::put`](crate::storage::BlobStore::put).
    pub(in crate::storage::cloud) async fn put_path(
        &self,
        path: &str,
        object: &BlobInfo,
        bytes: impl Stream<Item = Result<Bytes>> + Send + Unpin,
        priority: &Priority,
    ) -> Result<()> {
        self.inner.breakers.check(Direction::Write)?;

        // A source that is slow to begin must not keep memory from others.
        let mut outgoing = Outgoing::new(bytes, object);
        outgoing.begin().await?;

        let chunk_bytes = self.chunk_bytes(object.size_bytes);
        let is_whole = object.size_bytes <= chunk_bytes;
        let held = if is_whole { object.size_bytes } else { 2 * chunk_bytes } + PUT_OVERHEAD_BYTES;
        let memory = self.inner.memory.take(held, priority, self.wait_limit()).await;
        let memory = memory.map_err(|waited| self.busy("puts", waited))?;

        let first = outgoing.next_chunk(chunk_bytes).await?;
        if is_whole {
            outgoing.finish().await?;
        }

        let _admission = self.inner.breakers.admit(Direction::Write)?;
        self.confirm_identity(path, Direction::Write).await?;
        let options = self.write_options(object).await?;
        let turns = self.turn_patience(priority);
        let arrival = if is_whole {
            self.put_whole(path, options, first, turns, memory).await?
        } else {
            self.put_parts(path, chunk_bytes, options, first, outgoing, turns, memory).await?
        };

        self.verify(path, object, arrival, turns).await?;
        self.flush(path).await?;
        // Only now may the source go: the place is still the one that the records mean.
        self.confirm_identity(path, Direction::Write).await
    }

    /// Sends the object in one request, from memory.
    async fn put_whole(
        &self,
        path: &str,
        options: WriteOptions,
        whole: Buffer,
        turns: Patience,
        memory: Pass,
    ) -> Result<Arrival> {
        let turn = self.inner.turns.sends.pass(1, turns).await;
        let turn = turn.map_err(|waited| self.busy("puts", waited))?;

        let (operator, path) = (self.inner.operator.clone(), path.to_owned());
        let bytes = whole.len() as u64;
        // Dropped with the put: a request that nobody waits for is cancelled.
        let write = async move {
            let _held = (memory, turn);
            operator.write_options(&path, whole, options).await
        };
        let written = self.ask_long(Direction::Write, bytes, write).await;
        self.arrival(written, None)
    }

    /// Sends the object as a multipart upload, part by part. Two parts are in memory at a time.
    #[expect(clippy::too_many_arguments, reason = "the state of a put that continues in parts")]
    async fn put_parts(
        &self,
        path: &str,
        chunk_bytes: u64,
        options: WriteOptions,
        first: Buffer,
        mut outgoing: Outgoing<impl Stream<Item = Result<Bytes>> + Send + Unpin>,
        turns: Patience,
        memory: Pass,
    ) -> Result<Arrival> {
        let writer = self.inner.operator.writer_options(path, options).await;
        let writer = writer.map_err(|error| self.fault(STORING, &error))?;
        let mut parts = PartsWriter::start(writer, self.clone(), turns, memory);

        let sent = async {
            parts.write(first).await?;
            while outgoing.left_bytes() > 0 {
                let part = outgoing.next_chunk(chunk_bytes).await?;
                parts.write(part).await?;
            }
            outgoing.finish().await
        };
        if let Err(error) = sent.await {
            parts.abort().await;
            return Err(error);
        }

        let (closed, etag) = parts.close().await?;
        self.arrival(closed, Some(&etag))
    }

    /// Interprets the provider's answer. "It exists" means that the reply to an earlier attempt was lost.
    /// Keys are used once, so the object is ours, and is read back.
    fn arrival(
        &self,
        answer: opendal::Result<Metadata>,
        parts_etag: Option<&str>,
    ) -> Result<Arrival> {
        use opendal::ErrorKind as Theirs;

        match (answer, parts_etag) {
            (Ok(_), None) => Ok(Arrival::Whole),

            (Ok(metadata), Some(ours)) => {
                let theirs = metadata.etag().map(|etag| etag.trim_matches('"'));
                Ok(if theirs == Some(ours) { Arrival::PartsChecked } else { Arrival::Unchecked })
            }

            (Err(error), _)
                if matches!(error.kind(), Theirs::ConditionNotMatch | Theirs::AlreadyExists) =>
            {
                Ok(Arrival::Unchecked)
            }

            // A retry completes an upload that is gone because it is complete already.
            (Err(error), Some(_)) if error.kind() == Theirs::NotFound => Ok(Arrival::Unchecked),

            (Err(error), _) => Err(self.fault(STORING, &error)),
        }
    }

    /// Sets type, disposition and condition as far as the provider supports them.
    async fn write_options(&self, object: &BlobInfo) -> Result<WriteOptions> {
        let can = self.inner.operator.info().capability();
        let content_type = can.write_with_content_type.then(|| single_spaced(&object.content_type));
        let disposition = object.content_disposition.as_deref();
        let content_disposition =
            disposition.filter(|_| can.write_with_content_disposition).map(single_spaced);
        let if_not_exists = self.probed().await?.puts_if_absent;

        Ok(WriteOptions {
            content_type,
            content_disposition,
            if_not_exists,
            ..WriteOptions::default()
        })
    }

    /// Returns the bytes in one request for an object of this size.
    fn chunk_bytes(&self, size_bytes: u64) -> u64 {
        match self.inner.scheme {
            // The service holds everything in memory anyway, and has no parts.
            Scheme::Memory => size_bytes,
            _ => CHUNK_BYTES.max(size_bytes.div_ceil(MAX_PARTS)),
        }
    }
}

/// Replaces several spaces in a row by one. S3 signs header values in this form (Signature Version 4,
/// `Trim`), but the signer does not. A put with two spaces in a name would otherwise be refused.
fn single_spaced(value: &str) -> String {
    let mut spaced = String::with_capacity(value.len());
    for c in value.chars() {
        if c != ' ' || !spaced.ends_with(' ') {
            spaced.push(c);
        }
    }
    spaced
}

/// The bytes on their way to the provider, counted and hashed.
struct Outgoing<S> {
    stream: S,
    /// The bytes taken from the stream beyond the last chunk.
    rest: Bytes,
    left_bytes: u64,
    hasher: sha2::Sha256,
    expected: Sha256,
}

impl<S: Stream<Item = Result<Bytes>> + Send + Unpin> Outgoing<S> {
    fn new(stream: S, object: &BlobInfo) -> Self {
        let (left_bytes, expected) = (object.size_bytes, object.sha256);
        Self { stream, rest: Bytes::new(), left_bytes, hasher: sha2::Sha256::new(), expected }
    }

    /// Waits for the first bytes, if the object has any.
    async fn begin(&mut self) -> Result<()> {
        while self.left_bytes > 0 && self.rest.is_empty() {
            self.rest = self.next_piece().await?;
        }
        Ok(())
    }

    async fn next_piece(&mut self) -> Result<Bytes> {
        let next = self.stream.next().await.transpose()?;
        next.ok_or_else(|| mismatch("the blob ends early"))
    }

    /// Returns the number of remaining bytes.
    fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Returns the next `chunk_bytes`, or all remaining bytes if there are fewer.
    async fn next_chunk(&mut self, chunk_bytes: u64) -> Result<Buffer> {
        let mut wanted = chunk_bytes.min(self.left_bytes);
        let mut pieces = Vec::new();

        while wanted > 0 {
            // An empty piece must not get into a buffer: some services of OpenDAL take it for the
            // end.
            while self.rest.is_empty() {
                self.rest = self.next_piece().await?;
            }

            let length = usize::try_from(wanted).unwrap_or(usize::MAX).min(self.rest.len());
            let piece = self.rest.split_to(length);
            self.hasher.update(&piece);
            (wanted, self.left_bytes) = (wanted - length as u64, self.left_bytes - length as u64);
            pieces.push(piece);
        }

        Ok(Buffer::from(pieces))
    }

    /// Checks the digest, and that no more bytes follow. Call it before the last request.
    async fn finish(&mut self) -> Result<()> {
        let mut is_over = self.rest.is_empty();
        while is_over && let Some(more) = self.stream.next().await {
            is_over = more?.is_empty();
        }
        if !is_over {
            return Err(mismatch("the blob is longer than it should be"));
        }

        let digest = Sha256(self.hasher.clone().finalize().into());
        if digest == self.expected { Ok(()) } else { Err(mismatch("the blob has another digest")) }
    }
}

fn mismatch(problem: &str) -> Error {
    Error::new(ErrorKind::DigestMismatch, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_a_row_become_one() {
        for (value, spaced) in
            [("", ""), ("a b", "a b"), ("a  b   c", "a b c"), ("\"  x \"", "\" x \"")]
        {
            assert_eq!(single_spaced(value), spaced);
        }
    }
}
