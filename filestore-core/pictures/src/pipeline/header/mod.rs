//! Reads a picture's header: format, size, orientation, and the facts that its decoder needs.
//!
//! The crate has its own header parsers, because some decoders allocate or inflate before a caller can stop
//! them, and their limits have gaps. For example, WebP's decoder ignores its limits, and a deflated iCCP
//! chunk exceeds PNG's. Each parser reads a bounded number of fields, skips the rest, and detects the format
//! from the content alone.

use std::io::{self, Read, Seek, SeekFrom};

use super::image_file::ImageFile;
use super::orient::Orientation;
use crate::Dimensions;
use crate::error::{Error, Result, not_an_image, unknown_format};

mod fields;
mod ifd;
mod jpeg;
mod png;
mod webp;
mod tiff;
mod simple;
mod unsupported;

pub(crate) use fields::Fields;
use fields::broken;
pub(crate) use ifd::{Order, Values};
pub(crate) use jpeg::JpegHeader;
pub(crate) use png::PngHeader;
#[cfg(test)]
pub(crate) use tiff::TiffChunks;
pub(crate) use tiff::{Compression, Predictor, TiffAlpha, TiffHeader, TiffModel};
pub(crate) use webp::WebPHeader;

/// The maximum number of markers, chunks or segments before the picture's data.
const MAX_CHUNKS: usize = 4096;

/// A readable raster picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) format: Format,
    /// Width and height of the stored pixels, both at least 1.
    pub(crate) stored: Dimensions,
    pub(crate) orientation: Orientation,
}

impl Header {
    /// Returns width and height as displayed.
    pub(crate) fn displayed(&self) -> Dimensions {
        self.orientation.displayed(self.stored)
    }
}

/// The format, with the facts that its decoder needs in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Format {
    Jpeg(JpegHeader),
    Png(PngHeader),
    Gif,
    WebP(WebPHeader),
    Bmp,
    Tiff(TiffHeader),
}

impl Format {
    /// Returns the media type.
    pub(crate) fn mime(&self) -> &'static str {
        match self {
            Self::Jpeg(_) => "image/jpeg",
            Self::Png(_) => "image/png",
            Self::Gif => "image/gif",
            Self::WebP(_) => "image/webp",
            Self::Bmp => "image/bmp",
            Self::Tiff(_) => "image/tiff",
        }
    }
}

/// Reads the header of `source`.
///
/// Returns [`NotAnImage`](crate::ErrorKind::NotAnImage) if the bytes are not a raster format that this crate
/// decodes. Returns [`Corrupt`](crate::ErrorKind::Corrupt) if the header is broken or cut short.
///
/// The parsers accept a header that ends early if its size is known. A failed read is not such an end.
pub(crate) fn read(image: &ImageFile<'_>) -> Result<Header> {
    let header = parse(image.header_reader()).map_err(|error| image.explain(error));
    image.settle(header)?.map_or_else(|| Err(refusal(image)?), Ok)
}

/// Returns the reason why a file is not shown: it is no image, or this crate does not decode the image.
fn refusal(image: &ImageFile<'_>) -> Result<Error> {
    let mut magic = [0; unsupported::MAGIC_BYTES];
    let known =
        fill(&mut image.header_reader(), &mut magic).map_err(|error| image.explain(error))?;
    Ok(unsupported::name(&magic[..known]).map_or_else(not_an_image, unknown_format))
}

fn parse<R: Read + Seek>(mut reader: R) -> io::Result<Option<Header>> {
    let mut magic = [0; 18];
    let known = fill(&mut reader, &mut magic)?;
    reader.seek(SeekFrom::Start(0))?;

    let fields = Fields::new(reader);
    let header = match &magic[..known] {
        [0xFF, 0xD8, 0xFF, ..] => jpeg::parse(fields),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => png::parse(fields),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => simple::parse_gif(fields),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp::parse(fields),
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => tiff::parse(fields),
        // Many texts begin with "BM". So the size of the next header decides.
        [b'B', b'M', _, _, _, _, _, _, _, _, _, _, _, _, size, 0, 0, 0, ..]
            if simple::is_bmp_header_size(*size) =>
        {
            simple::parse_bmp(fields)
        }
        _ => return Ok(None),
    }?;

    if header.stored.width == 0 || header.stored.height == 0 {
        return Err(broken("a side of 0 pixels"));
    }
    Ok(Some(header))
}

/// Reads until `buffer` is full or the input ends. Returns the number of bytes.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn what_is_no_raster_image_is_not_taken_for_one() {
        for bytes in [
            &b""[..],
            b"G",
            b"plain text",
            b"BMW is a car maker, and this is a text about it",
            b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
            b"<!DOCTYPE html><p>",
            b"%PDF-1.7\n",
            b"RIFF\0\0\0\0WAVEfmt ",
            b"MM\0*"[..3].as_ref(),
        ] {
            assert_eq!(parse(Cursor::new(bytes)).unwrap(), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_side_of_zero_is_broken() {
        assert!(parse(Cursor::new(b"GIF89a\0\0\x05\0\0\0\0\0\0\0\0\0\0\0")).is_err());
    }
}
