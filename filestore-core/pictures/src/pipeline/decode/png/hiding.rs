//! Chunks that the png crate must not see: it refuses a whole picture for what they say of colours, and the
//! picture can be shown without them.
//!
//! The crate skips a chunk whose checksum is wrong if the picture can be decoded without it. So a chunk is
//! hidden by a change of its checksum on the way from the file.

use std::io::{self, Read, Seek, SeekFrom};

/// A file in which the checksums at some places are wrong.
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
