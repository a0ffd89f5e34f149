//! A file in which a few bytes read as others: a decoder is told what it takes wrongly otherwise.

use std::io::{self, Read, Seek, SeekFrom};

/// A reader with `bytes` in place of those at `at`.
pub(super) struct Overlay<R, const N: usize> {
    inner: R,
    at: u64,
    bytes: [u8; N],
    position: u64,
}

impl<R, const N: usize> Overlay<R, N> {
    /// Covers `inner`, which stands at its start.
    pub(super) fn new(inner: R, at: u64, bytes: [u8; N]) -> Self {
        Self { inner, at, bytes, position: 0 }
    }
}

impl<R: Read, const N: usize> Read for Overlay<R, N> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        for (place, byte) in (self.at..).zip(self.bytes) {
            let within = place.checked_sub(self.position).and_then(|at| usize::try_from(at).ok());
            if let Some(to) = within.and_then(|at| buffer[..count].get_mut(at)) {
                *to = byte;
            }
        }

        self.position += count as u64;
        Ok(count)
    }
}

impl<R: Seek, const N: usize> Seek for Overlay<R, N> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.inner.seek(to)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn the_bytes_are_others_however_they_are_read() {
        for step in 1..8 {
            let mut reader = Overlay::new(Cursor::new(b"abcdefgh"), 3, *b"XY");
            let mut seen: Vec<u8> = Vec::new();
            let mut buffer = [0; 8];
            while let count @ 1.. = reader.read(&mut buffer[..step]).unwrap() {
                seen.extend(&buffer[..count]);
            }
            assert_eq!(seen, b"abcXYfgh", "{step} at once");
            reader.seek(SeekFrom::Start(4)).unwrap();
            reader.read_exact(&mut buffer[..2]).unwrap();
            assert_eq!(&buffer[..2], b"Yf");
        }
    }
}
