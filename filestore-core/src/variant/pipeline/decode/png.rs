//! PNG with the png crate.
//!
//! Called directly, not through `image`: text chunks are skipped instead of kept, a colour profile
//! inflates no further than a profile can be, and of a damaged file the rows before the damage are
//! shown. Rows of usual pictures are decoded by ourselves, in [`png`](crate::variant::png), behind the
//! crate's header.

use std::io::{BufRead, Seek};

use png::{
    BitDepth, ColorType, Decoder, DecodingError, Info, InterlaceInfo, Limits, Reader,
    Transformations, splat_interlaced_row,
};

use super::rows::Rows;
use super::{Decoded, MAX_PROFILE_BYTES, check_same_size, usual_or};
use crate::domain::error::{Error, Result};
use crate::domain::record::Dimensions;
use crate::variant::geometry::Geometry;
use crate::variant::pipeline::aside::{Spare, Step, Stream};
use crate::variant::pipeline::cut;
use crate::variant::pipeline::header::{Header, PngHeader};
use crate::variant::pipeline::image_file::ImageFile;
use crate::variant::pipeline::refusal::{corrupt, over_memory};
use crate::variant::pixels::{Layout, Pixels};
use crate::variant::png::{Broken, Palette, Shape, Unfilter, stored_rows};

/// The bytes that the decoder may hold besides rows: an inflated profile and the chunk it came in.
const CHUNK_BYTES: usize = 2 * MAX_PROFILE_BYTES;

/// The rows that one row of the first pass of an interlaced picture stands for.
const FIRST_PASS: u32 = 8;

/// Decodes the picture as [`decode`](super::decode) says. Rows are reduced as they come, but those of
/// an interlaced picture, which come in seven passes.
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    png: PngHeader,
    wanted: &[Geometry],
    spare: &dyn Spare,
) -> Result<Decoded> {
    let (mut reader, layout) = start(image, header, png)?;
    if reader.info().interlaced {
        let mut pixels = blank(header, layout);
        let frame = reader.next_frame(&mut pixels.data).map_err(|error| explain(image, error))?;
        // The default picture of an animation must fill the canvas.
        check_same_size(header, frame.width as usize, frame.height as usize)?;
        return Ok(Decoded::whole(pixels, profile(&reader)));
    }

    if let Some(frame) = reader.info().frame_control {
        check_same_size(header, frame.width as usize, frame.height as usize)?;
    }
    let usual = Usual::of(reader.info(), layout)
        .and_then(|usual| usual.decode(image, Rows::new(header.stored, layout, wanted), spare));
    let profile = profile(&reader);
    let usual = usual.map(|rows| Decoded::of_rows(rows, profile.clone())).transpose()?;
    usual_or(image, usual, || {
        let rows = Rows::new(header.stored, layout, wanted);
        by_the_crate(image, reader, rows, spare).and_then(|rows| Decoded::of_rows(rows, profile))
    })
}

/// Decodes the rows with the png crate, up to the last one that shows.
fn by_the_crate<R: BufRead + Seek>(
    image: &ImageFile<'_>,
    mut reader: Reader<R>,
    rows: Rows,
    spare: &dyn Spare,
) -> Result<Rows> {
    let mut row = vec![0; rows.row_bytes()];
    let needed = rows.needed();
    let bytes = row.len() as u64 * u64::from(needed);
    let mut reduced = Stream::start(rows, bytes, spare);
    let outcome = (0..needed).try_for_each(|_| {
        let read = reader.read_row(&mut row).map_err(|error| explain(image, error))?;
        read.ok_or_else(|| corrupt("a row is missing"))?;
        reduced.push(&row).map_err(corrupt)
    });
    // Also after an error: what the other thread holds is gone then.
    let reduced = reduced.finish().map_err(corrupt);
    outcome.and(reduced)
}

/// A picture whose rows are decoded by ourselves.
struct Usual {
    shape: Shape,
    palette: Option<Palette>,
}

impl Usual {
    /// Returns `None` if the samples are of another kind, or the rows too long.
    fn of(info: &Info<'_>, layout: Layout) -> Option<Self> {
        let transparency = info.trns.as_deref();
        let palette = match (info.color_type, &info.palette) {
            (ColorType::Indexed, Some(colors)) if colors.len().is_multiple_of(3) => {
                Some(Palette::new(colors, transparency))
            }
            (ColorType::Indexed, _) => return None,
            // One colour is transparent: the png crate makes alpha of it.
            _ if transparency.is_some() => return None,
            _ => None,
        };
        let channels = if palette.is_some() { 1 } else { layout.channels() };
        let shape = Shape { width: info.width as usize, height: info.height as usize, channels };
        let is_usual = info.bit_depth == BitDepth::Eight && !info.interlaced && shape.fits();
        is_usual.then_some(Self { shape, palette })
    }

    /// Decodes the `rows` that are needed; `None` if anything is wrong.
    fn decode(self, image: &ImageFile<'_>, rows: Rows, spare: &dyn Spare) -> Option<Rows> {
        let Self { shape, palette } = self;
        let needed = rows.needed();
        // Of the pixels, as they are the work, not of the samples that name their colours.
        let bytes = rows.row_bytes() as u64 * u64::from(needed);
        let pixels = if palette.is_some() { vec![0; rows.row_bytes()] } else { Vec::new() };
        let reducing = Reducing { unfilter: Unfilter::new(shape), palette, pixels, rows };

        let mut reduced = Stream::start(reducing, bytes, spare);
        let taken = |stored: &[u8]| reduced.push(stored);
        let outcome = stored_rows(image.reader(), shape, needed as usize, taken);
        // Also after an error: what the other thread holds is gone then.
        let reduced = reduced.finish();
        outcome.and(reduced).ok().map(|reducing| reducing.rows)
    }
}

/// The way of stored rows into the picture.
struct Reducing {
    unfilter: Unfilter,
    palette: Option<Palette>,
    /// The colours of a row, where a palette has them.
    pixels: Vec<u8>,
    rows: Rows,
}

impl Step for Reducing {
    fn take(&mut self, stored: &[u8]) -> Result<(), Broken> {
        let Self { unfilter, palette, pixels, rows } = self;
        match palette {
            None => unfilter.undo(stored, |row| rows.push(row)),
            Some(palette) => unfilter.undo(stored, |row| {
                palette.expand(row, pixels);
                rows.push(pixels);
            }),
        }
    }
}

/// Decodes the rows that come before the damage in a file, or before its end; `None` if there are
/// none.
pub(super) fn decode_what_came(
    image: &ImageFile<'_>,
    header: &Header,
    png: PngHeader,
) -> Result<Option<Decoded>> {
    let (mut reader, mut pixels) = open(image, header, png)?;
    let info = reader.info();
    if info.frame_control.is_some_and(|frame| (frame.width, frame.height) != info.size()) {
        return Ok(None);
    }

    let came = rows(&mut reader, &mut pixels);
    if came == 0 {
        return Ok(None);
    }
    let came = 0..came;
    cut::fill(&mut pixels, &came);
    let came = (came.end < pixels.height).then_some(came);
    Ok(Some(Decoded { came, ..Decoded::whole(pixels, profile(&reader)) }))
}

/// Reads rows until there are no more, and returns the number of those that show something. Pixels
/// of an interlaced picture are as large as those of their pass.
fn rows<R: BufRead + Seek>(reader: &mut Reader<R>, pixels: &mut Pixels) -> u32 {
    let channels = pixels.layout.channels();
    let bits = u8::try_from(8 * channels).expect("at most four channels");
    let stride = pixels.width as usize * channels;
    let mut came = 0u32;

    // An error is the end of what came.
    while let Ok(Some(row)) = reader.next_interlaced_row() {
        match row.interlace() {
            InterlaceInfo::Null(_) => {
                pixels.data[came as usize * stride..][..stride].copy_from_slice(row.data());
                came += 1;
            }
            InterlaceInfo::Adam7(info) => {
                splat_interlaced_row(&mut pixels.data, stride, row.data(), info, bits);
                came = came.saturating_add(FIRST_PASS);
            }
        }
    }
    came.min(pixels.height)
}

type Opened<R> = (Reader<R>, Pixels);
type Started<R> = (Reader<R>, Layout);

/// Opens the file, with room for the pixels of its canvas.
pub(crate) fn open<'a>(
    image: &'a ImageFile<'_>,
    header: &Header,
    png: PngHeader,
) -> Result<Opened<impl BufRead + Seek + use<'a>>> {
    let (reader, layout) = start(image, header, png)?;
    Ok((reader, blank(header, layout)))
}

/// Reads up to the first row.
fn start<'a>(
    image: &'a ImageFile<'_>,
    header: &Header,
    png: PngHeader,
) -> Result<Started<impl BufRead + Seek + use<'a>>> {
    let mut decoder = Decoder::new_with_limits(image.reader(), Limits { bytes: CHUNK_BYTES });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(png.profile_bytes as usize > MAX_PROFILE_BYTES);
    decoder.set_transformations(Transformations::normalize_to_color8());
    let reader = decoder.read_info().map_err(|error| explain(image, error))?;
    let (width, height) = reader.info().size();
    check_same_size(header, width as usize, height as usize)?;

    let layout = match reader.output_color_type().0 {
        ColorType::Grayscale => Layout::Grey,
        ColorType::GrayscaleAlpha => Layout::GreyAlpha,
        ColorType::Rgb => Layout::Rgb,
        ColorType::Rgba => Layout::Rgba,
        ColorType::Indexed => return Err(corrupt("a palette that cannot be expanded")),
    };
    Ok((reader, layout))
}

/// Makes room for the whole picture.
fn blank(header: &Header, layout: Layout) -> Pixels {
    let Dimensions { width, height } = header.stored;
    let data = vec![0; width as usize * height as usize * layout.channels()];
    Pixels { layout, width, height, data }
}

fn profile<R: BufRead + Seek>(reader: &Reader<R>) -> Option<Vec<u8>> {
    reader.info().icc_profile.as_ref().map(|profile| profile.to_vec())
}

fn explain(image: &ImageFile<'_>, error: DecodingError) -> Error {
    match error {
        DecodingError::LimitsExceeded => image.outside_failure().unwrap_or_else(over_memory),
        other => image.explain(other),
    }
}
