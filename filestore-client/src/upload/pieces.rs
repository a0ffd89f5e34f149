//! The bytes of an upload, read in pieces from any offset.

use std::io::{self, SeekFrom};
use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt};

use crate::upload::item::{Source, reader_of};

/// Number of bytes in one read.
const CHUNK_BYTES: usize = 256 << 10;

/// The bytes of an upload.
pub(super) struct Pieces {
    origin: Origin,
    /// Total number of bytes, if known.
    pub(super) len: Option<u64>,
}

enum Origin {
    /// Opened for every piece.
    Path(PathBuf),
    Bytes(Bytes),
    Reader(Window),
}

/// The piece of a reader that the server might ask for again.
struct Window {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    start: u64,
    bytes: Bytes,
    /// True after the reader has returned its last byte.
    is_over: bool,
}

/// A piece to send.
pub(super) struct Piece {
    pub(super) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) len: u64,
    /// True if no byte follows the piece.
    pub(super) is_last: bool,
}

impl Pieces {
    pub(super) fn new(source: Source, len: Option<u64>) -> Self {
        let origin = match source {
            Source::Path(path) => Origin::Path(path),
            Source::Bytes(bytes) => Origin::Bytes(bytes),
            Source::Reader(reader, _) => Origin::Reader(Window::new(reader)),
            Source::Stream(chunks, _) => Origin::Reader(Window::new(reader_of(chunks))),
            Source::Spent => Origin::Reader(Window::new(Box::new(Spent))),
        };
        Self { origin, len }
    }

    /// Returns the piece of at most `most` bytes from `offset` on.
    ///
    /// Fails if the source has another length than announced, or if a reader has already passed `offset`.
    pub(super) async fn piece(&mut self, offset: u64, most: u64) -> io::Result<Piece> {
        let len = self.len;
        match &mut self.origin {
            Origin::Path(path) => {
                let named = |error: io::Error| {
                    io::Error::new(error.kind(), format!("{error}: {}", path.display()))
                };
                let mut file = tokio::fs::File::open(&*path).await.map_err(named)?;
                let there = file.metadata().await.map_err(named)?.len();
                let len = len.unwrap_or(there);
                if there != len {
                    return Err(io::Error::other("the file changed its length during the upload"));
                }
                file.seek(SeekFrom::Start(offset)).await.map_err(named)?;
                let piece = most.min(len.saturating_sub(offset));
                let is_last = offset.saturating_add(piece) >= len;
                Ok(Piece { reader: Box::new(file), len: piece, is_last })
            }
            Origin::Bytes(bytes) => Ok(slice(bytes, 0, offset, most, true)),
            Origin::Reader(window) => {
                window.fill_to(offset, most, len).await?;
                Ok(slice(&window.bytes, window.start, offset, most, window.is_over))
            }
        }
    }

    /// Adds the bytes between two offsets to a digest.
    pub(super) async fn hash(&mut self, hasher: &mut Sha256, from: u64, to: u64) -> io::Result<()> {
        let mut at = from;
        while at < to {
            let Piece { mut reader, len, .. } = self.piece(at, to - at).await?;
            if len == 0 {
                return Err(too_short());
            }
            let mut left = len;
            while left > 0 {
                let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
                let most = left.min(CHUNK_BYTES as u64);
                if (&mut reader).take(most).read_buf(&mut chunk).await? == 0 {
                    return Err(too_short());
                }
                hasher.update(&chunk);
                left -= chunk.len() as u64;
            }
            at += len;
        }
        Ok(())
    }
}

impl Window {
    fn new(reader: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        Self { reader, start: 0, bytes: Bytes::new(), is_over: false }
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Reads on until the window contains the byte at `offset`, or the source is over.
    async fn fill_to(&mut self, offset: u64, most: u64, len: Option<u64>) -> io::Result<()> {
        if offset < self.start {
            let message = "the server asks for bytes that the reader has already passed";
            return Err(io::Error::other(message));
        }
        while self.end() <= offset && !self.is_over {
            self.start = self.end();
            self.fill(most, len).await?;
        }
        if offset > self.end() { Err(too_short()) } else { Ok(()) }
    }

    /// Replaces the window by the next bytes. Reads one byte past an announced length, so that a longer reader
    /// is noticed.
    async fn fill(&mut self, most: u64, len: Option<u64>) -> io::Result<()> {
        let left = len.map_or(u64::MAX, |len| len.saturating_sub(self.start));
        let wanted = most.min(left);
        let mut bytes = BytesMut::new();
        while (bytes.len() as u64) < wanted {
            bytes.reserve(CHUNK_BYTES);
            let room = wanted - bytes.len() as u64;
            if (&mut self.reader).take(room).read_buf(&mut bytes).await? == 0 {
                self.is_over = true;
                break;
            }
        }

        if len.is_some() && (bytes.len() as u64) < wanted {
            return Err(too_short());
        }
        if wanted == left {
            if self.reader.read(&mut [0]).await? > 0 {
                return Err(io::Error::other("the source is longer than announced"));
            }
            self.is_over = true;
        }
        self.bytes = bytes.freeze();
        Ok(())
    }
}

/// Returns a piece of bytes that begin at `start`. `is_end` is true if the source ends with them.
fn slice(bytes: &Bytes, start: u64, offset: u64, most: u64, is_end: bool) -> Piece {
    let from = usize::try_from(offset - start).unwrap_or(usize::MAX).min(bytes.len());
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let to = from.saturating_add(most).min(bytes.len());
    Piece {
        reader: Box::new(io::Cursor::new(bytes.slice(from..to))),
        len: (to - from) as u64,
        is_last: is_end && to == bytes.len(),
    }
}

fn too_short() -> io::Error {
    let message = "the source is shorter than announced, or shrank during the upload";
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}

/// A reader that was used up.
struct Spent;

impl AsyncRead for Spent {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Err(io::Error::other("the reader was used up")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(pieces: &mut Pieces, offset: u64, most: u64) -> io::Result<(Vec<u8>, bool)> {
        let Piece { reader, len, is_last } = pieces.piece(offset, most).await?;
        let mut bytes = Vec::new();
        reader.take(len).read_to_end(&mut bytes).await?;
        assert_eq!(bytes.len() as u64, len);
        Ok((bytes, is_last))
    }

    fn reader(len: Option<u64>) -> Pieces {
        Pieces::new(Source::Reader(Box::new(&b"hello world"[..]), len), len)
    }

    #[tokio::test]
    async fn every_source_gives_the_same_pieces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "hello world").unwrap();
        let whole = Bytes::from_static(b"hello world");
        for mut pieces in [
            Pieces::new(Source::Path(path), Some(11)),
            Pieces::new(Source::Bytes(whole), Some(11)),
            reader(Some(11)),
            reader(None),
        ] {
            assert_eq!(read(&mut pieces, 0, 6).await.unwrap(), (b"hello ".to_vec(), false));
            assert_eq!(read(&mut pieces, 3, 2).await.unwrap(), (b"lo".to_vec(), false));
            let (rest, _) = read(&mut pieces, 6, 5).await.unwrap();
            assert_eq!(rest, b"world");
            assert_eq!(read(&mut pieces, 11, 6).await.unwrap(), (Vec::new(), true));
        }
    }

    #[tokio::test]
    async fn a_reader_gives_its_window_again_and_nothing_before_it() {
        let mut pieces = reader(None);
        read(&mut pieces, 0, 6).await.unwrap();
        read(&mut pieces, 6, 6).await.unwrap();
        assert_eq!(read(&mut pieces, 7, 9).await.unwrap(), (b"orld".to_vec(), true));
        let refused = read(&mut pieces, 5, 6).await.unwrap_err();
        assert!(refused.to_string().contains("already passed"), "{refused}");
    }

    #[tokio::test]
    async fn a_source_of_another_length_is_refused() {
        for len in [10, 12] {
            assert!(read(&mut reader(Some(len)), 0, 20).await.is_err(), "{len}");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "hello").unwrap();
        let mut pieces = Pieces::new(Source::Path(path.clone()), Some(5));
        read(&mut pieces, 0, 2).await.unwrap();
        std::fs::write(&path, "hello!").unwrap();
        assert!(read(&mut pieces, 2, 9).await.is_err());
    }

    #[tokio::test]
    async fn a_digest_continues_over_the_windows_of_a_reader() {
        let mut pieces = reader(None);
        let mut hasher = Sha256::new();
        pieces.hash(&mut hasher, 0, 4).await.unwrap();
        pieces.hash(&mut hasher, 4, 11).await.unwrap();
        assert_eq!(hasher.finalize(), Sha256::digest(b"hello world"));
        assert!(pieces.hash(&mut Sha256::new(), 11, 12).await.is_err());
    }
}
