//! TIFF (TIFF 6.0; BigTIFF): the first directory.

use std::io::{self, Read, Seek};

use super::fields::{Fields, broken};
use super::ifd;
use super::{Format, Header};
use crate::domain::record::Dimensions;
use crate::variant::pipeline::orient::Orientation;

/// The facts that decoding a TIFF needs in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TiffHeader {
    /// The meaning of the samples; `None` for a kind of TIFF that is not decoded.
    pub(crate) model: Option<TiffModel>,
    /// The position of the byte that says what the samples mean.
    pub(crate) photometric_at: u64,
    pub(crate) alpha: TiffAlpha,
    /// Samples of a pixel, those included that the colours do not need.
    pub(crate) samples: usize,
    /// Bits of a sample: 1 to 64, or what the file claims.
    pub(crate) bits: u64,
    /// True if what is stored needs a copy before it is pixels of 8 bits.
    pub(crate) is_copied: bool,
    /// True if strips or tiles are JPEGs.
    pub(crate) is_jpeg: bool,
    /// The length to be filled in of a single strip that has none: it ends with the file.
    pub(crate) no_length: Option<NoLength>,
    /// Bytes of the directory's values in the decoder.
    pub(crate) directory_bytes: u64,
}

/// A strip whose length is not filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoLength {
    pub(crate) place: ifd::Blank,
    pub(crate) strip_at: u64,
}

/// The colours of a TIFF (TIFF 6.0, tag PhotometricInterpretation).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TiffModel {
    Grey,
    /// Grey in which 0 is white.
    InvertedGrey,
    Rgb,
    Palette,
    /// Four inks, 255 is full ink.
    Cmyk,
    /// As JPEG has it, at the full size of each component.
    YCbCr,
}

/// The alpha of a TIFF (TIFF 6.0, tag ExtraSamples).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TiffAlpha {
    None,
    /// The colours are multiplied by it.
    Associated,
    Straight,
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

impl TiffHeader {
    /// Returns the bytes of a stored pixel in memory.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.samples as u64 * self.bits.div_ceil(8)
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

/// The most values of a tag. A picture's longest tag has one for each row, its profile one for each
/// byte.
const MAX_VALUES: u64 = 1 << 20;
/// The bytes of a value in the decoder (found by fuzzing): the value itself, and beside it offsets and
/// lengths of strips.
const VALUE_BYTES: u64 = 48;
/// The compression of JPEGs within a TIFF (TIFF Technical Note 2).
const JPEG: u64 = 7;

pub(super) fn parse<R: Read + Seek>(mut fields: Fields<R>) -> io::Result<Header> {
    let mut directory = ifd::Directory::default();
    ifd::read_first(&mut fields, &mut directory)?;
    if directory.most_values > MAX_VALUES {
        return Err(broken("a tag with too many values"));
    }

    let stored = Dimensions { width: side(directory.width)?, height: side(directory.height)? };
    Ok(Header {
        format: Format::Tiff(tiff_header(&directory)),
        stored,
        orientation: Orientation::from_exif(directory.orientation.unwrap_or(1)),
    })
}

fn tiff_header(directory: &ifd::Directory) -> TiffHeader {
    let bits = directory.bits_per_sample.unwrap_or(1).clamp(1, u64::from(u16::MAX));
    let samples = directory.samples_per_pixel.unwrap_or(1).clamp(1, u64::from(u16::MAX));
    let samples = usize::try_from(samples).expect("16 bits");
    let (photometric, place) = directory.photometric.unzip();

    let is_jpeg = directory.compression == Some(JPEG);
    let model = photometric.and_then(|value| model(value, directory, is_jpeg));
    // Samples shorter than a byte begin in its lowest bit then, which the decoder does not know.
    let is_reversed = bits < 8 && directory.fill_order == Some(2);
    let model = model.filter(|model| samples >= model.samples() && !is_reversed);
    let is_planar = samples > 1 && directory.planar_configuration == Some(2);
    TiffHeader {
        model,
        photometric_at: place.map_or(0, |place| place.lowest),
        alpha: model.map_or(TiffAlpha::None, |model| alpha(model, samples, directory)),
        samples,
        bits,
        is_jpeg,
        is_copied: bits != 8 || is_planar || is_jpeg || model == Some(TiffModel::Palette),
        no_length: directory
            .no_length
            .zip(directory.strip_offset)
            .map(|(place, strip_at)| NoLength { place, strip_at }),
        directory_bytes: directory.most_values * VALUE_BYTES,
    }
}

fn model(photometric: u64, directory: &ifd::Directory, is_jpeg: bool) -> Option<TiffModel> {
    match photometric {
        0 => Some(TiffModel::InvertedGrey),
        1 => Some(TiffModel::Grey),
        2 => Some(TiffModel::Rgb),
        3 => Some(TiffModel::Palette),
        // Other ink sets have names for their inks, and no rule for their colours.
        5 if directory.ink_set.is_none_or(|set| set == 1) => Some(TiffModel::Cmyk),
        // Within JPEG it is upsampled by that decoder. Elsewhere nobody writes it.
        6 if is_jpeg => Some(TiffModel::YCbCr),
        _ => None,
    }
}

fn alpha(model: TiffModel, samples: usize, directory: &ifd::Directory) -> TiffAlpha {
    let can_have = matches!(model, TiffModel::Grey | TiffModel::InvertedGrey | TiffModel::Rgb);
    if !can_have || samples <= model.samples() {
        return TiffAlpha::None;
    }

    match directory.extra_samples {
        Some(1) => TiffAlpha::Associated,
        Some(2) => TiffAlpha::Straight,
        // A fourth sample that nothing is said of is alpha for most programs.
        None if model == TiffModel::Rgb && samples == 4 => TiffAlpha::Straight,
        _ => TiffAlpha::None,
    }
}

fn side(value: Option<u64>) -> io::Result<u32> {
    u32::try_from(value.ok_or_else(|| broken("no size"))?).map_err(|_| broken("an absurd size"))
}
