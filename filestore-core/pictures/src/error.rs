//! The public error type. The message describes the fault of the picture, and is safe to show to the sender.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::{fmt, io};

/// The result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The failure kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes are not a raster image.
    NotAnImage,
    /// This crate does not decode the format, or this kind of file within the format.
    Unsupported,
    /// The image ends early or contradicts itself, and no part of it can be shown.
    Corrupt,
    /// The image exceeds a limit for size, memory, frames or processor time. [`Error::limit`] returns the
    /// number.
    TooLarge,
    /// The deadline passed. A retry can succeed on a machine with less load.
    TooSlow,
    /// An argument has a value that is not allowed, for example a side of 0 pixels.
    InvalidArgument,
    /// The encoder failed.
    Encoder,
    /// Reading the bytes failed. The source is the [`io::Error`].
    Io,
    /// The caller stopped the work.
    Stopped,
    /// A bug in this crate.
    Internal,
}

/// A failure: a kind, a message that is safe to show, and a cause for logs.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: Cow<'static, str>,
    limit: Option<u64>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Returns an error of the kind [`TooSlow`](ErrorKind::TooSlow), for callers that enforce a deadline
    /// themselves.
    pub fn too_slow() -> Self {
        Self::new(ErrorKind::TooSlow, "the image takes too long to decode")
    }

    /// Returns an error of the kind [`Corrupt`](ErrorKind::Corrupt), for a failure that only the caller saw.
    /// For example, the decoding thread panicked.
    pub fn corrupt(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Corrupt, "the image is corrupt").with_source(why)
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), limit: None, source: None }
    }

    /// Returns the error for a failed read.
    pub(crate) fn io(source: io::Error) -> Self {
        Self::new(ErrorKind::Io, "the image cannot be read").with_source(source)
    }

    pub(crate) fn with_limit(self, limit: u64) -> Self {
        Self { limit: Some(limit), ..self }
    }

    pub(crate) fn with_source(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// Returns the failure kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message. The message is safe to show to the sender of the picture.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the limit that the picture exceeds, if the limit is a number.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns the cause, for logs.
    pub fn into_source(self) -> Option<Box<dyn StdError + Send + Sync>> {
        self.source
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Returns the error for a picture that takes longer than allowed.
pub(crate) fn too_slow() -> Error {
    Error::too_slow()
}

/// Returns the error for a picture that exceeds a limit for size, memory or scans.
pub(crate) fn too_large(message: String) -> Error {
    Error::new(ErrorKind::TooLarge, message)
}

/// Returns the error for a picture that exceeds its memory limit while it is decoded.
pub(crate) fn over_memory() -> Error {
    Error::new(ErrorKind::TooLarge, "the image needs too much memory to decode")
}

/// Returns the error for a picture that ends early or contradicts itself.
pub(crate) fn corrupt(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::corrupt(why)
}

/// Returns the error for bytes that are not a raster image.
pub(crate) fn not_an_image() -> Error {
    Error::new(ErrorKind::NotAnImage, "the file is not a JPEG, PNG, GIF, WebP, BMP or TIFF image")
}

/// Returns the error for a picture in a known format that this crate does not decode.
pub(crate) fn unknown_format(name: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{name} images are not supported"))
}

/// Returns the error for a picture in a decoded `format`, but of a kind that this crate does not decode.
pub(crate) fn unsupported(format: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("this kind of {format} image is not supported"))
}

/// Returns the error for a failed encoding. `doing` names the current work.
pub(crate) fn encoder(doing: &str, why: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Encoder, format!("internal error while {doing}")).with_source(why)
}

/// Returns the error for a bug in this crate. `doing` names the current work.
pub(crate) fn internal(doing: &str, why: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Internal, format!("internal error while {doing}")).with_source(why)
}

/// Returns the error for an argument that is not allowed.
pub(crate) fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_is_wrong_and_keeps_its_cause_for_logs() {
        let error = corrupt("a marker is missing");
        assert_eq!(error.to_string(), "the image is corrupt");
        assert_eq!(error.source().unwrap().to_string(), "a marker is missing");
        assert_eq!(error.into_source().unwrap().to_string(), "a marker is missing");
    }

    #[test]
    fn a_fault_of_the_disk_keeps_the_error_of_the_system() {
        let error = Error::io(io::Error::from_raw_os_error(5));
        assert_eq!(error.kind(), ErrorKind::Io);
        let source = error.into_source().unwrap().downcast::<io::Error>().unwrap();
        assert_eq!(source.raw_os_error(), Some(5));
    }
}
