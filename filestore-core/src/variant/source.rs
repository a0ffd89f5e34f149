//! A blob as the decoders read it: by position, watched by a deadline, and honest about why a
//! read failed.
//!
//! Decoders wrap or drop the errors of their reader. What really happened is kept here, so that a
//! fault of the disk never looks like a corrupt image (which clients would believe for good).

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::domain::error::{Error, ErrorKind, Result};

/// How much a decoder's reader fetches at once.
const DECODE_BUFFER_BYTES: usize = 64 * 1024;
/// The same for headers, where most of the file is skipped.
const HEADER_BUFFER_BYTES: usize = 4 * 1024;

/// When work on a variant ends at the latest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Option<Instant>);

impl Deadline {
    /// Never: for work that is bounded by itself.
    pub(super) const NONE: Self = Self(None);

    /// `time` from now.
    pub(super) fn after(time: Duration) -> Self {
        Self(Instant::now().checked_add(time))
    }

    /// Whether it has come.
    pub(super) fn has_passed(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}

const TOO_SLOW: &str = "the image takes too long to decode";

/// The error of a picture that takes longer than allowed.
pub(super) fn too_slow() -> Error {
    Error::new(ErrorKind::ImageTooLarge, TOO_SLOW)
}

/// Whether `error` is the picture's own fault, so that asking again gives the same answer. Being
/// too slow is not: it may have been the load.
pub(super) fn is_final(error: &Error) -> bool {
    use ErrorKind::{CorruptImage, ImageTooLarge, NotAnImage};
    matches!(error.kind(), CorruptImage | ImageTooLarge | NotAnImage) && error.message() != TOO_SLOW
}

/// The error of a picture that ends early or says nonsense.
pub(super) fn corrupt(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::CorruptImage, "the image is corrupt").with_source(why)
}

/// An open blob.
pub(super) struct Source<'a> {
    file: &'a File,
    len: u64,
    deadline: Deadline,
    failure: RefCell<Option<Failure>>,
}

/// What went wrong that is not the picture's fault.
enum Failure {
    Io(io::Error),
    TooSlow,
}

impl<'a> Source<'a> {
    /// Over all of `file`, wherever its cursor stands (it is neither used nor moved).
    pub(super) fn new(file: &'a File, deadline: Deadline) -> Result<Self> {
        let len = file.metadata().map_err(|error| Error::io("reading an image", error))?.len();
        Ok(Self { file, len, deadline, failure: RefCell::new(None) })
    }

    /// Bytes of the blob.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// A reader from the start, for a decoder.
    pub(super) fn reader(&self) -> BufReader<SourceReader<'_>> {
        BufReader::with_capacity(DECODE_BUFFER_BYTES, SourceReader { source: self, position: 0 })
    }

    /// A reader from the start, for headers.
    pub(super) fn header_reader(&self) -> BufReader<SourceReader<'_>> {
        BufReader::with_capacity(HEADER_BUFFER_BYTES, SourceReader { source: self, position: 0 })
    }

    /// Everything. The caller has made sure that it may be that large.
    pub(super) fn read_all(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.len).unwrap_or(0));
        let mut reader = SourceReader { source: self, position: 0 };
        reader
            .by_ref()
            .take(self.len)
            .read_to_end(&mut bytes)
            .map_err(|error| self.explain(error))?;
        Ok(bytes)
    }

    /// Fails if the deadline has passed. For between the stages, and for decoders that do not read
    /// while they work.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_late() { Err(too_slow()) } else { Ok(()) }
    }

    /// Whether the deadline has passed; remembered as the reason of whatever fails next.
    pub(super) fn is_late(&self) -> bool {
        let late = self.deadline.has_passed();
        if late {
            self.failure.replace(Some(Failure::TooSlow));
        }
        late
    }

    /// The error to report when a decoder failed with `error`: the disk's or the deadline's if
    /// those were the reason, else that the image is corrupt.
    pub(super) fn explain(
        &self,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        self.outside_failure().unwrap_or_else(|| corrupt(error))
    }

    /// The failure that was not the picture's fault, if there was one.
    pub(super) fn outside_failure(&self) -> Option<Error> {
        match self.failure.take()? {
            Failure::Io(error) => Some(Error::io("reading an image", error)),
            Failure::TooSlow => Some(too_slow()),
        }
    }
}

/// A reader with a position of its own over a [`Source`].
pub(super) struct SourceReader<'a> {
    source: &'a Source<'a>,
    position: u64,
}

impl Read for SourceReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.source.is_late() {
            return Err(io::Error::other("deadline"));
        }
        // No file reaches there, and the system refuses the offset itself: a picture's fault, not
        // the disk's.
        let end = self.position.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| i64::try_from(end).is_err()) {
            return Ok(0);
        }
        loop {
            match self.source.file.read_at(buffer, self.position) {
                Ok(count) => {
                    self.position += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    self.source.failure.replace(Some(Failure::Io(error)));
                    return Err(kind.into());
                }
            }
        }
    }
}

impl Seek for SourceReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
            SeekFrom::End(offset) => self.source.len.checked_add_signed(offset),
        };
        self.position = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_disk_is_not_a_corrupt_image() {
        // A directory opens and has a length, but its bytes cannot be read.
        let directory = tempfile::tempdir().unwrap();
        let file = File::open(directory.path()).unwrap();
        let source = Source::new(&file, Deadline::NONE).unwrap();
        let error = source.reader().read_exact(&mut [0; 8]).unwrap_err();
        assert_eq!(source.explain(error).kind(), ErrorKind::Internal);
    }

    #[test]
    fn an_offset_that_no_file_reaches_is_the_end_and_no_fault_of_the_disk() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &[7; 100]).unwrap();
        let source = Source::new(&file, Deadline::NONE).unwrap();
        for position in [101, i64::MAX as u64, 1 << 63, u64::MAX] {
            let mut reader = source.reader();
            reader.seek(SeekFrom::Start(position)).unwrap();
            let error = reader.read_exact(&mut [0]).unwrap_err();
            assert_eq!(source.explain(error).kind(), ErrorKind::CorruptImage, "{position}");
        }
    }

    #[test]
    fn a_passed_deadline_stops_the_next_read_and_is_the_reason_given() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &[7; 100]).unwrap();
        let source = Source::new(&file, Deadline::after(Duration::ZERO)).unwrap();
        let error = source.reader().read_exact(&mut [0; 8]).unwrap_err();
        let explained = source.explain(error);
        assert_eq!(explained.kind(), ErrorKind::ImageTooLarge);
        assert_eq!(explained.message(), TOO_SLOW);
        assert!(!is_final(&explained) && is_final(&corrupt("nonsense")));
    }

    #[test]
    fn readers_do_not_disturb_each_other_or_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"abcdef").unwrap();
        let source = Source::new(&file, Deadline::NONE).unwrap();
        let (mut one, mut two) = (source.reader(), source.header_reader());
        let mut buffer = [0; 3];
        one.read_exact(&mut buffer).unwrap();
        two.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"abc");
        assert_eq!(source.read_all().unwrap(), b"abcdef");
        assert_eq!(io::Seek::stream_position(&mut &file).unwrap(), 6);
    }
}
