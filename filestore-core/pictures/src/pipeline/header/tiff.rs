//! Reads TIFF headers (TIFF 6.0, BigTIFF): the first directory.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::ifd::{self, Directory, Order, Values};
use super::{Format, Header};
use crate::Dimensions;
use crate::pipeline::orient::Orientation;

/// The facts that decoding a TIFF needs in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TiffHeader {
    /// Pixels in a row of the picture.
    pub(crate) width: u32,
    /// The meaning of the samples. `None` for unsupported kinds of TIFF.
    pub(crate) model: Option<TiffModel>,
    pub(crate) alpha: TiffAlpha,
    /// Samples in a pixel. Samples that the colours do not need count if they are stored between the others,
    /// and not if they have strips or tiles of their own.
    pub(crate) samples: usize,
    /// Bits in a sample: 1 to 64, or the number that the file claims.
    pub(crate) bits: u64,
    /// True if samples are floating-point numbers.
    pub(crate) is_float: bool,
    pub(crate) order: Order,
    pub(crate) compression: Compression,
    pub(crate) predictor: Predictor,
    /// True if each sample has strips or tiles of its own.
    pub(crate) is_planar: bool,
    /// True if the first pixel is in the lowest bit of a byte.
    pub(crate) is_reversed: bool,
    pub(crate) chunks: TiffChunks,
    /// The tables of all JPEGs in the file, stored as a JPEG.
    pub(crate) jpeg_tables: Option<Values>,
    /// The palette: all red values, then green, then blue.
    pub(crate) palette: Option<Values>,
    pub(crate) profile: Option<Values>,
}

/// The strips or tiles of a TIFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TiffChunks {
    /// Width and height of each, in pixels. The last strip can be shorter.
    pub(crate) size: Dimensions,
    /// The number of columns and rows of tiles.
    pub(crate) number: Dimensions,
    pub(crate) offsets: Option<Values>,
    pub(crate) lengths: Option<Values>,
}

/// The colours of a TIFF (TIFF 6.0, tag PhotometricInterpretation).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TiffModel {
    Grey,
    /// Grey with 0 as white.
    InvertedGrey,
    Rgb,
    Palette,
    /// Four inks. 255 is full ink.
    Cmyk,
    /// As in JPEG, with each component at full size.
    YCbCr,
}

/// The alpha of a TIFF (TIFF 6.0, tag ExtraSamples).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TiffAlpha {
    None,
    /// The colours are multiplied by alpha.
    Associated,
    Straight,
}

/// The compression of strips and tiles (TIFF 6.0, tag Compression).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Lzw,
    Deflate,
    PackBits,
    /// Each is a JPEG (TIFF Technical Note 2).
    Jpeg,
    /// CCITT Group 4 (ITU-T T.6).
    Fax4,
}

/// The form of stored samples (TIFF 6.0, tag Predictor, and TIFF Technical Note 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Predictor {
    None,
    /// As differences from the previous pixel.
    Differences,
    /// As differences of bytes, with the most significant bytes of all samples first.
    FloatDifferences,
}

impl TiffModel {
    /// Returns the samples that the colours need.
    pub(crate) const fn samples(self) -> usize {
        match self {
            Self::Grey | Self::InvertedGrey | Self::Palette => 1,
            Self::Rgb | Self::YCbCr => 3,
            Self::Cmyk => 4,
        }
    }
}

impl TiffChunks {
    /// Counts the strips or tiles of all samples, or of one sample if each has its own.
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.number.width) * u64::from(self.number.height)
    }

    /// Returns false if strips or tiles are far larger than the picture.
    fn suits(&self, stored: Dimensions) -> bool {
        let fits = |side, whole: u32| side <= USUAL_TILE_SIDE.max(whole.saturating_mul(2));
        fits(self.size.width, stored.width) && fits(self.size.height, stored.height)
    }
}

/// The size of one read of rows without compression, in bytes.
const SLICE_BYTES: u64 = 256 << 10;

impl TiffHeader {
    /// Returns the samples of a pixel in one strip or tile.
    pub(crate) fn samples_of_chunk(&self) -> usize {
        if self.is_planar { 1 } else { self.samples }
    }

    /// Returns the size of a stored row of a strip or tile, in bytes.
    pub(crate) fn row_bytes(&self) -> u64 {
        let bits = self.samples_of_chunk() as u64 * self.bits;
        (u64::from(self.chunks.size.width) * bits).div_ceil(8)
    }

    /// Returns the rows in one read: all rows of a strip or tile, or fewer without compression.
    pub(crate) fn rows_at_once(&self) -> u32 {
        let rows = self.chunks.size.height;
        if self.compression != Compression::None {
            return rows;
        }
        let most = (SLICE_BYTES / self.row_bytes().max(1)).max(1);
        u32::try_from(most).unwrap_or(rows).min(rows)
    }

    /// Counts the samples in a row of the picture, with the samples that the colours do not need.
    pub(crate) fn samples_of_row(&self) -> u64 {
        u64::from(self.width).saturating_mul(self.samples as u64)
    }

    /// Returns the size of the rows in one read, in bytes, for all strips or tiles side by side.
    pub(crate) fn band_bytes(&self) -> u64 {
        let planes = if self.is_planar { self.samples as u64 } else { 1 };
        let row = self.row_bytes().saturating_mul(self.chunks.number.width.into());
        row.saturating_mul(planes).saturating_mul(self.rows_at_once().into())
    }

    /// Counts the strips or tiles of all planes.
    pub(crate) fn chunk_count(&self) -> u64 {
        let planes = if self.is_planar { self.samples as u64 } else { 1 };
        self.chunks.count().saturating_mul(planes)
    }

    /// Returns the channels of a decoded pixel.
    pub(crate) fn channels(&self) -> u64 {
        let colors = match self.model {
            Some(TiffModel::Grey | TiffModel::InvertedGrey) => 1,
            Some(TiffModel::Cmyk) => 4,
            _ => 3,
        };
        colors + u64::from(self.alpha != TiffAlpha::None)
    }
}

/// The tags of TIFF 6.0 that decoding needs, and the tag of the colour profile.
mod tag {
    pub(super) const WIDTH: u16 = 256;
    pub(super) const HEIGHT: u16 = 257;
    pub(super) const BITS: u16 = 258;
    pub(super) const COMPRESSION: u16 = 259;
    pub(super) const PHOTOMETRIC: u16 = 262;
    pub(super) const FILL_ORDER: u16 = 266;
    pub(super) const STRIP_OFFSETS: u16 = 273;
    pub(super) const ORIENTATION: u16 = 274;
    pub(super) const SAMPLES: u16 = 277;
    pub(super) const ROWS_PER_STRIP: u16 = 278;
    pub(super) const STRIP_LENGTHS: u16 = 279;
    pub(super) const PLANAR: u16 = 284;
    pub(super) const PREDICTOR: u16 = 317;
    pub(super) const COLOR_MAP: u16 = 320;
    pub(super) const TILE_WIDTH: u16 = 322;
    pub(super) const TILE_HEIGHT: u16 = 323;
    pub(super) const TILE_OFFSETS: u16 = 324;
    pub(super) const TILE_LENGTHS: u16 = 325;
    pub(super) const INK_SET: u16 = 332;
    pub(super) const EXTRA_SAMPLES: u16 = 338;
    pub(super) const SAMPLE_FORMAT: u16 = 339;
    pub(super) const JPEG_TABLES: u16 = 347;
    pub(super) const PROFILE: u16 = 34_675;

    pub(super) const ALL: [u16; 23] = [
        WIDTH,
        HEIGHT,
        BITS,
        COMPRESSION,
        PHOTOMETRIC,
        FILL_ORDER,
        STRIP_OFFSETS,
        ORIENTATION,
        SAMPLES,
        ROWS_PER_STRIP,
        STRIP_LENGTHS,
        PLANAR,
        PREDICTOR,
        COLOR_MAP,
        TILE_WIDTH,
        TILE_HEIGHT,
        TILE_OFFSETS,
        TILE_LENGTHS,
        INK_SET,
        EXTRA_SAMPLES,
        SAMPLE_FORMAT,
        JPEG_TABLES,
        PROFILE,
    ];
}

/// The maximum number of samples in a pixel beyond its colours.
const MOST_EXTRA_SAMPLES: usize = 32;

/// The side that a strip or tile can always have. A larger side is at most twice the picture's side.
const USUAL_TILE_SIDE: u32 = 1024;

/// The maximum number of samples in a pixel that a file can describe separately.
const MOST_SAMPLES: u64 = 1 << 16;

pub(super) fn parse<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    let mut directory = Directory::default();
    ifd::read_first(&mut fields, &tag::ALL, &mut directory)?;
    let mut tags = Tags { order: ifd::order(&mut fields)?, fields, directory };

    let stored = Dimensions { width: tags.side(tag::WIDTH)?, height: tags.side(tag::HEIGHT)? };
    let orientation = tags.number(tag::ORIENTATION)?.unwrap_or(1);
    Ok(Header {
        format: Format::Tiff(tags.header(stored)?),
        stored,
        orientation: Orientation::from_exif(orientation),
    })
}

/// The tags of a directory, and the file with their values.
struct Tags<R> {
    fields: Fields<R>,
    directory: Directory,
    order: Order,
}

impl<R: Read + Seek> Tags<R> {
    /// Reads the first value of a tag. `None` without the tag, or if the value is not a whole number.
    fn number(&mut self, tag: u16) -> io::Result<Option<u64>> {
        match self.directory.get(tag) {
            Some(values) => values.first(&mut self.fields),
            None => Ok(None),
        }
    }

    fn numbers(&mut self, tag: u16) -> io::Result<Vec<u64>> {
        match self.directory.get(tag) {
            Some(values) => values.numbers(&mut self.fields, MOST_SAMPLES),
            None => Ok(Vec::new()),
        }
    }

    fn side(&mut self, tag: u16) -> io::Result<u32> {
        let side = self.number(tag)?.ok_or_else(|| broken("no size"))?;
        u32::try_from(side).map_err(|_| broken("an absurd size"))
    }

    fn header(&mut self, stored: Dimensions) -> io::Result<TiffHeader> {
        let samples = u16::try_from(self.number(tag::SAMPLES)?.unwrap_or(1).max(1));
        let samples = usize::from(samples.map_err(|_| broken("an absurd number of samples"))?);
        let coding = self.coding(samples)?;
        let model = self.model(samples, coding.compression == Some(Compression::Jpeg))?;
        let chunks = self.chunks(stored)?;
        let model = model.filter(|model| {
            let most = model.samples() + MOST_EXTRA_SAMPLES;
            (model.samples()..=most).contains(&samples)
                && coding.is_decoded(*model)
                && chunks.suits(stored)
        });
        let alpha = match model {
            Some(model) => alpha(model, samples, self.number(tag::EXTRA_SAMPLES)?),
            None => TiffAlpha::None,
        };

        let is_planar = samples > 1 && coding.of_chunk == 1;
        let samples = match model {
            Some(model) if is_planar => model.samples() + usize::from(alpha != TiffAlpha::None),
            _ => samples,
        };
        Ok(TiffHeader {
            width: stored.width,
            model,
            alpha,
            samples,
            bits: coding.bits,
            is_float: coding.is_float.unwrap_or(false),
            order: self.order,
            compression: coding.compression.unwrap_or(Compression::None),
            predictor: coding.predictor.unwrap_or(Predictor::None),
            is_planar: is_planar && samples > 1,
            is_reversed: self.number(tag::FILL_ORDER)? == Some(2),
            chunks,
            jpeg_tables: self.directory.get(tag::JPEG_TABLES),
            palette: self.directory.get(tag::COLOR_MAP),
            profile: self.directory.get(tag::PROFILE),
        })
    }

    /// Reads the form of the samples, for this number of samples in a pixel.
    fn coding(&mut self, samples: usize) -> io::Result<Coding> {
        let depths = self.numbers(tag::BITS)?;
        let bits = depths.first().copied().unwrap_or(1);
        let compression = compression(self.number(tag::COMPRESSION)?);
        let predictor = match compression {
            Some(Compression::Jpeg | Compression::Fax4) => Some(Predictor::None),
            _ => predictor(self.number(tag::PREDICTOR)?),
        };
        let is_planar = samples > 1 && self.number(tag::PLANAR)? == Some(2);
        Ok(Coding {
            is_even: depths.iter().all(|other| *other == bits),
            bits: bits.clamp(1, u64::from(u16::MAX)),
            is_float: self.is_float()?,
            compression,
            predictor,
            of_chunk: if is_planar { 1 } else { samples },
        })
    }

    /// Returns true for floating-point samples, false for whole numbers. `None` for signed or complex
    /// samples, and for several kinds in one pixel.
    fn is_float(&mut self) -> io::Result<Option<bool>> {
        let formats = self.numbers(tag::SAMPLE_FORMAT)?;
        let first = formats.first().copied().unwrap_or(1);
        Ok(match first {
            _ if formats.iter().any(|format| *format != first) => None,
            // 4 means "undefined". Programs write it for whole numbers.
            1 | 4 => Some(false),
            3 => Some(true),
            _ => None,
        })
    }

    /// Returns the meaning of the samples. Without the tag, a file has as many samples as its colours need,
    /// as in libtiff.
    fn model(&mut self, samples: usize, is_jpeg: bool) -> io::Result<Option<TiffModel>> {
        let guessed = if samples < 3 { 1 } else { 2 };
        Ok(match self.number(tag::PHOTOMETRIC)?.unwrap_or(guessed) {
            0 => Some(TiffModel::InvertedGrey),
            1 => Some(TiffModel::Grey),
            2 => Some(TiffModel::Rgb),
            3 => Some(TiffModel::Palette),
            // Other ink sets name their inks, but have no rule for their colours.
            5 => match self.number(tag::INK_SET)? {
                None | Some(1) => Some(TiffModel::Cmyk),
                Some(_) => None,
            },
            // The JPEG decoder upsamples it. Other compressions do not occur with it.
            6 if is_jpeg => Some(TiffModel::YCbCr),
            _ => None,
        })
    }

    /// Finds the strips or tiles. Some programs write the positions of tiles into the tags of strips, and
    /// libtiff accepts this.
    fn chunks(&mut self, stored: Dimensions) -> io::Result<TiffChunks> {
        let strips = (tag::STRIP_OFFSETS, tag::STRIP_LENGTHS);
        let tiles = (tag::TILE_OFFSETS, tag::TILE_LENGTHS);
        let tile = self.number(tag::TILE_WIDTH)?.zip(self.number(tag::TILE_HEIGHT)?);
        let (own, other) = if tile.is_some() { (tiles, strips) } else { (strips, tiles) };

        let size = if let Some((width, height)) = tile {
            let side = |side| u32::try_from(side).ok().filter(|side| *side > 0);
            let size = side(width).zip(side(height));
            size.ok_or_else(|| broken("an absurd tile"))
                .map(|(width, height)| Dimensions { width, height })?
        } else {
            let rows = self.number(tag::ROWS_PER_STRIP)?.filter(|rows| *rows > 0);
            let rows = u32::try_from(rows.unwrap_or(u64::MAX)).unwrap_or(u32::MAX);
            Dimensions { width: stored.width, height: rows.min(stored.height) }
        };
        let number = Dimensions {
            width: stored.width.div_ceil(size.width.max(1)),
            height: stored.height.div_ceil(size.height.max(1)),
        };
        Ok(TiffChunks {
            size,
            number,
            offsets: self.directory.get(own.0).or(self.directory.get(other.0)),
            lengths: self.directory.get(own.1).or(self.directory.get(other.1)),
        })
    }
}

/// The form of stored samples. `None` for unsupported forms.
struct Coding {
    bits: u64,
    /// True if all samples have the same depth.
    is_even: bool,
    is_float: Option<bool>,
    compression: Option<Compression>,
    predictor: Option<Predictor>,
    /// The samples of a pixel in one strip or tile.
    of_chunk: usize,
}

impl Coding {
    /// Returns true if this crate decodes samples with this meaning.
    fn is_decoded(&self, model: TiffModel) -> bool {
        let Self { bits, of_chunk, .. } = *self;
        self.is_even
            && self.compression.is_some_and(|compression| fits(compression, bits, of_chunk))
            && self.is_float.is_some_and(|is_float| {
                has_depth(bits, is_float, model)
                    && self.predictor.is_some_and(|predictor| predicts(predictor, bits, is_float))
            })
    }
}

fn compression(number: Option<u64>) -> Option<Compression> {
    Some(match number.unwrap_or(1) {
        1 => Compression::None,
        4 => Compression::Fax4,
        5 => Compression::Lzw,
        7 => Compression::Jpeg,
        8 | 32_946 => Compression::Deflate,
        32_773 => Compression::PackBits,
        _ => return None,
    })
}

fn predictor(number: Option<u64>) -> Option<Predictor> {
    Some(match number.unwrap_or(1) {
        1 => Predictor::None,
        2 => Predictor::Differences,
        3 => Predictor::FloatDifferences,
        _ => return None,
    })
}

/// Returns true if strips or tiles with this compression can contain such samples.
fn fits(compression: Compression, bits: u64, samples: usize) -> bool {
    match compression {
        Compression::Jpeg => bits == 8 && matches!(samples, 1 | 3 | 4),
        Compression::Fax4 => bits == 1 && samples == 1,
        _ => true,
    }
}

/// Returns true if samples with this depth can be stored as such differences.
fn predicts(predictor: Predictor, bits: u64, is_float: bool) -> bool {
    match predictor {
        Predictor::None => true,
        Predictor::Differences => bits >= 8,
        Predictor::FloatDifferences => is_float,
    }
}

/// Returns true for supported depths.
fn has_depth(bits: u64, is_float: bool, model: TiffModel) -> bool {
    match bits {
        1 | 2 | 4 | 8 => !is_float,
        // A palette has at most 256 colours.
        16 => !is_float && model != TiffModel::Palette,
        32 => is_float && model != TiffModel::Palette,
        _ => false,
    }
}

fn alpha(model: TiffModel, samples: usize, extra: Option<u64>) -> TiffAlpha {
    let can_have = !matches!(model, TiffModel::Cmyk | TiffModel::YCbCr);
    if !can_have || samples <= model.samples() {
        return TiffAlpha::None;
    }

    match extra {
        // In a picture with a palette, the colours cannot be multiplied by alpha.
        Some(1 | 2) if model == TiffModel::Palette => TiffAlpha::Straight,
        Some(1) => TiffAlpha::Associated,
        Some(2) => TiffAlpha::Straight,
        // For most programs, a fourth sample without a description is alpha.
        None if model == TiffModel::Rgb && samples == 4 => TiffAlpha::Straight,
        _ => TiffAlpha::None,
    }
}
