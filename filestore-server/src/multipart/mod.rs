//! A strict, streaming multipart/form-data parser (RFC 7578, RFC 2046 section 5.1).
//!
//! The parser has three layers. [`Boundary`] comes from the Content-Type, [`Parser`] is the format without
//! I/O, and [`MultipartReader`] drives the parser from a body stream.
//!
//! # Limits
//!
//! [`Limits`] applies to everything that a client can make large: the bytes before the first boundary, the
//! header block of a part, its parameters, the number of parts, and the bytes after the last boundary. Bodies
//! of parts are passed on as slices of the received chunks, and never collected. The parser therefore needs
//! memory for only one header block. No byte is searched twice.
//!
//! # Strictness
//!
//! Bytes with two possible readings are refused: repeated parameters or headers, folded lines, bare CR, LF or
//! NUL in a header, a part without exactly one name, a boundary line followed by other text, and a body that
//! ends before its closing boundary.

mod boundary;
mod charset;
mod encoded_word;
mod file_name;
mod header;
mod params;
mod parser;
mod reader;
#[cfg(test)]
mod tests;

pub use boundary::{Boundary, BoundaryError, boundary_of};
pub(crate) use file_name::file_name_of;
pub use header::PartHeader;
pub use parser::{Event, Limits, Parser};
pub use reader::{MultipartReader, Part};

use filestore_core::{Error, ErrorKind};

/// The field that names the encoding of a form's text (RFC 7578 section 4.6). Browsers fill it in (WHATWG HTML,
/// section 4.10.21.5).
pub(crate) const CHARSET_FIELD: &str = "_charset_";

/// Makes the error of a body that is not multipart/form-data as it should be.
fn malformed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::MalformedBody, message)
}
