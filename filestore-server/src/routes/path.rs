//! Segments of paths.

use std::convert::Infallible;
use std::str::FromStr;

use filestore_core::Result;
use filestore_core::domain::id::FileId;

/// A path segment where a file id stands: good or not, the path is this resource's, so that a bad id
/// is 400 rather than 404.
#[derive(Debug)]
pub(crate) struct IdSegment(Result<FileId>);

impl IdSegment {
    /// The id; `InvalidField` if it is none.
    pub(crate) fn id(self) -> Result<FileId> {
        self.0
    }
}

/// Why a segment is not an id's: it is the name of another resource.
#[derive(Debug)]
pub(crate) struct Reserved;

impl FromStr for IdSegment {
    type Err = Reserved;

    fn from_str(text: &str) -> Result<Self, Reserved> {
        match text {
            "upload" | "batch" => Err(Reserved),
            text => Ok(Self(text.parse())),
        }
    }
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
