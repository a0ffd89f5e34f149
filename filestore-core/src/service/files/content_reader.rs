//! The content of a file as a reader.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use futures_util::StreamExt as _;
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};

use crate::storage::ByteStream;

/// The content of a file as a reader; from [`Files::reader`](crate::Files::reader). A failure is an [`io::Error`] with
/// an [`Error`](crate::Error) as its source, and the reader then has no more bytes.
pub struct ContentReader {
    bytes: ByteStream,
    /// The rest of the last chunk.
    chunk: Bytes,
    is_over: bool,
}

impl ContentReader {
    pub(super) fn new(bytes: ByteStream) -> Self {
        Self { bytes, chunk: Bytes::new(), is_over: false }
    }
}

impl AsyncBufRead for ContentReader {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let own = self.get_mut();
        while own.chunk.is_empty() && !own.is_over {
            match ready!(own.bytes.poll_next_unpin(cx)) {
                Some(Ok(chunk)) => own.chunk = chunk,
                Some(Err(error)) => {
                    own.is_over = true;
                    return Poll::Ready(Err(io::Error::other(error)));
                }
                None => own.is_over = true,
            }
        }
        Poll::Ready(Ok(&own.chunk))
    }

    fn consume(self: Pin<&mut Self>, count: usize) {
        self.get_mut().chunk.advance(count);
    }
}

impl AsyncRead for ContentReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes = ready!(self.as_mut().poll_fill_buf(cx))?;
        let count = bytes.len().min(buffer.remaining());
        buffer.put_slice(&bytes[..count]);
        self.consume(count);
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for ContentReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentReader")
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _};

    use super::*;
    use crate::domain::error::Error;

    #[tokio::test]
    async fn chunks_are_read_in_order_and_lent_without_a_copy() {
        let first = Bytes::from_static(b"hello, ");
        let chunks = [Ok(first.clone()), Ok(Bytes::new()), Ok("world".into())];
        let mut reader = ContentReader::new(stream::iter(chunks).boxed());
        assert_eq!(reader.fill_buf().await.unwrap().as_ptr(), first.as_ptr());
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello, world");
    }

    #[tokio::test]
    async fn a_failure_has_the_error_of_the_store_and_is_the_end() {
        let chunks = [Ok("a".into()), Err(Error::not_found("file")), Ok("b".into())];
        let mut reader = ContentReader::new(stream::iter(chunks).boxed());
        let mut bytes = Vec::new();
        let error = reader.read_to_end(&mut bytes).await.unwrap_err();
        assert!(error.get_ref().unwrap().is::<Error>());
        assert_eq!(reader.read_to_end(&mut bytes).await.unwrap(), 0);
        assert_eq!(bytes, b"a");
    }
}
