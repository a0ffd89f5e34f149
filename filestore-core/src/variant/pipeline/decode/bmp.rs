//! BMP with `image`, whose decoder keeps limits for it.

use std::io::{BufReader, Read};
use std::ops::Range;

use image::codecs::bmp::BmpDecoder;
use image::error::ImageError;
use image::{ColorType, ImageDecoder, Limits};

use super::overlay::Overlay;
use super::{Decoded, check_same_size};
use crate::domain::error::{Error, Result};
use crate::variant::pipeline::budget::decode_bytes;
use crate::variant::pipeline::cut;
use crate::variant::pipeline::header::Header;
use crate::variant::pipeline::image_file::{ImageFile, ImageFileReader};
use crate::variant::pipeline::refusal::{over_memory, unsupported};
use crate::variant::pixels::{Layout, Pixels};

pub(super) fn decode(image: &ImageFile<'_>, header: &Header) -> Result<Decoded> {
    let mut pixels = blank(image, header, 0)?;
    read(image, header, &mut pixels.data)?;
    Ok(Decoded::whole(pixels, None))
}

/// Decodes the rows that came of a file that ends early; `None` if there are none.
///
/// The decoder does not say which rows it has written. So two pictures are decoded over different
/// grounds: a row is written where they are the same.
pub(super) fn decode_what_came(image: &ImageFile<'_>, header: &Header) -> Result<Option<Decoded>> {
    let mut pixels = blank(image, header, 0)?;
    let mut other = blank(image, header, 0xFF)?;
    // Both end as the first attempt did.
    let _ = read(image, header, &mut pixels.data);
    let _ = read(image, header, &mut other.data);

    let row = pixels.width as usize * pixels.layout.channels();
    let mut rows = pixels.data.chunks_exact(row).zip(other.data.chunks_exact(row));
    let Some(first) = rows.position(|(row, other)| row == other) else { return Ok(None) };
    let more = rows.take_while(|(row, other)| row == other).count();

    let first = u32::try_from(first).expect("within the height");
    let came: Range<u32> = first..first + 1 + u32::try_from(more).expect("within the height");
    cut::fill(&mut pixels, &came);
    Ok(Some(Decoded { came: Some(came), ..Decoded::whole(pixels, None) }))
}

/// The places of a BMP's fields (`BITMAPINFOHEADER`): the header's length, the bits of a pixel, the
/// colours of the palette.
const LENGTH_AT: usize = 14;
const BITS_AT: usize = 28;
const COLORS_AT: usize = 46;

type Reader<'a> = BufReader<Overlay<BufReader<ImageFileReader<'a>>, 4>>;

/// Opens the file. A palette that is said to have more colours than a pixel can name has as many as
/// it can (0), as browsers take it.
fn open<'a>(image: &'a ImageFile<'_>) -> Result<Reader<'a>> {
    let mut start = [0; COLORS_AT + 4];
    let read = image.header_reader().read_exact(&mut start);
    read.map_err(|error| image.explain(error))?;
    let [length, colors] = [LENGTH_AT, COLORS_AT]
        .map(|at| u32::from_le_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]));
    let bits = u32::from(start[BITS_AT]);

    let is_absurd = length >= 40 && bits <= 8 && colors > 1 << bits;
    let colors = if is_absurd { 0 } else { colors };
    let at = COLORS_AT as u64;
    Ok(BufReader::new(Overlay::new(image.reader(), at, colors.to_le_bytes())))
}

/// Makes room for the picture, all of `ground`.
fn blank(image: &ImageFile<'_>, header: &Header, ground: u8) -> Result<Pixels> {
    let decoder = BmpDecoder::new(open(image)?).map_err(|error| explain(image, error))?;
    let (width, height) = decoder.dimensions();
    check_same_size(header, width as usize, height as usize)?;

    let layout = match decoder.color_type() {
        ColorType::Rgb8 => Layout::Rgb,
        ColorType::Rgba8 => Layout::Rgba,
        _ => return Err(unsupported("BMP")),
    };
    let data = vec![ground; width as usize * height as usize * layout.channels()];
    Ok(Pixels { layout, width, height, data })
}

fn read(image: &ImageFile<'_>, header: &Header, data: &mut [u8]) -> Result<()> {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(decode_bytes(header, image.len()));

    let decoded = BmpDecoder::new(open(image)?).and_then(|mut decoder| {
        decoder.set_limits(limits)?;
        decoder.read_image(data)
    });
    decoded.map_err(|error| explain(image, error))
}

fn explain(image: &ImageFile<'_>, error: ImageError) -> Error {
    match error {
        ImageError::Limits(_) => image.outside_failure().unwrap_or_else(over_memory),
        ImageError::Unsupported(_) => image.outside_failure().unwrap_or_else(|| unsupported("BMP")),
        other => image.explain(other),
    }
}
