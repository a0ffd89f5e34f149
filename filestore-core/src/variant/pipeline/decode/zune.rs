//! The JPEGs that our own decoder does not take, with zune-jpeg: inks, RGB, and the kinds that
//! zune-jpeg refuses as unsupported.
//!
//! Called directly, not through `image`: four-component pictures are wanted as the inks they are
//! (a profile may belong to them), and the decoder must notice the deadline.

use std::panic::{AssertUnwindSafe, catch_unwind};

use zune_core::bytestream::{ZByteIoError, ZByteReaderTrait, ZCursor, ZSeekFrom};
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

use super::{Decoded, check_same_size};
use crate::domain::error::{Error, Result};
use crate::variant::pipeline::header::{Header, JpegHeader};
use crate::variant::pipeline::image_file::ImageFile;
use crate::variant::pipeline::refusal::{corrupt, unsupported};
use crate::variant::pixels::{InkModel, Inks, Layout, Pixels};

/// Decodes `file`, which ends with the picture, whole.
///
/// zune-jpeg 0.5 indexes out of bounds on some pictures, such as a progressive one with fewer
/// components than its colour space: a panic of the decoder is a corrupt picture.
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    jpeg: JpegHeader,
    file: &[u8],
) -> Result<Decoded> {
    catch_unwind(AssertUnwindSafe(|| decode_whole(image, header, jpeg, file)))
        .unwrap_or_else(|_| Err(corrupt("the decoder panicked")))
}

fn decode_whole(
    image: &ImageFile<'_>,
    header: &Header,
    jpeg: JpegHeader,
    file: &[u8],
) -> Result<Decoded> {
    let options = DecoderOptions::default()
        // Cameras and old programs write much that a strict reading refuses.
        .set_strict_mode(false)
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX);

    let mut decoder = JpegDecoder::new_with_options(Watched::new(file, image), options);
    decoder.decode_headers().map_err(|error| explain(image, &error))?;
    let (width, height) = decoder.dimensions().ok_or_else(|| corrupt("no dimensions"))?;
    check_same_size(header, width, height)?;

    let input = decoder.input_colorspace().ok_or_else(|| corrupt("no colour space"))?;
    let (layout, output) = layout(input, jpeg)?;
    decoder.set_options(options.jpeg_set_out_colorspace(output));
    let mut data = vec![0; width * height * layout.channels()];
    decoder.decode_into(&mut data).map_err(|error| explain(image, &error))?;
    // A lenient decoder may take the end of its input for the end of the picture.
    image.check()?;

    let pixels = Pixels { layout, width: header.stored.width, height: header.stored.height, data };
    Ok(Decoded::whole(pixels, decoder.icc_profile()))
}

/// Chooses the form in which the pixels of a picture stored in `input` are asked for.
fn layout(input: ColorSpace, jpeg: JpegHeader) -> Result<(Layout, ColorSpace)> {
    let inverted = jpeg.adobe;
    match input {
        ColorSpace::Luma => Ok((Layout::Grey, ColorSpace::Luma)),
        ColorSpace::YCbCr | ColorSpace::RGB => Ok((Layout::Rgb, ColorSpace::RGB)),
        ColorSpace::CMYK => Ok((inks(InkModel::Cmyk, inverted), ColorSpace::CMYK)),
        ColorSpace::YCCK => Ok((inks(InkModel::Ycck, inverted), ColorSpace::YCCK)),
        _ => Err(unsupported("JPEG")),
    }
}

fn inks(model: InkModel, inverted: bool) -> Layout {
    Layout::Inks(Inks { model, inverted })
}

fn explain(image: &ImageFile<'_>, error: &DecodeErrors) -> Error {
    match error {
        DecodeErrors::Unsupported(_) => {
            image.outside_failure().unwrap_or_else(|| unsupported("JPEG"))
        }
        other => image.explain(format!("{other:?}")),
    }
}

/// The reads that pass between two looks at the clock.
const READS_PER_CHECK: u32 = 16 * 1024;

/// The file in memory, as the decoder pulls it: fails once the deadline has passed.
struct Watched<'a> {
    inner: ZCursor<&'a [u8]>,
    image: &'a ImageFile<'a>,
    reads_left: u32,
    late: bool,
}

impl<'a> Watched<'a> {
    fn new(bytes: &'a [u8], image: &'a ImageFile<'a>) -> Self {
        Self { inner: ZCursor::new(bytes), image, reads_left: 0, late: false }
    }

    #[inline]
    fn tick(&mut self) -> Result<(), ZByteIoError> {
        if self.reads_left == 0 {
            self.reads_left = READS_PER_CHECK;
            self.late = self.image.is_late();
        }
        self.reads_left -= 1;
        if self.late { Err(ZByteIoError::Generic("deadline")) } else { Ok(()) }
    }
}

impl ZByteReaderTrait for Watched<'_> {
    #[inline]
    fn read_byte_no_error(&mut self) -> u8 {
        // The caller asks `is_eof` next, which does report it.
        if self.tick().is_err() { 0 } else { self.inner.read_byte_no_error() }
    }

    #[inline]
    fn read_exact_bytes(&mut self, buffer: &mut [u8]) -> Result<(), ZByteIoError> {
        self.tick()?;
        self.inner.read_exact_bytes(buffer)
    }

    fn read_bytes(&mut self, buffer: &mut [u8]) -> Result<usize, ZByteIoError> {
        self.tick()?;
        self.inner.read_bytes(buffer)
    }

    fn peek_bytes(&mut self, buffer: &mut [u8]) -> Result<usize, ZByteIoError> {
        self.inner.peek_bytes(buffer)
    }

    fn peek_exact_bytes(&mut self, buffer: &mut [u8]) -> Result<(), ZByteIoError> {
        self.inner.peek_exact_bytes(buffer)
    }

    fn z_seek(&mut self, to: ZSeekFrom) -> Result<u64, ZByteIoError> {
        self.inner.z_seek(to)
    }

    #[inline]
    fn is_eof(&mut self) -> Result<bool, ZByteIoError> {
        if self.late {
            return Err(ZByteIoError::Generic("deadline"));
        }
        self.inner.is_eof()
    }

    fn z_position(&mut self) -> Result<u64, ZByteIoError> {
        self.inner.z_position()
    }

    fn read_remaining(&mut self, sink: &mut Vec<u8>) -> Result<usize, ZByteIoError> {
        self.inner.read_remaining(sink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::error::ErrorKind;
    use crate::variant::fixtures::{file, flat_jpeg};
    use crate::variant::pipeline::header;
    use crate::variant::pipeline::image_file::Deadline;

    #[test]
    fn a_panic_of_zune_jpeg_is_a_corrupt_picture() {
        // Two components where Adobe's marker says four: zune-jpeg looks for the third of a progressive one.
        let mut bytes = flat_jpeg(208, 8, &[9, 99], Some(2));
        let frame = bytes.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
        bytes[frame + 1] = 0xC2;
        let file = file(&bytes);
        let image = ImageFile::new(&file, Deadline::NONE).unwrap();
        let header = header::read(&image).unwrap();
        let error = super::super::decode(&image, &header, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptImage);
        // Else this test tests nothing any more, and another picture must be found for it.
        assert!(error.chain().contains("panicked"), "{}", error.chain());
    }
}
