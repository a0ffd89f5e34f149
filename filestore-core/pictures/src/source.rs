//! Access to the bytes of a picture in a file or in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;

/// A picture's bytes, read by position.
///
/// The crate reads headers first, so rejecting a picture over a limit costs a few hundred bytes. Where a call
/// takes a `&dyn Source`, you can pass for example a `&File`, a `&Vec<u8>` or a `&&[u8]`.
pub trait Source {
    /// Returns the number of bytes.
    fn size(&self) -> io::Result<u64>;

    /// Reads bytes at `position` into `buffer`, and returns their number. The number is 0 only at the end.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;
}

/// Reads by position. The cursor of the file does not move.
impl Source for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, position)
    }
}

impl Source for [u8] {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let from = usize::try_from(position).unwrap_or(usize::MAX).min(self.len());
        let count = buffer.len().min(self.len() - from);
        buffer[..count].copy_from_slice(&self[from..from + count]);
        Ok(count)
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        (**self).read_at(buffer, position)
    }
}

impl Source for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        self.as_slice().size()
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.as_slice().read_at(buffer, position)
    }
}

impl Source for Bytes {
    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        (**self).read_at(buffer, position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::file;

    #[test]
    fn bytes_are_read_as_a_file_of_them_is() {
        let bytes = b"a picture".as_slice();
        let (on_disk, in_memory, shared) = (file(bytes), bytes.to_vec(), Bytes::from_static(bytes));
        let sources: [&dyn Source; 4] = [&on_disk, &bytes, &in_memory, &shared];
        for source in sources {
            assert_eq!(source.size().unwrap(), 9);
            for (position, expected) in
                [(0, &b"a pic"[..]), (6, b"ure"), (9, b""), (10, b""), (u64::from(u32::MAX), b"")]
            {
                let mut buffer = [0; 5];
                let count = source.read_at(&mut buffer, position).unwrap();
                assert_eq!(&buffer[..count], expected, "{position}");
            }
        }
    }
}
