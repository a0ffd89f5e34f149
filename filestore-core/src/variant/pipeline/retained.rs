//! The pixels that variants are made of, and that are retained in memory for further sizes: a
//! decoded picture, and what was resized from it.
//!
//! A size may be made of a picture already resized where that is as good: where the picture is at
//! least twice as large on both sides ([`ENOUGH`]). The pixels need not be the same to the last
//! bit; entity tags of variants are weak. Nothing is ever made of a variant's lossy file.
//!
//! Retained pictures stand in memory under a budget of bytes, keyed by file and checked by digest.
//! They are inserted before the record is asked once more, so that a replace or a purge is never
//! missed.
//!
//! A reduced copy serves every size that a request can ask for. A whole picture of 50 megapixels
//! takes more than the cache for retained pictures may give to one, so that copy is made instead.

use std::ops::Range;

use super::super::Variant;
use super::aside::Spare;
use super::color::to_srgb;
use super::cut;
use super::decode::{Decoded, decode};
use super::encode::encode;
use super::header::Header;
use super::image_file::ImageFile;
use super::plan::{ENOUGH, Plan, Small, plan_reduced, plan_sketch};
use super::refusal::corrupt;
use super::resize::{resize, resize_again};
use super::sketch::thumbhash;
use crate::domain::error::Result;
use crate::domain::record::{Dimensions, Thumbhash};
use crate::domain::variant::{Fit, VariantSize};
use crate::variant::geometry::{Geometry, Rectangle, area};
use crate::variant::jpeg;
use crate::variant::pixels::{Picture, Pixels, Reduced};

/// The longest side below which a picture is not worth retaining: it serves the smallest size alone.
const USEFUL_SIDE: u32 = 250;

/// A picture in one or more sizes, retained in memory.
#[derive(Debug)]
pub(crate) struct Retained {
    header: Header,
    /// The embedded ICC profile: pixels are converted when they are small.
    profile: Option<Vec<u8>>,
    /// The stored rows that came, if some are missing.
    came: Option<Range<u32>>,
    decoded: Option<Picture>,
    /// Pictures resized from `decoded`, the largest first.
    resized: Vec<Resized>,
}

/// A picture already resized, and the part of the stored one that it shows.
#[derive(Debug)]
struct Resized {
    pixels: Pixels,
    shown: Rectangle,
}

impl Retained {
    /// Decodes the picture so that all the `wanted` can be made of it.
    pub(crate) fn decode(
        image: &ImageFile<'_>,
        header: &Header,
        wanted: &[Geometry],
        spare: &dyn Spare,
    ) -> Result<Self> {
        let Decoded { picture, profile, came } = decode(image, header, wanted, spare)?;
        let header = header.clone();
        Ok(Self { header, profile, came, decoded: Some(picture), resized: Vec::new() })
    }

    /// Makes the pixels of `wanted` from the smallest picture that is as good as any. They are
    /// retained as well if one of the `later` can be made of them.
    pub(crate) fn make(&mut self, wanted: Geometry, later: &[(usize, Geometry)]) -> Result<Pixels> {
        let made = Resized { pixels: self.resize(wanted)?, shown: wanted.crop };
        if !later.iter().any(|(_, later)| made.serves(*later)) {
            return Ok(made.pixels);
        }

        let pixels = made.pixels.clone();
        self.resized.push(made);
        Ok(pixels)
    }

    fn resize(&self, wanted: Geometry) -> Result<Pixels> {
        let resized = self.resized.iter().rev().find(|resized| resized.serves(wanted));
        match (resized, &self.decoded) {
            (Some(Resized { pixels, shown }), _) => resize_again(pixels, *shown, wanted),
            (None, Some(decoded)) => resize(decoded, wanted),
            (None, None) => unreachable!("asked only for what it serves"),
        }
    }

    /// Turns pixels resized as `wanted` into a file: sRGB, upright, encoded.
    pub(crate) fn finish(&self, small: Pixels, wanted: Geometry, quality: f32) -> Result<Variant> {
        encode(&self.upright(small, wanted)?, quality).map(Variant::WebP)
    }

    /// Turns pixels resized as `wanted` into those that are shown: sRGB, upright.
    fn upright(&self, small: Pixels, wanted: Geometry) -> Result<Pixels> {
        let mut finished = to_srgb(small, self.profile.as_deref());
        if let Some(came) = &self.came {
            finished = cut::mask(finished, came, wanted)
                .ok_or_else(|| corrupt("nothing came of the part that is wanted"))?;
        }
        Ok(self.header.orientation.apply(finished))
    }

    /// Plans a variant that is made of these pixels alone; `None` if the file must be decoded for
    /// it.
    pub(crate) fn plan(&self, size: VariantSize, fit: Fit, small: Small) -> Option<Plan> {
        let plan = small.planned(&self.header, size, fit);
        match plan {
            Plan::PassThrough => Some(plan),
            Plan::Render(wanted) => self.serves(wanted).then_some(plan),
        }
    }

    /// Plans a placeholder that is made of these pixels alone; `None` if the file must be decoded for
    /// it.
    pub(crate) fn plan_sketch(&self) -> Option<Geometry> {
        Some(plan_sketch(self.header.stored)).filter(|wanted| self.serves(*wanted))
    }

    /// Makes the placeholder that [`plan_sketch`](Self::plan_sketch) said.
    pub(crate) fn sketch(&self, wanted: Geometry) -> Result<Thumbhash> {
        thumbhash(&self.upright(self.resize(wanted)?, wanted)?)
    }

    fn serves(&self, wanted: Geometry) -> bool {
        self.resized.iter().any(|resized| resized.serves(wanted))
            || match &self.decoded {
                Some(Picture::Whole(_)) => true,
                Some(Picture::Reduced(Reduced { pixels, extent })) => {
                    let size = Dimensions { width: pixels.width, height: pixels.height };
                    extent.suffices(size, wanted, 10 * ENOUGH)
                }
                Some(Picture::Planes(planes)) => jpeg::suffice(planes, wanted),
                None => false,
            }
    }

    /// Makes what [`plan`](Self::plan) said.
    pub(crate) fn render(&self, wanted: Geometry, quality: f32) -> Result<Variant> {
        self.resize(wanted).and_then(|small| self.finish(small, wanted, quality))
    }

    /// Returns the answer to a request for the picture itself.
    pub(crate) fn pass_through(&self) -> Variant {
        Variant::PassThrough { mime: self.header.format.mime() }
    }

    /// Reduces the picture to what is worth retaining for later requests within `max_bytes`: the
    /// decoded picture, else a reduced copy that serves all sizes, made now. `None` if nothing is.
    pub(crate) fn reduce_to(mut self, max_bytes: u64) -> Option<Self> {
        self.resized.clear();
        let decoded = self.decoded.as_ref()?;
        if decoded.longest_side() < USEFUL_SIDE {
            return None;
        }
        if self.bytes() <= max_bytes {
            return Some(self);
        }

        // The others are as small as they may be; only a picture decoded whole has much to lose.
        let Picture::Whole(Pixels { layout, .. }) = decoded else { return None };
        let reduced = plan_reduced(self.header.stored)?;
        if area(reduced.target) * layout.channels() as u64 > max_bytes {
            return None;
        }

        let pixels = resize(decoded, reduced).ok()?;
        self.decoded = None;
        self.resized.push(Resized { pixels, shown: reduced.crop });
        Some(self)
    }

    /// Counts the bytes of pixels and profile.
    pub(crate) fn bytes(&self) -> u64 {
        let decoded = self.decoded.iter().map(Picture::bytes);
        let resized = self.resized.iter().map(|resized| resized.pixels.data.len());
        let profile = self.profile.as_ref().map_or(0, Vec::len);
        (decoded.chain(resized).sum::<usize>() + profile) as u64
    }
}

impl Resized {
    /// Returns true if `wanted` is as good from this picture as from the decoded one.
    fn serves(&self, wanted: Geometry) -> bool {
        let Self { pixels, shown } = self;
        let Geometry { crop, target } = wanted;
        shown.contains(crop)
            && is_enough(crop.width, pixels.width, shown.width, target.width)
            && is_enough(crop.height, pixels.height, shown.height, target.height)
    }
}

/// Compares one side of the crop, in the `pixels` that show the stored pixels `shown`, with the
/// target. All but `pixels` are in stored pixels.
fn is_enough(crop: u32, pixels: u32, shown: u32, target: u32) -> bool {
    u64::from(crop) * u64::from(pixels) >= u64::from(ENOUGH * target) * u64::from(shown)
}
