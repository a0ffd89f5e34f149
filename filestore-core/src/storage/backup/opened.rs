//! A reader of a destination's bytes, from a file or from a provider.

use std::fs::File;
use std::io::{Read, Write};

use bytes::Bytes;
use futures_util::StreamExt;
use sha2::Digest;

use super::blocking;
use super::copy::{self, Copying};
use super::files::{READING, full};
use crate::domain::error::{Error, Result};
use crate::domain::id::Sha256;
use crate::storage::ByteStream;

const RESTORING: &str = "restoring from a snapshot";

/// The number of bytes in one file read.
const PIECE_BYTES: usize = 256 << 10;

/// The bytes of a stream that one task on the blocking pool writes.
const WRITTEN_BYTES: usize = 1 << 20;

/// Open bytes of a destination.
pub enum Opened {
    /// A file, at its beginning.
    File(File),
    /// Pieces as they arrive.
    Stream(ByteStream),
}

impl Opened {
    /// Reads all bytes and computes the digest. A file is read from the disk.
    pub async fn digest(self) -> Result<Copying> {
        match self {
            Self::File(file) => {
                blocking(READING, move || {
                    let found = copy::digest_of_disk(&file, &mut Vec::new());
                    found.map_err(|error| Error::io(READING, error))
                })
                .await
            }
            Self::Stream(mut bytes) => {
                let mut seen = Seen::default();
                while let Some(piece) = bytes.next().await.transpose()? {
                    seen.add(&piece);
                }
                Ok(seen.all())
            }
        }
    }

    /// Copies all bytes to an empty file. Returns their size and digest.
    pub async fn copy_to(self, mut to: File) -> Result<Copying> {
        let mut bytes = match self {
            Self::Stream(bytes) => bytes,
            Self::File(from) => {
                return blocking(RESTORING, move || {
                    let found = copy::copy(&from, &to, &mut Vec::new());
                    found.map_err(|error| full(Error::io(RESTORING, error.into())))
                })
                .await;
            }
        };

        let (mut seen, mut held) = (Seen::default(), Vec::with_capacity(WRITTEN_BYTES));
        while let Some(piece) = bytes.next().await.transpose()? {
            seen.add(&piece);
            held.extend_from_slice(&piece);
            if held.len() >= WRITTEN_BYTES {
                (to, held) = write(to, held).await?;
            }
        }
        write(to, held).await?;
        Ok(seen.all())
    }

    /// Converts the bytes to a stream.
    pub fn into_stream(self) -> ByteStream {
        match self {
            Self::Stream(bytes) => bytes,
            Self::File(file) => pieces(file),
        }
    }
}

/// The size and digest of the bytes so far.
#[derive(Default)]
struct Seen {
    hasher: sha2::Sha256,
    size_bytes: u64,
}

impl Seen {
    fn add(&mut self, piece: &[u8]) {
        self.hasher.update(piece);
        self.size_bytes += piece.len() as u64;
    }

    fn all(self) -> Copying {
        Copying { size_bytes: self.size_bytes, sha256: Sha256(self.hasher.finalize().into()) }
    }
}

async fn write(mut to: File, mut held: Vec<u8>) -> Result<(File, Vec<u8>)> {
    blocking(RESTORING, move || {
        to.write_all(&held).map_err(|error| full(Error::io(RESTORING, error)))?;
        held.clear();
        Ok((to, held))
    })
    .await
}

/// Streams a file.
pub(super) fn pieces(file: File) -> ByteStream {
    Box::pin(futures_util::stream::try_unfold(file, |mut file| async move {
        blocking(READING, move || {
            let mut piece = vec![0; PIECE_BYTES];
            let read = file.read(&mut piece).map_err(|error| Error::io(READING, error))?;
            piece.truncate(read);
            Ok((read > 0).then(|| (Bytes::from(piece), file)))
        })
        .await
    }))
}
