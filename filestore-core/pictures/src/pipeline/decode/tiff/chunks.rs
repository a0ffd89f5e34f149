//! The places of strips and tiles, and their bytes as they are stored.

use std::io::{self, BufReader, Read, Seek};

use crate::error::{Result, corrupt};
use crate::pipeline::header::{Compression, Fields, TiffHeader, Values};
use crate::pipeline::image_file::{ImageFile, ImageFileReader};

/// The stored bytes of a strip or tile. The length is what the file claims, or up to the next one if it
/// claims none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: u64,
    pub(super) length: u64,
}

/// The places of all strips or tiles.
pub(super) struct Chunks {
    offsets: Vec<u64>,
    lengths: Vec<u64>,
    /// The places in their order, and the end of the file, if a length is missing.
    edges: Vec<u64>,
}

impl Chunks {
    /// Reads the places. More of them than there are strips or tiles are left alone; those that are missing
    /// are strips or tiles that did not come.
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

    /// Returns the place of a strip or tile; `None` if it has none.
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

/// The bytes of a file, those of strips and tiles perhaps with their bits turned around.
pub(super) struct Source<'a> {
    reader: BufReader<ImageFileReader<'a>>,
    is_reversed: bool,
}

impl<'a> Source<'a> {
    pub(super) fn open(image: &'a ImageFile<'_>, is_reversed: bool) -> Self {
        Self { reader: image.reader(), is_reversed }
    }

    /// Goes to a place, which may be beyond the end.
    pub(super) fn go_to(&mut self, at: u64) -> io::Result<()> {
        // Relative, so that the buffer is kept.
        let here = self.reader.stream_position()?;
        let distance = i128::from(at) - i128::from(here);
        let distance = i64::try_from(distance).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        self.reader.seek_relative(distance)
    }

    /// Reads the bytes at a place; returns the number of those that arrived.
    pub(super) fn fill(&mut self, at: u64, to: &mut [u8]) -> usize {
        if self.go_to(at).is_err() {
            return 0;
        }
        let mut filled = 0;
        while filled < to.len() {
            // A read that failed is found by whoever asks for the picture: here it is the end.
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
