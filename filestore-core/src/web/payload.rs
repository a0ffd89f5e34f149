//! The bytes of a reply, before a server makes a body of them.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use super::range::ByteRange;
use super::read_request::Sends;
use crate::domain::error::Result;
use crate::domain::file::record::FileRecord;
use crate::service::{Opened, ServedFiles};
use crate::storage::{ByteStream, LocalBlob, SendFile};

/// The size from which the kernel sends a file faster than this process copies it: by 2 % at 20 KB, and by a
/// fifth at 40 KB.
const SENT_FROM: u64 = 16 << 10;

/// The bytes of a reply. [`Body`](super::Body) can send each of them.
pub enum Payload {
    /// No bytes: the reply to a HEAD, or a 304.
    Empty,
    /// Bytes in memory.
    Bytes(Bytes),
    /// A range of an open file on the local disk.
    Blob(LocalBlob, Range<u64>),
    /// A file that the kernel sends. Only for requests with [`Sends::Files`].
    Sent(SendFile),
    /// The bytes from a provider.
    Stream(ByteStream),
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "Empty",
            Self::Bytes(_) => "Bytes",
            Self::Blob(..) => "Blob",
            Self::Sent(_) => "Sent",
            Self::Stream(_) => "Stream",
        })
    }
}

/// A range of bytes. The end is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: u64,
    end: u64,
}

impl Span {
    /// Returns all `size` bytes.
    pub(super) fn whole(size: u64) -> Self {
        Self { start: 0, end: size }
    }

    /// Returns the bytes of a range. `None` if the range has no existing bytes.
    pub(super) fn of(range: ByteRange, size: u64) -> Option<Self> {
        match range {
            ByteRange::Whole => Some(Self::whole(size)),
            ByteRange::Part { first, last } => Some(Self { start: first, end: last + 1 }),
            ByteRange::Unsatisfiable => None,
        }
    }

    pub(super) fn len(self) -> u64 {
        self.end - self.start
    }
}

impl Payload {
    /// Opens bytes of a record. `None` if the record changed.
    pub(super) async fn open(
        files: ServedFiles<'_>,
        record: &FileRecord,
        span: Span,
        sends: Sends,
    ) -> Result<Option<Self>> {
        let range = span.start..span.end;
        if sends == Sends::Files
            && span.len() >= SENT_FROM
            && let Some(file) = files.send_file(record, range.clone())
        {
            return Ok(Some(Self::Sent(file)));
        }

        Ok(match files.open(record, range.clone()).await? {
            Opened::Small(bytes) => Some(Self::Bytes(bytes)),
            Opened::Local(blob) => Some(Self::of_blob(blob, range, sends)),
            Opened::Remote(bytes) => Some(Self::Stream(bytes)),
            Opened::Changed => None,
        })
    }

    fn of_blob(blob: LocalBlob, range: Range<u64>, sends: Sends) -> Self {
        if sends == Sends::Bytes {
            return Self::Blob(blob, range);
        }
        match blob.into_send_file(range.clone()) {
            Ok(file) => Self::Sent(file),
            Err(blob) => Self::Blob(blob, range),
        }
    }
}
