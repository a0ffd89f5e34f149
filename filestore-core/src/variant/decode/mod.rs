//! From a blob to pixels, one module for each decoder.
//!
//! The seam for faster decoders: [`decode`] is told what is wanted of the picture, and a decoder
//! that can hand out a reduced picture, or a part of it, more cheaply than the whole one returns
//! that with its extent. The resize takes its crop in the true extent of the reduced picture, so a
//! scaled decode whose size was rounded up does not shift the result.

use super::header::{Format, Header, not_an_image};
use super::plan::Geometry;
use super::source::{Source, corrupt};
use crate::domain::error::{Error, ErrorKind, Result};

mod jpeg;
mod png;
mod webp;
mod generic;

pub(super) use jpeg::memory_needed as jpeg_bytes;
use jpeg::{CHROMINANCE_TENTHS, LUMINANCE_TENTHS};

/// The largest colour profile taken into account, in bytes; real ones end at 3 MiB.
const MAX_PROFILE_BYTES: usize = 4 << 20;

/// A decoded picture, not yet turned upright.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) picture: Picture,
    /// The embedded ICC profile, as found.
    pub(super) profile: Option<Vec<u8>>,
}

impl Decoded {
    /// A picture decoded whole.
    fn whole(pixels: Pixels, profile: Option<Vec<u8>>) -> Self {
        let profile = profile.filter(|bytes| !bytes.is_empty() && bytes.len() <= MAX_PROFILE_BYTES);
        Self { picture: Picture::Whole(pixels), profile }
    }

    /// Whether `wanted` is as good from this picture as from one decoded for it alone.
    pub(super) fn is_enough_for(&self, wanted: Geometry) -> bool {
        match &self.picture {
            Picture::Whole(_) => true,
            Picture::Planes(Planes::Grey(plane)) => plane.is_enough_for(wanted, LUMINANCE_TENTHS),
            Picture::Planes(Planes::YCbCr([y, cb, cr])) => {
                y.is_enough_for(wanted, LUMINANCE_TENTHS)
                    && [cb, cr].iter().all(|plane| plane.is_enough_for(wanted, CHROMINANCE_TENTHS))
            }
        }
    }

    /// The longer side, in the pixels that are there.
    pub(super) fn longest_side(&self) -> u32 {
        let (Picture::Whole(pixels)
        | Picture::Planes(
            Planes::Grey(Plane { samples: pixels, .. })
            | Planes::YCbCr([Plane { samples: pixels, .. }, ..]),
        )) = &self.picture;
        pixels.width.max(pixels.height)
    }

    /// How many bytes the pixels take.
    pub(super) fn bytes(&self) -> usize {
        match &self.picture {
            Picture::Whole(pixels) => pixels.data.len(),
            Picture::Planes(Planes::Grey(plane)) => plane.samples.data.len(),
            Picture::Planes(Planes::YCbCr(planes)) => {
                planes.iter().map(|plane| plane.samples.data.len()).sum()
            }
        }
    }
}

/// The picture in the form that its decoder has cheapest.
#[derive(Debug)]
pub(super) enum Picture {
    /// The whole picture in its stored size.
    Whole(Pixels),
    /// Perhaps a part of it, perhaps reduced.
    Planes(Planes),
}

/// A JPEG's components as it stores them: luminance alone, or luminance and the two of chrominance
/// (Y, Cb, Cr of ITU-T T.871: BT.601, each from 0 to 255, chrominance around 128).
#[derive(Debug)]
pub(super) enum Planes {
    Grey(Plane),
    YCbCr([Plane; 3]),
}

/// One component at a scale of its own.
#[derive(Debug)]
pub(super) struct Plane {
    /// [`Layout::Grey`], whatever the component means.
    pub(super) samples: Pixels,
    pub(super) extent: Extent,
}

impl Plane {
    /// Whether the plane shows all of the crop, with `tenths` tenths of the target's size at least or
    /// with all that is stored.
    fn is_enough_for(&self, wanted: Geometry, tenths: u32) -> bool {
        let Self { samples, extent } = self;
        let is_enough = |first: u32, crop: u32, target: u32, shown: u32, from: f64, scale: f64| {
            let (first, crop) = (f64::from(first), f64::from(crop));
            from <= first
                && (first + crop - from) * scale <= f64::from(shown)
                && (scale >= 1.0 || 10.0 * crop * scale >= f64::from(target) * f64::from(tenths))
        };
        let Geometry { crop, target } = wanted;
        is_enough(crop.left, crop.width, target.width, samples.width, extent.left, extent.scale_x)
            && is_enough(
                crop.top,
                crop.height,
                target.height,
                samples.height,
                extent.top,
                extent.scale_y,
            )
    }
}

/// Where a picture's pixels are in the stored one: from which point, in stored pixels, and how many
/// for each stored pixel. The last ones may show only a part of a pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extent {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) scale_x: f64,
    pub(super) scale_y: f64,
}

impl Extent {
    /// Of a picture in its stored size.
    pub(super) const WHOLE: Self = Self { left: 0.0, top: 0.0, scale_x: 1.0, scale_y: 1.0 };
}

/// Rows of pixels, 8 bits a channel, interleaved, without padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pixels {
    pub(super) layout: Layout,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) data: Vec<u8>,
}

/// What the channels of a pixel mean. Alpha is straight, never premultiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Grey,
    GreyAlpha,
    Rgb,
    Rgba,
    /// Four inks, as the file stores them.
    Inks(Inks),
}

/// How a file stores four inks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inks {
    pub(super) model: InkModel,
    /// Whether 255 is no ink (Adobe) rather than full ink.
    pub(super) inverted: bool,
}

/// The axes of a picture with four inks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InkModel {
    Cmyk,
    /// The first three as luminance and chrominance of their complements (Adobe TN 5116).
    Ycck,
}

impl Layout {
    /// Bytes of a pixel.
    pub(super) const fn channels(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::GreyAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Inks(_) => 4,
        }
    }

    /// Whether the last channel is alpha.
    pub(super) const fn has_alpha(self) -> bool {
        matches!(self, Self::GreyAlpha | Self::Rgba)
    }
}

/// Decodes the picture that `header` describes, whose size has passed the limits. `wanted` are the
/// parts and sizes needed of it, in stored axes: one decode serves them all.
pub(super) fn decode(source: &Source<'_>, header: &Header, wanted: &[Geometry]) -> Result<Decoded> {
    match &header.format {
        Format::Jpeg(jpeg) => jpeg::decode(source, header, *jpeg, wanted),
        Format::Png(png) => png::decode(source, header, *png),
        Format::WebP(_) => webp::decode(source, header),
        Format::Gif | Format::Bmp | Format::Tiff(_) => generic::decode(source, header),
    }
}

/// The error of a picture that is what it says but of a kind that is not decoded.
fn unsupported(what: &str) -> Error {
    let error = not_an_image();
    Error::new(error.kind(), format!("this kind of {what} image is not supported"))
}

/// The error of a picture that grows over its limits while it is decoded.
fn over_memory() -> Error {
    Error::new(ErrorKind::ImageTooLarge, "the image needs too much memory to decode")
}

/// Fails unless the decoder sees the size that passed the limits.
fn check_same_size(header: &Header, width: usize, height: usize) -> Result<()> {
    if (width, height) == (header.stored.width as usize, header.stored.height as usize) {
        return Ok(());
    }
    Err(corrupt(format!("header and decoder disagree about the size: {width}×{height}")))
}
