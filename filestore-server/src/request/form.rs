//! Forms: multipart/form-data bodies. If possible, they are refused before any byte is read.

use filestore_core::Error;

use super::call::Call;
use super::incoming::{Body, content_type, refuse_coding, too_large};
use crate::multipart::{self, BoundaryError, Limits, MultipartReader, boundary_of};
use crate::reply::Failure;

/// An arriving form.
pub(crate) type Form = MultipartReader<Body>;

/// A part of a form.
pub(crate) type Part<'a> = multipart::Part<'a, Body>;

/// The maximum bytes of a form without its files: part headers and text fields.
const FORM_ALLOWANCE: u64 = 1 << 20;

/// Begins to read a form of at most `files` files with `max_bytes` in total. A body that is not a form, or
/// announces too many bytes, is refused before any byte is read.
pub(crate) fn open_form(
    call: &Call,
    body: Body,
    files: usize,
    max_bytes: u64,
) -> Result<Form, Failure> {
    let boundary = content_type(&call.headers).map_or(Err(BoundaryError::NotFormData), boundary_of);
    let boundary = boundary.map_err(|refused| match refused {
        BoundaryError::NotFormData => Failure::UnsupportedMediaType("multipart/form-data"),
        BoundaryError::BadBoundary => Error::from(refused).into(),
    })?;

    refuse_coding(&call.headers)?;
    if call.content_length().is_some_and(|length| length > max_bytes.saturating_add(FORM_ALLOWANCE))
    {
        return Err(too_large(max_bytes).into());
    }

    Ok(MultipartReader::new(body, &boundary, Limits::for_items(files), call.app.options.body))
}
