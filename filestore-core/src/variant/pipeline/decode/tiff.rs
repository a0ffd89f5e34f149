//! TIFF with the tiff crate, which hands out samples; their meaning is read here.
//!
//! Called directly, not through `image`: that converts inks without their profile, takes associated
//! alpha for straight, and needs two copies of the picture.
//!
//! The crate leaves samples out that the colours do not need, and then undoes the predictor over the
//! wrong distance. So it is told that all samples are shades of grey, of which it leaves out none.

use std::io::{Read, Seek};

use tiff::decoder::{BufferLayoutPreference, ChunkType, Decoder, DecodingResult, Limits};
use tiff::tags::Tag;
use tiff::{TiffError, TiffResult};

use super::overlay::Overlay;
use super::{Decoded, check_same_size, usual_or};
use crate::domain::error::{Error, Result};
use crate::domain::record::Dimensions;
use crate::variant::geometry::{Geometry, area};
use crate::variant::pipeline::budget::decode_bytes;
use crate::variant::pipeline::cut;
use crate::variant::pipeline::header::{Header, TiffAlpha, TiffHeader, TiffModel, jpeg_size};
use crate::variant::pipeline::image_file::ImageFile;
use crate::variant::pipeline::refusal::{corrupt, over_memory, unsupported};
use crate::variant::pixels::{InkModel, Inks, Layout, Pixels, ycc_to_rgb};

/// "Black is zero" (TIFF 6.0, tag PhotometricInterpretation).
const GREY: u8 = 1;
/// The pixels that a tile may have beyond those of a small picture.
const MOST_PADDING: u64 = 1 << 20;

mod strips;

/// Decodes the picture as [`decode`](super::decode) says.
pub(super) fn decode(
    image: &ImageFile<'_>,
    header: &Header,
    tiff: TiffHeader,
    wanted: &[Geometry],
) -> Result<Decoded> {
    let usual = strips::decode(image, header, tiff, wanted);
    usual_or(image, usual, || decode_whole(image, header, tiff))
}

/// Decodes strips, tiles or planes to the whole picture.
fn decode_whole(image: &ImageFile<'_>, header: &Header, tiff: TiffHeader) -> Result<Decoded> {
    let mut opened = open(image, header, tiff)?;
    let samples =
        samples(&mut opened.decoder, header, tiff).map_err(|error| explain(image, error))?;
    let samples = samples.ok_or_else(|| unsupported("TIFF"))?;

    let pixels = opened.pixels(header, tiff, samples);
    if pixels.data.len() != size_of(&pixels) {
        return Err(corrupt("samples are missing"));
    }
    Ok(Decoded::whole(pixels, opened.profile))
}

/// Decodes the strips that come before the damage in a file, or before its end; `None` if there are none,
/// and for tiles and planes, which are not shown in parts.
pub(super) fn decode_what_came(
    image: &ImageFile<'_>,
    header: &Header,
    tiff: TiffHeader,
) -> Result<Option<Decoded>> {
    let mut opened = open(image, header, tiff)?;
    let rows_of_strip = opened.decoder.chunk_dimensions().1;
    let strips = header.stored.height.div_ceil(rows_of_strip.max(1));
    if opened.decoder.strip_count().ok() != Some(strips) {
        return Ok(None);
    }

    // Not more memory than the whole picture takes.
    let mut came = Vec::with_capacity(samples_of(header, tiff));
    for strip in 0..strips {
        // An error is the end of what came.
        if read_strip(&mut opened.decoder, strip, header, tiff, &mut came).is_err() {
            break;
        }
    }

    let mut pixels = opened.pixels(header, tiff, came);
    let row = pixels.width as usize * pixels.layout.channels();
    let rows = u32::try_from(pixels.data.len() / row).unwrap_or(u32::MAX).min(pixels.height);
    if rows == 0 {
        return Ok(None);
    }
    pixels.data.resize(size_of(&pixels), 0);
    let rows = 0..rows;
    cut::fill(&mut pixels, &rows);
    let came = (rows.end < pixels.height).then_some(rows);
    Ok(Some(Decoded { came, ..Decoded::whole(pixels, opened.profile) }))
}

/// Adds the samples of a strip to those before it.
fn read_strip<R: Read + Seek>(
    decoder: &mut Decoder<R>,
    strip: u32,
    header: &Header,
    tiff: TiffHeader,
    came: &mut Vec<u8>,
) -> TiffResult<()> {
    let formats = decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat)?;
    let is_unsigned = formats.is_none_or(|formats| formats.iter().all(|format| *format == 1));
    if tiff.bits == 8 && is_unsigned {
        let (width, rows) = decoder.chunk_data_dimensions(strip);
        let before = came.len();
        came.resize(before + width as usize * rows as usize * tiff.samples, 0);
        let read = decoder.read_chunk_bytes(strip, &mut came[before..]);
        if read.is_err() {
            came.truncate(before);
        }
        return read;
    }

    let stored = decoder.read_chunk(strip)?;
    came.extend(eight_bits(stored, header, tiff).unwrap_or_default());
    Ok(())
}

fn samples_of(header: &Header, tiff: TiffHeader) -> usize {
    header.stored.width as usize * header.stored.height as usize * tiff.samples
}

fn size_of(pixels: &Pixels) -> usize {
    pixels.width as usize * pixels.height as usize * pixels.layout.channels()
}

/// A decoder with what the directory says of the samples.
struct Opened<R: Read + Seek> {
    decoder: Decoder<R>,
    model: TiffModel,
    profile: Option<Vec<u8>>,
    palette: Option<Vec<[u8; 3]>>,
}

impl<R: Read + Seek> Opened<R> {
    /// Makes pixels of samples of 8 bits: all of the picture's, or those of its first rows.
    fn pixels(&self, header: &Header, tiff: TiffHeader, samples: Vec<u8>) -> Pixels {
        let (layout, data) = pixels(samples, self.model, tiff, self.palette.as_deref());
        let Dimensions { width, height } = header.stored;
        Pixels { layout, width, height, data }
    }
}

fn open<'a>(
    image: &'a ImageFile<'_>,
    header: &Header,
    tiff: TiffHeader,
) -> Result<Opened<impl Read + Seek + use<'a>>> {
    let model = tiff.model.ok_or_else(|| unsupported("TIFF"))?;
    let (length_at, length) = length(image, tiff);
    let reader = Overlay::new(image.reader(), tiff.photometric_at, [GREY]);
    let reader = Overlay::new(reader, length_at, length);

    let mut decoder = Decoder::new(reader).map_err(|error| explain(image, error))?;
    decoder = decoder.with_limits(limits(image, header));
    let (width, height) = decoder.dimensions().map_err(|error| explain(image, error))?;
    check_same_size(header, width as usize, height as usize)?;
    if tiff.is_jpeg {
        check_jpegs(&mut decoder, image, header)?;
    }
    let profile = decoder.get_tag_u8_vec(Tag::IccProfile).ok();
    let palette = (model == TiffModel::Palette)
        .then(|| palette(&mut decoder).map_err(|error| explain(image, error)))
        .transpose()?;
    Ok(Opened { decoder, model, profile, palette })
}

/// Returns the length of a strip that has none, and its place; a place beyond all files if that is not
/// needed.
fn length(image: &ImageFile<'_>, tiff: TiffHeader) -> (u64, [u8; 4]) {
    let Some(missing) = tiff.no_length else { return (u64::MAX - 8, [0; 4]) };
    let rest = image.len().saturating_sub(missing.strip_at);
    missing.place.filled(u32::try_from(rest).unwrap_or(u32::MAX))
}

/// Refuses JPEGs within that are larger than the picture: their decoder takes the memory that they
/// ask for.
fn check_jpegs<R: Read + Seek>(
    decoder: &mut Decoder<R>,
    image: &ImageFile<'_>,
    header: &Header,
) -> Result<()> {
    let tag = match decoder.get_chunk_type() {
        ChunkType::Strip => Tag::StripOffsets,
        ChunkType::Tile => Tag::TileOffsets,
    };
    let offsets = decoder.get_tag_u64_vec(tag).map_err(|error| explain(image, error))?;

    let most = area(header.stored) + MOST_PADDING;
    if offsets.iter().any(|at| jpeg_size(image, *at).is_some_and(|size| area(size) > most)) {
        return Err(corrupt("a strip or tile larger than the picture"));
    }
    Ok(())
}

fn limits(image: &ImageFile<'_>, header: &Header) -> Limits {
    let decoding = usize::try_from(decode_bytes(header, image.len())).unwrap_or(usize::MAX);
    let file = usize::try_from(image.len()).unwrap_or(usize::MAX);

    let mut limits = Limits::default();
    limits.decoding_buffer_size = decoding;
    limits.ifd_value_size = decoding;
    // Lengths that the file claims, not buffers.
    limits.intermediate_buffer_size = decoding.saturating_add(file);
    limits
}

/// Reads the samples of all pixels, 8 bits each, one pixel after another; `None` for a depth that is
/// not decoded.
fn samples<R: Read + Seek>(
    decoder: &mut Decoder<R>,
    header: &Header,
    tiff: TiffHeader,
) -> TiffResult<Option<Vec<u8>>> {
    let mut stored = DecodingResult::U8(Vec::new());
    let layout = decoder.read_image_to_buffer(&mut stored)?;
    if stored.as_buffer(0).as_bytes().len() < layout.complete_len {
        return Err(TiffError::LimitsExceeded);
    }

    Ok(eight_bits(stored, header, tiff).map(|samples| interleaved(samples, &layout)))
}

/// Makes 8 bits of each sample of whole rows; `None` for a depth that is not decoded.
fn eight_bits(stored: DecodingResult, header: &Header, tiff: TiffHeader) -> Option<Vec<u8>> {
    Some(match stored {
        DecodingResult::U8(samples) if tiff.bits == 8 => samples,
        DecodingResult::U8(packed) if tiff.samples == 1 && tiff.bits < 8 => {
            let factor = if tiff.model == Some(TiffModel::Palette) { 1 } else { scale(tiff.bits) };
            unpack(&packed, header.stored.width as usize, tiff.bits, factor)
        }
        DecodingResult::U16(samples) => samples.into_iter().map(from_16_bits).collect(),
        DecodingResult::F32(samples) => samples.into_iter().map(from_float).collect(),
        _ => return None,
    })
}

/// Puts planes side by side.
fn interleaved(samples: Vec<u8>, layout: &BufferLayoutPreference) -> Vec<u8> {
    if layout.planes < 2 {
        return samples;
    }

    let planes = layout.planes;
    let mut data = vec![0; samples.len()];
    for (index, plane) in samples.chunks_exact((samples.len() / planes).max(1)).enumerate() {
        for (pixel, sample) in data.chunks_exact_mut(planes).zip(plane) {
            if let Some(to) = pixel.get_mut(index) {
                *to = *sample;
            }
        }
    }
    data
}

/// Rounds 16 bits to 8.
fn from_16_bits(sample: u16) -> u8 {
    u8::try_from((u32::from(sample) + 128) / 257).expect("65535 becomes 255")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a byte")]
fn from_float(sample: f32) -> u8 {
    (sample.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Returns the factor that makes 255 of the largest value of so many bits.
fn scale(bits: u64) -> u8 {
    match bits {
        1 => 255,
        2 => 85,
        _ => 17,
    }
}

/// Unpacks rows of one sample a pixel, each of 1, 2 or 4 `bits`.
fn unpack(packed: &[u8], width: usize, bits: u64, factor: u8) -> Vec<u8> {
    let bits = usize::try_from(bits).expect("below 8");
    let each = 8 / bits;

    let rows = packed.chunks_exact(width.div_ceil(each));
    let pixels = rows.flat_map(|row| {
        (0..width).map(move |x| row[x / each] >> (8 - bits * (x % each + 1)) & ((1 << bits) - 1))
    });
    pixels.map(|value| value.wrapping_mul(factor)).collect()
}

/// Makes pixels of the samples, with what the colours do not need left out.
fn pixels(
    mut data: Vec<u8>,
    model: TiffModel,
    tiff: TiffHeader,
    palette: Option<&[[u8; 3]]>,
) -> (Layout, Vec<u8>) {
    let has_alpha = tiff.alpha != TiffAlpha::None;
    keep_first(&mut data, tiff.samples, model.samples() + usize::from(has_alpha));

    let layout = match (model, has_alpha) {
        (TiffModel::Grey | TiffModel::InvertedGrey, false) => Layout::Grey,
        (TiffModel::Grey | TiffModel::InvertedGrey, true) => Layout::GreyAlpha,
        (TiffModel::Rgb | TiffModel::YCbCr | TiffModel::Palette, false) => Layout::Rgb,
        (TiffModel::Rgb | TiffModel::YCbCr | TiffModel::Palette, true) => Layout::Rgba,
        (TiffModel::Cmyk, _) => Layout::Inks(Inks { model: InkModel::Cmyk, inverted: false }),
    };
    match model {
        TiffModel::InvertedGrey => {
            for pixel in data.chunks_exact_mut(layout.channels()) {
                pixel[0] = 255 - pixel[0];
            }
        }
        TiffModel::YCbCr => {
            for pixel in data.as_chunks_mut().0 {
                let [y, cb, cr] = *pixel;
                *pixel = ycc_to_rgb(y, cb, cr);
            }
        }
        TiffModel::Palette => {
            let colors = palette.unwrap_or_default();
            let indices = data.iter().map(|index| usize::from(*index));
            data = indices.flat_map(|at| colors.get(at).copied().unwrap_or_default()).collect();
        }
        TiffModel::Grey | TiffModel::Rgb | TiffModel::Cmyk => {}
    }

    if tiff.alpha == TiffAlpha::Associated {
        divide_alpha(&mut data, layout.channels());
    }
    (layout, data)
}

/// Leaves the first `kept` of `samples` of each pixel.
fn keep_first(data: &mut Vec<u8>, samples: usize, kept: usize) {
    if kept >= samples {
        return;
    }

    let pixels = data.len() / samples;
    for pixel in 0..pixels {
        data.copy_within(pixel * samples..pixel * samples + kept, pixel * kept);
    }
    data.truncate(pixels * kept);
}

/// Undoes the multiplication of the colours by the last channel.
fn divide_alpha(data: &mut [u8], channels: usize) {
    for pixel in data.chunks_exact_mut(channels) {
        let Some((alpha, colors)) = pixel.split_last_mut() else { continue };
        let alpha = u32::from(*alpha);
        for color in colors {
            let straight = (u32::from(*color) * 255 + alpha / 2).checked_div(alpha).unwrap_or(0);
            *color = u8::try_from(straight).unwrap_or(255);
        }
    }
}

/// Reads the colours that the samples stand for.
fn palette<R: Read + Seek>(decoder: &mut Decoder<R>) -> TiffResult<Vec<[u8; 3]>> {
    let values = decoder.get_tag_u16_vec(Tag::ColorMap)?;
    let colors = values.len() / 3;

    // All red first, then green and blue. Some programs write 8 bits where 16 belong.
    let is_narrow = values.iter().all(|value| *value < 256);
    let bytes: Vec<_> = values
        .iter()
        .map(|value| match u8::try_from(*value) {
            Ok(narrow) if is_narrow => narrow,
            _ => from_16_bits(*value),
        })
        .collect();
    Ok((0..colors).map(|at| [0, 1, 2].map(|color| bytes[color * colors + at])).collect())
}

fn explain(image: &ImageFile<'_>, error: TiffError) -> Error {
    match error {
        TiffError::LimitsExceeded => image.outside_failure().unwrap_or_else(over_memory),
        TiffError::UnsupportedError(_) => {
            image.outside_failure().unwrap_or_else(|| unsupported("TIFF"))
        }
        other => image.explain(other),
    }
}
