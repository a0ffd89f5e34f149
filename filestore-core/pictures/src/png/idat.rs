//! Reads the data of a PNG's IDAT chunks as one stream, and verifies their checksums.

use std::io::BufRead;

use crc32fast::Hasher;

use super::Broken;

/// The bytes of a PNG's signature.
const SIGNATURE_BYTES: usize = 8;
const IDAT: [u8; 4] = *b"IDAT";

/// The IDAT chunks of a file, from the first one on.
pub(super) struct Idat<R> {
    file: R,
    /// The number of unread bytes in the chunk.
    left: u32,
    /// The checksum of the bytes read from the chunk so far.
    checksum: Hasher,
    ended: bool,
}

impl<R: BufRead> Idat<R> {
    /// Skips the chunks before the first IDAT without verifying their checksums.
    pub(super) fn open(file: R) -> Result<Self, Broken> {
        let mut idat = Self { file, left: 0, checksum: Hasher::new(), ended: false };
        idat.skip(SIGNATURE_BYTES)?;
        while !idat.begin()? {
            let rest = idat.left as usize + 4;
            idat.skip(rest)?;
        }
        Ok(idat)
    }

    /// Returns some of the next data. Empty at the end.
    pub(super) fn data(&mut self) -> Result<&[u8], Broken> {
        while self.left == 0 && !self.ended {
            self.compare()?;
            self.ended = !self.begin()?;
        }
        if self.ended {
            return Ok(&[]);
        }

        let arrived = self.file.fill_buf()?;
        if arrived.is_empty() {
            return Err("a chunk ends early".into());
        }
        Ok(&arrived[..arrived.len().min(self.left as usize)])
    }

    /// Consumes `bytes` bytes from the last result of [`data`](Self::data).
    pub(super) fn consume(&mut self, bytes: usize) -> Result<(), Broken> {
        if bytes == 0 {
            return Ok(());
        }
        let arrived = self.file.fill_buf()?.get(..bytes).ok_or("more than came")?;
        self.checksum.update(arrived);
        self.file.consume(bytes);
        self.left -= u32::try_from(bytes)?;
        Ok(())
    }

    /// Reads the length and the name of a chunk. Returns true for an IDAT.
    fn begin(&mut self) -> Result<bool, Broken> {
        self.left = u32::from_be_bytes(self.four()?);
        let name = self.four()?;
        self.checksum = Hasher::new();
        self.checksum.update(&name);
        Ok(name == IDAT)
    }

    /// Compares the checksum behind a chunk with the checksum of the bytes read.
    fn compare(&mut self) -> Result<(), Broken> {
        let said = u32::from_be_bytes(self.four()?);
        if said == self.checksum.clone().finalize() {
            return Ok(());
        }
        Err("a wrong checksum".into())
    }

    fn four(&mut self) -> Result<[u8; 4], Broken> {
        let mut four = [0; 4];
        self.file.read_exact(&mut four)?;
        Ok(four)
    }

    fn skip(&mut self, mut bytes: usize) -> Result<(), Broken> {
        while bytes > 0 {
            let arrived = self.file.fill_buf()?.len().min(bytes);
            if arrived == 0 {
                return Err("the file ends early".into());
            }
            self.file.consume(arrived);
            bytes -= arrived;
        }
        Ok(())
    }
}
