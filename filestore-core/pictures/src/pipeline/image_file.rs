//! An open blob for the decoders. The file reads by position, checks a deadline, and keeps the real reason of
//! a failed read.
//!
//! Decoders wrap or drop the errors of their reader. This module keeps the original error, so that a disk
//! fault is never reported as a corrupt image. Clients would treat a corrupt image as permanent.

use std::cell::RefCell;
use std::error::Error as StdError;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result, corrupt, too_slow};
use crate::source::Source;

/// The bytes that a decoder's reader fetches in one read.
pub(crate) const DECODE_BUFFER_BYTES: usize = 64 * 1024;
/// The bytes that a header's reader fetches in one read. The value is small because most of the file is
/// skipped.
const HEADER_BUFFER_BYTES: usize = 4 * 1024;

/// The time at which the work on a picture must end.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Never passes. Use this value if you stop the work yourself.
    pub const NONE: Self = Self(None);

    /// Returns a deadline that passes after `time`, counted from now.
    pub fn after(time: Duration) -> Self {
        Self(Instant::now().checked_add(time))
    }

    /// Returns true if the deadline has passed.
    pub fn has_passed(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}

/// An open blob that holds a picture.
pub(crate) struct ImageFile<'a> {
    source: &'a dyn Source,
    len: u64,
    deadline: Deadline,
    failure: RefCell<Option<Failure>>,
}

/// A reason for a failure that is not the picture's fault.
enum Failure {
    Io(Arc<io::Error>),
    TooSlow,
}

impl<'a> ImageFile<'a> {
    /// Opens the whole of `source`.
    pub(crate) fn new(source: &'a dyn Source, deadline: Deadline) -> Result<Self> {
        let len = source.size().map_err(Error::io)?;
        Ok(Self { source, len, deadline, failure: RefCell::new(None) })
    }

    /// Returns the blob's size, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Opens a reader at the start, for a decoder.
    pub(crate) fn reader(&self) -> BufReader<ImageFileReader<'_>> {
        BufReader::with_capacity(DECODE_BUFFER_BYTES, ImageFileReader { image: self, position: 0 })
    }

    /// Opens a reader at the start, for headers.
    pub(crate) fn header_reader(&self) -> BufReader<ImageFileReader<'_>> {
        BufReader::with_capacity(HEADER_BUFFER_BYTES, ImageFileReader { image: self, position: 0 })
    }

    /// Opens a reader at the start that fetches no more than is asked for.
    pub(crate) fn unbuffered(&self) -> ImageFileReader<'_> {
        ImageFileReader { image: self, position: 0 }
    }

    /// Reads the whole blob. The caller has made sure that it may be that large.
    pub(crate) fn read_all(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.len).unwrap_or(0));
        let mut reader = ImageFileReader { image: self, position: 0 };

        reader
            .by_ref()
            .take(self.len)
            .read_to_end(&mut bytes)
            .map_err(|error| self.explain(error))?;
        Ok(bytes)
    }

    /// Returns an error if the deadline has passed. Call it between the stages, and for decoders that do not
    /// read while they work.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_late() { Err(too_slow()) } else { Ok(()) }
    }

    /// Returns true if the deadline has passed, and records the deadline as the reason of the next failure.
    /// An earlier disk fault remains the reason.
    pub(crate) fn is_late(&self) -> bool {
        let late = self.deadline.has_passed();
        if late {
            self.failure.borrow_mut().get_or_insert(Failure::TooSlow);
        }
        late
    }

    /// Records a failed read. Returns an error of the same kind, for the decoder.
    fn failed(&self, error: io::Error) -> io::Error {
        let kind = error.kind();
        self.failure.replace(Some(Failure::Io(Arc::new(error))));
        kind.into()
    }

    /// Returns the error to report after a decoder failed with `error`. This is the recorded disk fault or
    /// deadline. Without such a reason, the image is corrupt.
    pub(crate) fn explain(&self, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        self.outside_failure().unwrap_or_else(|| corrupt(error))
    }

    /// Returns the recorded failure that was not the picture's fault. The record stays, so the failure is also
    /// the result of the later stages. A stage that ignores an error therefore loses no disk fault.
    pub(crate) fn outside_failure(&self) -> Option<Error> {
        Some(match self.failure.borrow().as_ref()? {
            Failure::Io(error) => Error::io(same(error)),
            Failure::TooSlow => too_slow(),
        })
    }

    /// Returns the result of a stage that read the file. If a read failed, this is the failure, even if the
    /// stage did not notice.
    pub(crate) fn settle<T>(&self, outcome: Result<T>) -> Result<T> {
        self.outside_failure().map_or(outcome, Err)
    }
}

/// Returns an error with the code of `error`, or with `error` as its cause, because an [`io::Error`] cannot be
/// cloned.
fn same(error: &Arc<io::Error>) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), Arc::clone(error)),
    }
}

/// A reader with a position of its own over an [`ImageFile`].
pub(crate) struct ImageFileReader<'a> {
    image: &'a ImageFile<'a>,
    position: u64,
}

impl Read for ImageFileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.image.is_late() {
            return Err(io::Error::other("deadline"));
        }
        // No file reaches there, and the system refuses the offset itself: a picture's fault, not
        // the disk's.
        let end = self.position.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| i64::try_from(end).is_err()) {
            return Ok(0);
        }

        loop {
            match self.image.source.read_at(buffer, self.position) {
                // The file had more bytes when it was opened: this is not the end of the picture.
                Ok(0) if !buffer.is_empty() && self.position < self.image.len => {
                    let shorter = "the file became shorter";
                    let error = io::Error::new(io::ErrorKind::UnexpectedEof, shorter);
                    return Err(self.image.failed(error));
                }
                Ok(count) => {
                    self.position += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.image.failed(error)),
            }
        }
    }
}

impl Seek for ImageFileReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
            SeekFrom::End(offset) => self.image.len.checked_add_signed(offset),
        };
        self.position = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    use crate::error::ErrorKind;

    #[test]
    fn a_fault_of_the_disk_is_not_a_corrupt_image() {
        // A directory opens and has a length, but its bytes cannot be read.
        let directory = tempfile::tempdir().unwrap();
        let file = File::open(directory.path()).unwrap();
        let image = ImageFile::new(&file, Deadline::NONE).unwrap();
        let error = image.reader().read_exact(&mut [0; 8]).unwrap_err();
        assert_eq!(image.explain(error).kind(), ErrorKind::Io);
    }

    #[test]
    fn a_file_that_becomes_shorter_is_not_a_cut_image() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &[7; 100]).unwrap();
        let image = ImageFile::new(&file, Deadline::NONE).unwrap();
        file.set_len(60).unwrap();
        assert_eq!(image.read_all().unwrap_err().kind(), ErrorKind::Io);
        let error = image.reader().read_exact(&mut [0; 100]).unwrap_err();
        assert_eq!(image.explain(error).kind(), ErrorKind::Io);
    }

    #[test]
    fn an_offset_that_no_file_reaches_is_the_end_and_no_fault_of_the_disk() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &[7; 100]).unwrap();
        let image = ImageFile::new(&file, Deadline::NONE).unwrap();
        for position in [101, i64::MAX as u64, 1 << 63, u64::MAX] {
            let mut reader = image.reader();
            reader.seek(SeekFrom::Start(position)).unwrap();
            let error = reader.read_exact(&mut [0]).unwrap_err();
            assert_eq!(image.explain(error).kind(), ErrorKind::Corrupt, "{position}");
        }
    }

    #[test]
    fn a_passed_deadline_stops_the_next_read_and_is_the_reason_given() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &[7; 100]).unwrap();
        let image = ImageFile::new(&file, Deadline::after(Duration::ZERO)).unwrap();
        let error = image.reader().read_exact(&mut [0; 8]).unwrap_err();
        let explained = image.explain(error);
        assert_eq!(explained.kind(), ErrorKind::TooSlow);
        assert_eq!(explained.message(), too_slow().message());
    }

    #[test]
    fn a_fault_of_the_disk_stays_the_reason_when_the_deadline_passes_as_well() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::open(directory.path()).unwrap();
        let mut image = ImageFile::new(&file, Deadline::NONE).unwrap();
        image.reader().read_exact(&mut [0; 8]).unwrap_err();

        image.deadline = Deadline::after(Duration::ZERO);
        image.reader().read_exact(&mut [0; 8]).unwrap_err();
        assert_eq!(image.outside_failure().unwrap().kind(), ErrorKind::Io);
    }

    #[test]
    fn a_fault_of_the_disk_stays_after_it_was_told() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::open(directory.path()).unwrap();
        let image = ImageFile::new(&file, Deadline::NONE).unwrap();
        let error = image.reader().read_exact(&mut [0; 8]).unwrap_err();
        assert_eq!(image.explain(error).kind(), ErrorKind::Io);
        let later = image.settle(Ok(())).unwrap_err();
        assert_eq!(later.kind(), ErrorKind::Io);
        let source = later.into_source().unwrap().downcast::<io::Error>().unwrap();
        assert_eq!(source.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn readers_do_not_disturb_each_other_or_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"abcdef").unwrap();
        let image = ImageFile::new(&file, Deadline::NONE).unwrap();
        let (mut one, mut two) = (image.reader(), image.header_reader());
        let mut buffer = [0; 3];
        one.read_exact(&mut buffer).unwrap();
        two.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"abc");
        assert_eq!(image.read_all().unwrap(), b"abcdef");
        assert_eq!(io::Seek::stream_position(&mut &file).unwrap(), 6);
    }
}
