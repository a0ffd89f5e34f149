//! Chunks that the png crate must not see, because it would refuse the whole picture for their colour
//! information. The picture is visible without them.
//!
//! The crate skips a chunk with a wrong checksum if the picture does not need the chunk. So this module hides
//! a chunk by changing its checksum during the read.

use std::io::{self, Read, Seek, SeekFrom};

/// A file with wrong checksums at some positions.
pub(super) struct Hiding<R> {
    file: R,
    places: [Option<u64>; 3],
}

impl<R> Hiding<R> {
    pub(super) fn new(file: R, places: [Option<u64>; 3]) -> Self {
        Self { file, places }
    }
}

impl<R: Read + Seek> Read for Hiding<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let start = self.file.stream_position()?;
        let count = self.file.read(to)?;
        for place in self.places.into_iter().flatten() {
            let at = place.checked_sub(start).and_then(|at| usize::try_from(at).ok());
            if let Some(byte) = at.and_then(|at| to[..count].get_mut(at)) {
                *byte ^= 0xFF;
            }
        }
        Ok(count)
    }
}

impl<R: Seek> Seek for Hiding<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
