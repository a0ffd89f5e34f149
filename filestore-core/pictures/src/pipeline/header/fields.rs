//! Reads numbers from a seekable stream, in either byte order.

use std::io::{self, Read, Seek, SeekFrom};

/// Returns an error that names the fault of the bytes.
pub(super) fn broken(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads fields one after another. A field after the end is an `UnexpectedEof`.
pub(crate) struct Fields<R>(R);

impl<R: Read + Seek> Fields<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self(reader)
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut buffer = [0; N];
        self.0.read_exact(&mut buffer)?;
        Ok(buffer)
    }

    /// Reads up to `len` bytes. Returns fewer bytes only at the end of the input.
    pub(crate) fn up_to(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut buffer = Vec::with_capacity(len);
        self.0.by_ref().take(len as u64).read_to_end(&mut buffer)?;
        Ok(buffer)
    }

    /// Appends `len` bytes to `buffer`.
    pub(crate) fn append(&mut self, len: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
        let copied = self.0.by_ref().take(len).read_to_end(buffer)?;
        if copied as u64 == len { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    pub(crate) fn u8(&mut self) -> io::Result<u8> {
        Ok(self.bytes::<1>()?[0])
    }

    pub(crate) fn be16(&mut self) -> io::Result<u16> {
        self.bytes().map(u16::from_be_bytes)
    }

    pub(crate) fn be32(&mut self) -> io::Result<u32> {
        self.bytes().map(u32::from_be_bytes)
    }

    pub(crate) fn le16(&mut self) -> io::Result<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    pub(crate) fn le24(&mut self) -> io::Result<u32> {
        self.bytes().map(|[a, b, c]: [u8; 3]| u32::from_le_bytes([a, b, c, 0]))
    }

    pub(crate) fn le32(&mut self) -> io::Result<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    /// Returns the position of the next field.
    pub(crate) fn position(&mut self) -> io::Result<u64> {
        self.0.stream_position()
    }

    /// Seeks to `position`, which can be after the end.
    pub(crate) fn go_to(&mut self, position: u64) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(position)).map(drop)
    }

    /// Skips `count` bytes.
    pub(crate) fn skip(&mut self, count: u64) -> io::Result<()> {
        // A relative seek keeps the buffer of a buffered reader.
        self.0.seek_relative(i64::try_from(count).map_err(|_| broken("an absurd length"))?)
    }
}
