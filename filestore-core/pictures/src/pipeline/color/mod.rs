//! Converts pixels with embedded profiles, inks and grey to sRGB. The conversion runs on the small picture,
//! so the cost is low.
//!
//! The conversion uses moxcms, in the version that `image` uses. lcms2 would add a C library and its build.
//! The tests compare the colours with LittleCMS, and allow a ΔE*ab (CIE 1976) of at most 2.

use std::sync::Arc;

use moxcms::{
    ColorProfile, DataColorSpace, Layout as CmsLayout, TransformExecutor, TransformOptions,
};

use super::guard::guarded;
use crate::pixels::{InkModel, Inks, Layout, Pixels};

mod defined;

use defined::Conversion;
pub(crate) use defined::{Defined, Primaries, Transfer};

/// The words of a file on its colours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Profile {
    /// An ICC profile, as found.
    Icc(Vec<u8>),
    /// Numbers, which mean RGB.
    Defined(Defined),
}

impl Profile {
    /// Counts the bytes of a profile.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Icc(bytes) => bytes.len(),
            Self::Defined(_) => 0,
        }
    }
}

/// Converts a picture to sRGB, as [`Layout::Rgb`] or [`Layout::Rgba`].
///
/// A profile that is broken or belongs to other channels is ignored, as browsers do. Inks without
/// a usable profile are converted by the plain rule, (1 − ink)·(1 − black).
pub(crate) fn to_srgb(pixels: Pixels, profile: Option<&Profile>) -> Pixels {
    ToSrgb::new(pixels.layout, profile).convert(pixels)
}

/// The prepared conversion for pictures of one layout and one profile.
pub(crate) struct ToSrgb {
    /// `None` if the profile is of no use.
    profile: Option<Prepared>,
}

enum Prepared {
    Icc(OfProfile),
    Defined(Box<Conversion>),
}

/// The conversion of a profile.
struct OfProfile {
    transform: Arc<dyn TransformExecutor<u8> + Send + Sync>,
    layout: Layout,
}

impl ToSrgb {
    /// Prepares the conversion in [`to_srgb`] for pictures of `layout`.
    pub(crate) fn new(layout: Layout, profile: Option<&Profile>) -> Self {
        let profile = match profile {
            // The profile is untrusted, and a library that stumbles over it must not take the picture
            // along.
            Some(Profile::Icc(profile)) => {
                guarded(|| OfProfile::new(layout, profile)).ok().flatten().map(Prepared::Icc)
            }
            Some(Profile::Defined(defined)) => of_numbers(layout, *defined),
            None => None,
        };
        Self { profile }
    }

    /// Returns true if the profile changes no colour: it is sRGB or not usable.
    pub(crate) fn is_without_profile(&self) -> bool {
        self.profile.is_none()
    }

    /// Converts a picture of the prepared layout.
    pub(crate) fn convert(&self, pixels: Pixels) -> Pixels {
        let pixels = upright_inks(pixels);
        match &self.profile {
            Some(Prepared::Icc(profile)) => {
                let converted = guarded(|| profile.convert(&pixels)).ok().flatten();
                converted.unwrap_or_else(|| without_profile(pixels))
            }
            Some(Prepared::Defined(conversion)) => {
                let mut pixels = without_profile(pixels);
                convert_all(conversion, pixels.layout, &mut pixels.data);
                pixels
            }
            None => without_profile(pixels),
        }
    }
}

/// Prepares the conversion of colours that numbers define; `None` if they are sRGB's, or make no sense,
/// and for inks, which they cannot mean.
fn of_numbers(layout: Layout, defined: Defined) -> Option<Prepared> {
    if matches!(layout, Layout::Inks(_)) {
        return None;
    }
    let conversion = defined.conversion()?;
    let same = |from: &[u8], to: &mut [u8]| {
        to.copy_from_slice(from);
        convert_all(&conversion, Layout::Rgb, to);
        true
    };
    (!is_identity(same, Layout::Rgb)).then(|| Prepared::Defined(Box::new(conversion)))
}

/// Converts RGB or RGBA pixels.
fn convert_all(conversion: &Conversion, layout: Layout, data: &mut [u8]) {
    for pixel in data.chunks_exact_mut(layout.channels()) {
        if let [red, green, blue, ..] = pixel {
            [*red, *green, *blue] = conversion.pixel([*red, *green, *blue]);
        }
    }
}

/// Converts inks to the form of profiles: CMYK, where 255 is full ink.
fn upright_inks(mut pixels: Pixels) -> Pixels {
    let Layout::Inks(Inks { model, inverted }) = pixels.layout else { return pixels };

    for pixel in pixels.data.chunks_exact_mut(4) {
        if model == InkModel::Ycck {
            let complement = ycc_to_rgb([pixel[0], pixel[1], pixel[2]]);
            for (ink, light) in pixel.iter_mut().zip(complement) {
                *ink = 255 - light;
            }
        }
        if inverted {
            for ink in pixel {
                *ink = 255 - *ink;
            }
        }
    }

    pixels.layout = Layout::Inks(Inks { model: InkModel::Cmyk, inverted: false });
    pixels
}

/// Converts by ITU-T T.871 (JFIF), section 7.
fn ycc_to_rgb([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    let (y, cb, cr) = (f32::from(y), f32::from(cb) - 128.0, f32::from(cr) - 128.0);
    [y + 1.402 * cr, y - 0.344_136 * cb - 0.714_136 * cr, y + 1.772 * cb].map(to_byte)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a byte")]
fn to_byte(value: f32) -> u8 {
    value.round().clamp(0.0, 255.0) as u8
}

impl OfProfile {
    fn new(stored: Layout, profile: &[u8]) -> Option<Self> {
        let profile = ColorProfile::new_from_slice(profile).ok()?;

        let (from, to, space, layout) = match stored {
            Layout::Grey => (CmsLayout::Gray, CmsLayout::Rgb, DataColorSpace::Gray, Layout::Rgb),
            Layout::GreyAlpha => {
                (CmsLayout::GrayAlpha, CmsLayout::Rgba, DataColorSpace::Gray, Layout::Rgba)
            }
            Layout::Rgb => (CmsLayout::Rgb, CmsLayout::Rgb, DataColorSpace::Rgb, Layout::Rgb),
            Layout::Rgba => (CmsLayout::Rgba, CmsLayout::Rgba, DataColorSpace::Rgb, Layout::Rgba),
            Layout::Inks(_) => (CmsLayout::Rgba, CmsLayout::Rgb, DataColorSpace::Cmyk, Layout::Rgb),
        };
        if profile.color_space != space {
            return None;
        }

        let srgb = ColorProfile::new_srgb();
        let options = TransformOptions::default();
        let transform = profile.create_transform_8bit(from, &srgb, to, options).ok()?;
        let changes = stored != layout
            || !is_identity(|from, to| transform.transform(from, to).is_ok(), layout);
        changes.then_some(Self { transform, layout })
    }

    fn convert(&self, pixels: &Pixels) -> Option<Pixels> {
        let Pixels { width, height, ref data, .. } = *pixels;
        let layout = self.layout;
        let mut converted = vec![0; width as usize * height as usize * layout.channels()];
        self.transform.transform(data, &mut converted).ok()?;
        Some(Pixels { layout, width, height, data: converted })
    }
}

/// Returns true if a transform changes no colour by more than rounding. Most embedded profiles are variants
/// of sRGB, and their pictures stay unchanged.
fn is_identity(transform: impl Fn(&[u8], &mut [u8]) -> bool, layout: Layout) -> bool {
    const STEPS: [u8; 6] = [0, 51, 102, 153, 204, 255];

    let mut colors = Vec::with_capacity(216 * layout.channels());
    for red in STEPS {
        for green in STEPS {
            for blue in STEPS {
                colors.extend_from_slice(&[red, green, blue, 255][..layout.channels()]);
            }
        }
    }

    let mut seen = vec![0; colors.len()];
    transform(&colors, &mut seen)
        && colors.iter().zip(&seen).all(|(was, is)| was.abs_diff(*is) <= 1)
}

fn without_profile(pixels: Pixels) -> Pixels {
    let Pixels { layout, width, height, data } = pixels;
    let (layout, data) = match layout {
        Layout::Rgb | Layout::Rgba => (layout, data),
        Layout::Grey => (Layout::Rgb, data.into_iter().flat_map(|grey| [grey; 3]).collect()),
        Layout::GreyAlpha => {
            (Layout::Rgba, data.chunks_exact(2).flat_map(|p| [p[0], p[0], p[0], p[1]]).collect())
        }
        Layout::Inks(_) => (Layout::Rgb, data.chunks_exact(4).flat_map(plain_cmyk).collect()),
    };
    Pixels { layout, width, height, data }
}

fn plain_cmyk(inks: &[u8]) -> [u8; 3] {
    [inks[0], inks[1], inks[2]].map(|ink| {
        u8::try_from((paper(ink) * paper(inks[3]) + 127) / 255)
            .expect("a product of two bytes over 255")
    })
}

/// Returns the light that an ink leaves.
fn paper(ink: u8) -> u32 {
    255 - u32::from(ink)
}

#[cfg(test)]
mod tests;
