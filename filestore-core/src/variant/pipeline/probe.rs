//! The size of a picture, without decoding it.

use std::fs::File;

use super::header;
use super::image_file::{Deadline, ImageFile};
use crate::domain::record::Dimensions;

/// Reads the width and height, as displayed, of the raster image in `file` (JPEG, PNG, GIF, WebP,
/// BMP or TIFF, by content). `None` for everything else and for headers that cannot be read.
///
/// Reads by position from the start, a bounded number of header fields; the cursor of `file` stays
/// where it is. A size says nothing about whether the picture can be decoded.
pub fn probe(file: &File) -> Option<Dimensions> {
    let image = ImageFile::new(file, Deadline::NONE).ok()?;
    header::read(&image).ok().map(|header| header.displayed())
}
