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

/// The maximum memory of the decoder without rows, in bytes: an inflated profile and its chunk.
const CHUNK_BYTES: usize = 2 * MAX_PROFILE_BYTES;

/// The rows that one row of the first pass of an interlaced picture represents.
const FIRST_PASS: u32 = 8;

/// Decodes the picture, see [`decode`](super::decode). Rows are reduced while they arrive. Exception: an
/// interlaced picture, because its rows arrive in seven passes.
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    png: PngHeader,
    wanted: &[Geometry],
    spare: &dyn Spare,
) -> Result<Decoded> {
    if png.hides_default
        && let Some((pixels, profile)) = animation::first_png_frame(image, header, png)?
    {
        return Ok(Decoded::whole(pixels, profile));
    }

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

/// Decodes the rows with the png crate, up to the last visible row.
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
    // Also after an error, because the data of the other thread is then gone.
    let reduced = reduced.finish().map_err(corrupt);
    outcome.and(reduced)
}

/// A picture whose rows our own code decodes.
struct Usual {
    shape: Shape,
    palette: Option<Palette>,
}

impl Usual {
    /// Returns `None` for other kinds of samples, and for rows that are too long.
    fn of(info: &Info<'_>, layout: Layout) -> Option<Self> {
        let transparency = info.trns.as_deref();
        let palette = match (info.color_type, &info.palette) {
            (ColorType::Indexed, Some(colors)) if colors.len().is_multiple_of(3) => {
                Some(Palette::new(colors, transparency))
            }
            (ColorType::Indexed, _) => return None,
            // One colour is transparent. The png crate turns it into alpha.
            _ if transparency.is_some() => return None,
            _ => None,
        };
        let channels = if palette.is_some() { 1 } else { layout.channels() };
        let shape = Shape { width: info.width as usize, height: info.height as usize, channels };
        let is_usual = info.bit_depth == BitDepth::Eight && !info.interlaced && shape.fits();
        is_usual.then_some(Self { shape, palette })
    }

    /// Decodes the required `rows`. `None` if the file is damaged.
    fn decode(self, image: &ImageFile<'_>, rows: Rows, spare: &dyn Spare) -> Option<Rows> {
        let Self { shape, palette } = self;
        let needed = rows.needed();
        // Counts pixels, because they are the work. A palette has fewer samples.
        let bytes = rows.row_bytes() as u64 * u64::from(needed);
        let pixels = if palette.is_some() { vec![0; rows.row_bytes()] } else { Vec::new() };
        let reducing = Reducing { unfilter: Unfilter::new(shape), palette, pixels, rows };

        let mut reduced = Stream::start(reducing, bytes, spare);
        let taken = |stored: &[u8]| reduced.push(stored);
        let outcome = stored_rows(image.reader(), shape, needed as usize, taken);
        // Also after an error, because the data of the other thread is then gone.
        let reduced = reduced.finish();
        outcome.and(reduced).ok().map(|reducing| reducing.rows)
    }
}

/// Turns stored rows into rows of the picture.
struct Reducing {
    unfilter: Unfilter,
    palette: Option<Palette>,
    /// The colours of a row, for a picture with a palette.
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

/// Decodes the rows before the damage or the end of the file. `None` if there are no such rows, and if the
/// picture is hidden.
pub(super) fn decode_what_came(
    image: &ImageFile<'_>,
    header: &Header,
    png: PngHeader,
) -> Result<Option<Decoded>> {
    let (mut reader, mut pixels) = open(image, header, png)?;
    let info = reader.info();
    let fills_canvas =
        info.frame_control.is_none_or(|frame| (frame.width, frame.height) == info.size());
    if !fills_canvas || hides_default(png, info) {
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

/// Returns true if the file is an animation whose default picture is not a frame. Such a picture is never
/// visible, even if no frame can be decoded, as in browsers.
pub(crate) fn hides_default(png: PngHeader, info: &Info<'_>) -> bool {
    // The header did not compare checksums. If the announcement is damaged, the file is a still picture.
    png.hides_default && info.animation_control.is_some()
}

/// Reads rows until the data ends. Returns the number of visible rows. In an interlaced picture, pixels are
/// as large as the pixels of their pass.
pub(crate) fn rows<R: BufRead + Seek>(reader: &mut Reader<R>, pixels: &mut Pixels) -> u32 {
    let channels = pixels.layout.channels();
    let bits = u8::try_from(8 * channels).expect("at most four channels");
    let stride = pixels.width as usize * channels;
    let mut arrived = 0u32;

    // An error ends the part that arrived.
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

/// Opens the file, with memory for the pixels of its canvas.
pub(crate) fn open<'a>(
    image: &'a ImageFile<'_>,
    header: &Header,
    png: PngHeader,
) -> Result<Opened<impl BufRead + Seek + use<'a>>> {
    let (reader, layout) = start(image, header, png)?;
    Ok((reader, blank(header, layout)))
}

/// Reads up to the first row, with 8 bits for each sample.
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

/// Allocates memory for the whole picture.
fn blank(header: &Header, layout: Layout) -> Pixels {
    let Dimensions { width, height } = header.stored;
    let data = vec![0; width as usize * height as usize * layout.channels()];
    Pixels { layout, width, height, data }
}

/// Returns the colour information of a file. The first of these has priority (W3C PNG third edition, section
/// 4.3): supported code points, an ICC profile, sRGB, gamma with chromaticities.
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

/// Interprets a gamma, given in parts of 100,000. Programs write a value close to 1/2.2 for sRGB, and 0 has
/// no meaning.
fn transfer(gamma: u32) -> Transfer {
    // The difference that libpng ignores.
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
