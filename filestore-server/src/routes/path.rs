//! Path segments that the routes extract.

use std::convert::Infallible;
use std::str::FromStr;

use filestore_core::{FileId, Result};

/// A path segment in the place of a file id. A bad id matches as well, so that it is 400 rather than
/// 404.
#[derive(Debug)]
pub(crate) struct IdSegment(Result<FileId>);

impl IdSegment {
    /// Returns the id; `InvalidField` if the segment is no id.
    pub(crate) fn id(self) -> Result<FileId> {
        self.0
    }
}

/// The error of a segment that is the name of another resource.
#[derive(Debug)]
pub(crate) struct Reserved;

impl FromStr for IdSegment {
    type Err = Reserved;

    fn from_str(text: &str) -> Result<Self, Reserved> {
        if is_reserved(text.as_bytes()) { Err(Reserved) } else { Ok(Self(text.parse())) }
    }
}

/// Tests whether a segment below `/files/` is the name of another resource, and so no file id.
pub(super) fn is_reserved(segment: &[u8]) -> bool {
    matches!(segment, b"upload" | b"batch" | b"delete" | b"sign-upload")
}

/// Any segment, as it was sent.
#[derive(Debug)]
pub(crate) struct Segment(pub(crate) Box<str>);

impl FromStr for Segment {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.into()))
    }
}
