//! The facts in a picture's header, read without decoding.

use super::guard::guarded;
use super::header;
use super::image_file::{Deadline, ImageFile};
use crate::Dimensions;
use crate::error::{Result, corrupt};
use crate::source::Source;

/// Size and media type of a picture, as its header states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Width and height as displayed, with the EXIF orientation applied.
    pub size: Dimensions,
    /// The media type, detected from the bytes. The file name does not matter.
    pub mime: &'static str,
}

/// Reads the header of the image in `source`: JPEG, PNG, GIF, WebP, BMP or TIFF, detected by content.
///
/// Reads a limited number of fields from the start. A valid header does not prove that the picture can be
/// decoded.
///
/// Returns [`Io`](crate::ErrorKind::Io) if a read fails. The other errors are about the bytes, so a retry
/// fails in the same way.
///
/// ```
/// let gif = b"GIF89a\x02\0\x01\0\x80\0\0";
/// let info = filestore_pictures::probe(&gif.as_slice())?;
/// assert_eq!((info.size.width, info.size.height, info.mime), (2, 1, "image/gif"));
/// # Ok::<(), filestore_pictures::Error>(())
/// ```
pub fn probe(source: &dyn Source) -> Result<Info> {
    let image = ImageFile::new(source, Deadline::NONE)?;
    // The result is stored with the file, so a bug in a parser must not reject the file.
    let header = guarded(|| header::read(&image)).unwrap_or_else(|panic| Err(corrupt(panic)))?;
    Ok(Info { size: header.displayed(), mime: header.format.mime() })
}
