//! What variants are made of: a decoded picture, what was resized from it, and what is kept of both
//! for the next request.
//!
//! A size may be made of a picture already resized where that is as good: where it is at least
//! twice as large on both sides. Lanczos3 leaves the lower half of the spectrum as it was, so nothing is
//! lost that the smaller picture could show. The pixels need not be the same to the last bit; entity
//! tags of variants are weak. Nothing is ever made of a variant's lossy file.

use super::Variant;
use super::color::to_srgb;
use super::decode::{Decoded, Picture, Pixels, decode};
use super::encode::encode;
use super::header::Header;
use super::plan::{Geometry, Rectangle};
use super::render::geometry;
use super::resize::{resize, resize_again};
use super::source::Source;
use crate::domain::error::Result;
use crate::domain::record::Dimensions;
use crate::domain::variant::{Fit, VariantSize};

/// How many times larger than its target a picture must be, on both sides, to be as good as a larger.
const ENOUGH: u32 = 2;
/// The longer side of what is kept of a picture too large to be kept as it is: enough for all sizes.
const KEPT_SIDE: u32 = ENOUGH * 1000;
/// A picture with a shorter longest side is not worth keeping: it serves the smallest size alone.
const USEFUL_SIDE: u32 = 250;

/// A picture in one or more sizes.
#[derive(Debug)]
pub(super) struct Stock {
    header: Header,
    /// The embedded ICC profile: pixels are converted when they are small.
    profile: Option<Vec<u8>>,
    decoded: Option<Decoded>,
    /// The largest first.
    resized: Vec<Resized>,
}

/// A picture already resized, and the part of the stored one that it shows.
#[derive(Debug)]
struct Resized {
    pixels: Pixels,
    shown: Rectangle,
}

impl Stock {
    /// Decodes the picture so that all the `wanted` can be made of it.
    pub(super) fn decode(
        source: &Source<'_>,
        header: &Header,
        wanted: &[Geometry],
    ) -> Result<Self> {
        let mut decoded = decode(source, header, wanted)?;
        let profile = decoded.profile.take();
        Ok(Self { header: header.clone(), profile, decoded: Some(decoded), resized: Vec::new() })
    }

    /// The picture that `wanted` is, from the smallest source that is as good as any. It is kept
    /// if one of the `later` can be made of it.
    pub(super) fn make(&mut self, wanted: Geometry, later: &[(usize, Geometry)]) -> Result<Pixels> {
        let made = Resized { pixels: self.resize(wanted)?, shown: wanted.crop };
        if later.iter().any(|(_, later)| made.is_enough_for(*later)) {
            let pixels = made.pixels.clone();
            self.resized.push(made);
            return Ok(pixels);
        }
        Ok(made.pixels)
    }

    fn resize(&self, wanted: Geometry) -> Result<Pixels> {
        let resized = self.resized.iter().rev().find(|resized| resized.is_enough_for(wanted));
        match (resized, &self.decoded) {
            (Some(Resized { pixels, shown }), _) => resize_again(pixels, *shown, wanted),
            (None, Some(decoded)) => resize(decoded, wanted),
            (None, None) => unreachable!("asked only for what it serves"),
        }
    }

    /// From resized pixels to the file: sRGB, upright, encoded.
    pub(super) fn finish(&self, small: Pixels, quality: f32) -> Result<Variant> {
        let finished = self.header.orientation.apply(to_srgb(small, self.profile.as_deref()));
        encode(&finished, quality).map(Variant::WebP)
    }

    /// How a variant is had from here alone; `None` if the file must be decoded for it.
    pub(super) fn offer(&self, size: VariantSize, fit: Fit) -> Option<Offer> {
        let Some(wanted) = geometry(&self.header, size, fit) else {
            return Some(Offer::PassThrough { mime: self.header.format.mime() });
        };
        let serves = self.resized.iter().any(|resized| resized.is_enough_for(wanted))
            || self.decoded.as_ref().is_some_and(|decoded| decoded.is_enough_for(wanted));
        serves.then_some(Offer::Render(wanted))
    }

    /// Makes what [`offer`](Self::offer) said.
    pub(super) fn render(&self, wanted: Geometry, quality: f32) -> Result<Variant> {
        self.resize(wanted).and_then(|small| self.finish(small, quality))
    }

    /// What is worth keeping for later requests within `max_bytes`: the decoded picture, else a
    /// smaller one that serves all sizes, made now. `None` if nothing is.
    pub(super) fn keep(mut self, max_bytes: u64) -> Option<Self> {
        self.resized.clear();
        let decoded = self.decoded.as_ref()?;
        if decoded.longest_side() < USEFUL_SIDE {
            return None;
        }
        if self.bytes() <= max_bytes {
            return Some(self);
        }
        // Planes are as small as they may be; only a picture decoded whole has much to lose.
        let Picture::Whole(Pixels { layout, .. }) = decoded.picture else { return None };
        let wanted = kept(self.header.stored)?;
        if area(wanted.target) * layout.channels() as u64 > max_bytes {
            return None;
        }
        let pixels = resize(self.decoded.as_ref()?, wanted).ok()?;
        self.decoded = None;
        self.resized.push(Resized { pixels, shown: wanted.crop });
        Some(self)
    }

    /// What it weighs.
    pub(super) fn bytes(&self) -> u64 {
        let pixels = self.decoded.iter().map(Decoded::bytes);
        let resized = self.resized.iter().map(|resized| resized.pixels.data.len());
        (pixels.chain(resized).sum::<usize>() + self.profile.as_ref().map_or(0, Vec::len)) as u64
    }
}

/// How a variant is had from a [`Stock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// The original's bytes are the answer.
    PassThrough {
        /// What they are.
        mime: &'static str,
    },
    /// It is made of the pixels at hand.
    Render(Geometry),
}

impl Resized {
    /// Whether `wanted` is as good from this picture as from the decoded one.
    fn is_enough_for(&self, wanted: Geometry) -> bool {
        let Self { pixels, shown } = self;
        // What of this picture the crop takes, against the target: both in stored pixels.
        let is_enough = |crop: u32, width: u32, shown: u32, target: u32| {
            u64::from(crop) * u64::from(width) >= u64::from(ENOUGH * target) * u64::from(shown)
        };
        shown.contains(wanted.crop)
            && is_enough(wanted.crop.width, pixels.width, shown.width, wanted.target.width)
            && is_enough(wanted.crop.height, pixels.height, shown.height, wanted.target.height)
    }
}

/// What is made to be kept of a picture decoded whole, too large to be kept as it is: all of it, with its
/// longer side at [`KEPT_SIDE`]. `None` if it is no larger than that.
pub(super) fn kept(stored: Dimensions) -> Option<Geometry> {
    let Dimensions { width, height } = stored;
    let longest = width.max(height);
    if longest <= KEPT_SIDE {
        return None;
    }
    let side = |side: u32| {
        let scaled = u64::from(side) * u64::from(KEPT_SIDE) / u64::from(longest);
        u32::try_from(scaled).unwrap_or(side).max(1)
    };
    Some(Geometry {
        crop: Rectangle { left: 0, top: 0, width, height },
        target: Dimensions { width: side(width), height: side(height) },
    })
}

fn area(size: Dimensions) -> u64 {
    u64::from(size.width) * u64::from(size.height)
}
