//! A strict, streaming multipart/form-data parser (RFC 7578, RFC 2046 section 5.1).
//!
//! Three layers: [`Boundary`] comes from the Content-Type, [`Parser`] is the format without any
//! I/O, [`MultipartReader`] drives the parser from a body stream.
//!
//! # Limits
//!
//! [`Limits`] bounds everything that a client can make grow: the bytes before the first boundary, the
//! header block of a part, its parameters, the number of parts, the bytes after the last boundary. Part bodies are
//! handed on as slices of the chunks they came in and never collected, so the memory of a parser is
//! one header block, whatever the client sends. No byte is searched twice.
//!
//! # Strictness
//!
//! Strict means: two readings of the same bytes are never possible. Repeated parameters or headers,
//! folded lines, bare CR, LF or NUL in a header, a part without exactly one name, a boundary line
//! followed by other text, and a body that ends before its closing boundary are refused.

mod boundary;
mod header;
mod params;
mod parser;
mod reader;
#[cfg(test)]
mod tests;

pub use boundary::{Boundary, BoundaryError, boundary_of};
pub use header::PartHeader;
pub use parser::{Event, Limits, Parser};
pub use reader::{MultipartReader, Part};

use filestore_core::{Error, ErrorKind};

/// Makes the error of a body that is not multipart/form-data as it should be.
fn malformed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::MalformedBody, message)
}
