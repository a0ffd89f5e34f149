//! PNG, decoded by the png crate.
//!
//! The crate is called without `image`. Text chunks are then skipped instead of stored, a colour profile
//! inflates only to the maximum size of a profile, and a damaged file still shows the rows before the damage.
//! For usual pictures, the crate reads only the header, and our own code in [`png`](crate::png) decodes the
//! rows.

use std::io::{BufRead, BufReader, Seek};

use png::{
    BitDepth, ColorType, Decoder, DecodingError, Info, InterlaceInfo, Limits, Reader, ScaledFloat,
    Transformations, splat_interlaced_row,
};

use super::rows::Rows;
use super::{Decoded, MAX_PROFILE_BYTES, check_same_size, icc, usual_or};
use crate::Dimensions;
use crate::error::{Error, Result, corrupt, over_memory};
use crate::geometry::Geometry;
use crate::pipeline::animation;
use crate::pipeline::color::{Defined, Primaries, Profile, Transfer};
use crate::pipeline::header::{Header, PngHeader};
use crate::pipeline::image_file::{DECODE_BUFFER_BYTES, ImageFile};
use crate::pipeline::incomplete;
use crate::pipeline::spare::{Spare, Step, Stream};
use crate::pixels::{Layout, Pixels};
use crate::png::{Broken, Palette, Shape, Unfilter, stored_rows};

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
    if png.hides_default
        && let Ok(decoded) = first_frame(image, header, png)
    {
        return Ok(decoded);
    }
    image.check()?;

    let (mut reader, layout) = start(image, header, png)?;
    if reader.info().interlaced {
        let mut pixels = blank(header, layout);
        let frame = reader.next_frame(&mut pixels.data).map_err(|error| explain(image, error))?;
        // The default picture of an animation must fill the canvas.
        check_same_size(header, frame.width as usize, frame.height as usize)?;
        return Ok(Decoded::whole(pixels, profile(reader.info())));
    }

    if let Some(frame) = reader.info().frame_control {
        check_same_size(header, frame.width as usize, frame.height as usize)?;
    }
    if let Some(colors) = deep::colors(reader.info()) {
        return deep::decode(image, header, png, wanted, colors);
    }
    let usual = Usual::of(reader.info(), layout)
        .and_then(|usual| usual.decode(image, Rows::new(header.stored, layout, wanted), spare));
    let profile = profile(reader.info());
    let usual = usual.map(|rows| Decoded::of_rows(rows, profile.clone())).transpose()?;
    usual_or(image, usual, || {
        let rows = Rows::new(header.stored, layout, wanted);
        by_the_crate(image, reader, rows, spare).and_then(|rows| Decoded::of_rows(rows, profile))
    })
}

/// Decodes the first frame of an animation whose default picture is none of its frames, as browsers show
/// it. Of one whose frame did not come, that picture is shown.
fn first_frame(image: &ImageFile<'_>, header: &Header, png: PngHeader) -> Result<Decoded> {
    let (pixels, profile) = animation::first_png_frame(image, header, png)?;
    Ok(Decoded::whole(pixels, profile))
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

    let arrived = rows(&mut reader, &mut pixels);
    if arrived == 0 {
        return Ok(None);
    }
    let arrived = 0..arrived;
    incomplete::fill(&mut pixels, &arrived);
    let arrived = (arrived.end < pixels.height).then_some(arrived);
    Ok(Some(Decoded { arrived, ..Decoded::whole(pixels, profile(reader.info())) }))
}

/// Reads rows until there are no more, and returns the number of those that show something. Pixels
/// of an interlaced picture are as large as those of their pass.
fn rows<R: BufRead + Seek>(reader: &mut Reader<R>, pixels: &mut Pixels) -> u32 {
    let channels = pixels.layout.channels();
    let bits = u8::try_from(8 * channels).expect("at most four channels");
    let stride = pixels.width as usize * channels;
    let mut arrived = 0u32;

    // An error is the end of what arrived.
    while let Ok(Some(row)) = reader.next_interlaced_row() {
        match row.interlace() {
            InterlaceInfo::Null(_) => {
                pixels.data[arrived as usize * stride..][..stride].copy_from_slice(row.data());
                arrived += 1;
            }
            InterlaceInfo::Adam7(info) => {
                splat_interlaced_row(&mut pixels.data, stride, row.data(), info, bits);
                arrived = arrived.saturating_add(FIRST_PASS);
            }
        }
    }
    arrived.min(pixels.height)
}

mod deep;
mod hiding;

use hiding::Hiding;

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

/// Reads up to the first row, of 8 bits each sample.
fn start<'a>(
    image: &'a ImageFile<'_>,
    header: &Header,
    png: PngHeader,
) -> Result<Started<impl BufRead + Seek + use<'a>>> {
    start_with(image, header, png, Transformations::normalize_to_color8())
}

fn start_with<'a>(
    image: &'a ImageFile<'_>,
    header: &Header,
    png: PngHeader,
    transformations: Transformations,
) -> Result<Started<impl BufRead + Seek + use<'a>>> {
    let hiding = Hiding::new(image.unbuffered(), png.hidden);
    let reader = BufReader::with_capacity(DECODE_BUFFER_BYTES, hiding);
    let mut decoder = Decoder::new_with_limits(reader, Limits { bytes: CHUNK_BYTES });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(png.profile_bytes as usize > MAX_PROFILE_BYTES);
    decoder.set_transformations(transformations);
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

/// Returns the words of a file on its colours, in the order in which they count (W3C PNG third edition,
/// section 4.3): code points that can be shown, then an ICC profile, then sRGB, then gamma and
/// chromaticities.
pub(crate) fn profile(info: &Info<'_>) -> Option<Profile> {
    let points = info.coding_independent_code_points.as_ref().and_then(|points| {
        Defined::of_code_points(
            (points.color_primaries, points.transfer_function),
            points.matrix_coefficients,
            points.is_video_full_range_image,
        )
    });
    if let Some(points) = points {
        return Some(Profile::Defined(points));
    }
    if let Some(profile) = icc(info.icc_profile.as_ref().map(|profile| profile.to_vec())) {
        return Some(profile);
    }
    if info.srgb.is_some() || (info.gama_chunk.is_none() && info.chrm_chunk.is_none()) {
        return None;
    }

    let point = |(x, y): (ScaledFloat, ScaledFloat)| [x, y].map(|one| f64::from(one.into_value()));
    let primaries = info.chrm_chunk.map_or(Primaries::SRGB, |chunk| Primaries {
        white: point(chunk.white),
        red: point(chunk.red),
        green: point(chunk.green),
        blue: point(chunk.blue),
    });
    let transfer = info.gama_chunk.map_or(Transfer::Srgb, |gamma| transfer(gamma.into_scaled()));
    Some(Profile::Defined(Defined { transfer, primaries }))
}

/// Returns what a gamma means, given in parts of 100,000. One next to 1/2.2 is what programs write for
/// sRGB, and 0 means nothing.
fn transfer(gamma: u32) -> Transfer {
    // As far off as libpng takes for no difference.
    const LIKE_SRGB: std::ops::RangeInclusive<u32> = 43_182..=47_727;
    if gamma == 0 || LIKE_SRGB.contains(&gamma) {
        return Transfer::Srgb;
    }
    Transfer::Gamma(100_000.0 / f64::from(gamma))
}

fn explain(image: &ImageFile<'_>, error: DecodingError) -> Error {
    match error {
        DecodingError::LimitsExceeded => image.outside_failure().unwrap_or_else(over_memory),
        other => image.explain(other),
    }
}
