//! How large a picture is, without decoding it.

use std::fs::File;

use super::header;
use super::source::{Deadline, Source};
use crate::domain::record::Dimensions;

/// The width and height, as displayed, of the raster image in `file` (JPEG, PNG, GIF, WebP, BMP or
/// TIFF, by content); `None` for everything else and for headers that cannot be read.
///
/// Reads by position from the start, a bounded number of header fields; the cursor of `file` stays
/// where it is. It says nothing about whether the picture can be decoded.
pub fn probe(file: &File) -> Option<Dimensions> {
    let source = Source::new(file, Deadline::NONE).ok()?;
    header::read(&source).ok().map(|header| header.displayed())
}
