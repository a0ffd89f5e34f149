//! The positions of strips and tiles, and their stored bytes.

use std::io::{self, BufReader, Read, Seek};

use crate::error::{Result, corrupt};
use crate::pipeline::header::{Compression, Fields, TiffHeader, Values};
use crate::pipeline::image_file::{ImageFile, ImageFileReader};

/// The stored bytes of a strip or tile. The file claims the length. Without a claim, the bytes reach to the
/// next strip or tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: u64,
    pub(super) length: u64,
}

/// The positions of all strips or tiles.
pub(super) struct Chunks {
    offsets: Vec<u64>,
    lengths: Vec<u64>,
    /// The positions in ascending order, and the end of the file, in case a length is missing.
    edges: Vec<u64>,
}

impl Chunks {
    /// Reads the positions. Ignores additional positions. A strip or tile without a position is missing.
    pub(super) fn read(image: &ImageFile<'_>, tiff: TiffHeader) -> Result<Self> {
        let most = tiff.chunk_count();
        let read = |values: Option<Values>| match values {
            Some(values) => {
                let mut fields = Fields::new(image.header_reader());
                values.numbers(&mut fields, most).map_err(|error| image.explain(error))
            }
            None => Ok(Vec::new()),
        };
        let (offsets, lengths) = (read(tiff.chunks.offsets)?, read(tiff.chunks.lengths)?);
        if offsets.is_empty() {
            return Err(corrupt("no strips and no tiles"));
        }

        let mut edges = Vec::new();
        let is_complete = lengths.len() >= offsets.len() && !lengths.contains(&0);
        if !is_complete && tiff.compression != Compression::None {
            edges = [&offsets[..], &[image.len()]].concat();
            edges.sort_unstable();
        }
        Ok(Self { offsets, lengths, edges })
    }

    /// Returns the position of a strip or tile. `None` if it is missing.
    pub(super) fn place(&self, number: u64) -> Option<Place> {
        let number = usize::try_from(number).ok()?;
        let at = self.offsets.get(number).copied().filter(|at| *at > 0)?;
        let length = match self.lengths.get(number) {
            Some(length) if *length > 0 => *length,
            _ => {
                let next = self.edges.partition_point(|edge| *edge <= at);
                self.edges.get(next).map_or(0, |next| next - at)
            }
        };
        Some(Place { at, length })
    }
}

/// The bytes of a file. If necessary, the bits of strips and tiles are reversed.
pub(super) struct Source<'a> {
    reader: BufReader<ImageFileReader<'a>>,
    is_reversed: bool,
}

impl<'a> Source<'a> {
    pub(super) fn open(image: &'a ImageFile<'_>, is_reversed: bool) -> Self {
        Self { reader: image.reader(), is_reversed }
    }

    /// Seeks to a position, which can be after the end.
    pub(super) fn go_to(&mut self, at: u64) -> io::Result<()> {
        // A relative seek keeps the buffer.
        let here = self.reader.stream_position()?;
        let distance = i128::from(at) - i128::from(here);
        let distance = i64::try_from(distance).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        self.reader.seek_relative(distance)
    }

    /// Reads the bytes at a position. Returns the number of bytes that arrived.
    pub(super) fn fill(&mut self, at: u64, to: &mut [u8]) -> usize {
        if self.go_to(at).is_err() {
            return 0;
        }
        let mut filled = 0;
        while filled < to.len() {
            // A failed read counts as the end here. The caller that asks for the picture gets the error.
            match self.read(&mut to[filled..]) {
                Ok(count @ 1..) => filled += count,
                _ => break,
            }
        }
        filled
    }
}

impl Read for Source<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(to)?;
        if self.is_reversed {
            for byte in &mut to[..count] {
                *byte = byte.reverse_bits();
            }
        }
        Ok(count)
    }
}
