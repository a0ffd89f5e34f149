//! Pictures in memory: interleaved pixels, and the planes of a JPEG or a lossy WebP.

use super::geometry::Extent;

/// A decoded picture, in the form that costs its decoder the least.
#[derive(Debug, Clone)]
pub(crate) enum Picture {
    /// The whole picture in its stored size.
    Whole(Pixels),
    /// A part of the picture, reduced while it was decoded.
    Reduced(Reduced),
    /// The stored components, perhaps only a part of the picture, perhaps reduced.
    Planes(Planes),
}

impl Picture {
    /// Returns the longer side of the decoded pixels.
    pub(crate) fn longest_side(&self) -> u32 {
        match self {
            Self::Whole(pixels) | Self::Reduced(Reduced { pixels, .. }) => {
                pixels.width.max(pixels.height)
            }
            Self::Planes(Planes { planes, .. }) => {
                let sides =
                    planes.iter().map(|plane| plane.samples.width.max(plane.samples.height));
                sides.max().unwrap_or(0)
            }
        }
    }

    /// Counts the bytes that the pixels take.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Whole(pixels) | Self::Reduced(Reduced { pixels, .. }) => pixels.data.len(),
            Self::Planes(Planes { planes, .. }) => {
                planes.iter().map(|plane| plane.samples.data.len()).sum()
            }
        }
    }
}

/// Pixels that show a part of the picture at a reduced scale.
#[derive(Debug, Clone)]
pub(crate) struct Reduced {
    pub(crate) pixels: Pixels,
    pub(crate) extent: Extent,
}

/// Components as the file stores them.
#[derive(Debug, Clone)]
pub(crate) struct Planes {
    pub(crate) model: Model,
    /// The planes. The number of planes equals the number of components in `model`.
    pub(crate) planes: Vec<Plane>,
}

/// The meaning of components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    Grey,
    /// Y, Cb, Cr of ITU-T T.871: BT.601, each from 0 to 255, chrominance around 128.
    YCbCr,
    /// As [`YCbCr`](Self::YCbCr), but with luminance from 16 to 235 (BT.601): WebP.
    VideoYCbCr,
    Rgb,
    /// Four inks, stored inverted (255 is no ink). Adobe writes them this way, and browsers expect it from
    /// every file.
    Inks(InkModel),
}

impl Model {
    /// Returns the number of components.
    pub(crate) const fn components(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::YCbCr | Self::VideoYCbCr | Self::Rgb => 3,
            Self::Inks(_) => 4,
        }
    }

    /// Returns true for a component that carries colour only, which needs less detail.
    pub(crate) const fn is_chrominance(self, component: usize) -> bool {
        let has_chrominance =
            matches!(self, Self::YCbCr | Self::VideoYCbCr | Self::Inks(InkModel::Ycck));
        has_chrominance && matches!(component, 1 | 2)
    }
}

/// One component at a scale of its own.
#[derive(Debug, Clone)]
pub(crate) struct Plane {
    /// The samples, as [`Layout::Grey`] for every component.
    pub(crate) samples: Pixels,
    pub(crate) extent: Extent,
}

/// Rows of pixels, 8 bits a channel, interleaved, without padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) layout: Layout,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) data: Vec<u8>,
}

/// The meaning of a pixel's channels. Alpha is straight, never premultiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Grey,
    GreyAlpha,
    Rgb,
    Rgba,
    /// Four inks, as the file stores them.
    Inks(Inks),
}

impl Layout {
    /// Returns the bytes of one pixel.
    pub(crate) const fn channels(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::GreyAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Inks(_) => 4,
        }
    }

    /// Returns true if the last channel is alpha.
    pub(crate) const fn has_alpha(self) -> bool {
        matches!(self, Self::GreyAlpha | Self::Rgba)
    }
}

/// The form in which a file stores four inks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inks {
    pub(crate) model: InkModel,
    /// True if 255 is no ink (JPEG), false if 255 is full ink (TIFF).
    pub(crate) inverted: bool,
}

/// The axes of a picture with four inks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InkModel {
    Cmyk,
    /// Luminance and chrominance from the complements of the first three inks (Adobe TN 5116), then black.
    Ycck,
}

/// Converts one pixel by ITU-T T.871 (JFIF), section 7, in fixed point with 16 fractional bits.
#[inline]
#[expect(clippy::cast_sign_loss, reason = "clamped to a byte")]
pub(crate) fn ycc_to_rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = ((i32::from(y) << 16) + HALF, i32::from(cb) - 128, i32::from(cr) - 128);
    [y + 91_881 * cr, y - 22_554 * cb - 46_802 * cr, y + 116_130 * cb]
        .map(|light| (light >> 16).clamp(0, 255) as u8)
}

/// Converts one pixel of [`Model::VideoYCbCr`], bit for bit like libwebp, in fixed point with 6 fractional
/// bits.
#[inline]
#[expect(clippy::cast_sign_loss, reason = "clamped to a byte")]
pub(crate) fn video_to_rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y), i32::from(cb), i32::from(cr));
    let light = (y * 19_077) >> 8;
    [
        light + ((cr * 26_149) >> 8) - 14_234,
        light - ((cb * 6_419) >> 8) - ((cr * 13_320) >> 8) + 8_708,
        light + ((cb * 33_050) >> 8) - 17_685,
    ]
    .map(|light| (light >> 6).clamp(0, 255) as u8)
}
