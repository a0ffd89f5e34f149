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

use bytes::Bytes;

use super::super::Variant;
use super::aside::Spare;
use super::color::{ToSrgb, to_srgb};
use super::cut;
use super::decode::{Decoded, decode};
use super::encode::{encode, encode_planes, may_be_lossless};
use super::header::Header;
use super::image_file::ImageFile;
use super::libwebp::Yuv;
use super::plan::{ENOUGH, Plan, Small, plan_reduced, plan_sketch};
use super::refusal::corrupt;
use super::resize::{resize, resize_planes};
use super::sketch::thumbhash;
use crate::domain::error::{Error, Result};
use crate::domain::record::{Dimensions, Thumbhash};
use crate::domain::variant::{Fit, VariantSize};
use crate::variant::geometry::{Extent, Geometry, Rectangle, area};
use crate::variant::jpeg;
use crate::variant::pixels::{Layout, Model, Picture, Pixels, Planes, Reduced};

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
    /// True if what is resized from planes goes into a lossy file as planes.
    keeps_planes: bool,
    /// Pictures resized from `decoded`, the largest first.
    resized: Vec<Resized>,
}

/// A picture already resized, and the part of the stored one that it shows.
#[derive(Debug)]
struct Resized {
    picture: Picture,
    /// The pixels of the whole of it.
    size: Dimensions,
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

        let is_ycc = matches!(
            &picture,
            Picture::Planes(Planes { model: Model::YCbCr | Model::VideoYCbCr, .. })
        );
        // Most profiles are sRGB's: that is found once for all sizes.
        let profile = profile.filter(|profile| {
            !is_ycc || !ToSrgb::new(Layout::Rgb, Some(profile)).is_without_profile()
        });
        let keeps_planes = is_ycc && profile.is_none() && came.is_none();
        let decoded = Some(picture);
        Ok(Self { header, profile, came, decoded, keeps_planes, resized: Vec::new() })
    }

    /// Makes the picture of `wanted` from the smallest one that is as good as any. It is retained as
    /// well if one of the `later` can be made of it.
    pub(crate) fn make(
        &mut self,
        wanted: Geometry,
        later: &[(usize, Geometry)],
    ) -> Result<Picture> {
        let made = Resized::of(self.shrink(wanted)?, wanted);
        if !later.iter().any(|(_, later)| made.serves(*later)) {
            return Ok(made.picture);
        }

        let picture = made.picture.clone();
        self.resized.push(made);
        Ok(picture)
    }

    /// Resizes to planes, if a lossy file is made of them as they are, else to pixels.
    fn shrink(&self, wanted: Geometry) -> Result<Picture> {
        let source = self.source(wanted);
        if self.keeps_planes
            && let Picture::Planes(planes) = source
        {
            let mirrors = self.header.orientation.mirrors();
            return resize_planes(planes, wanted, mirrors).map(Picture::Planes);
        }
        let extent = Extent::of(wanted);
        resize(source, wanted).map(|pixels| Picture::Reduced(Reduced { pixels, extent }))
    }

    /// Finds the smallest picture that is as good as any for `wanted`.
    fn source(&self, wanted: Geometry) -> &Picture {
        let resized = self.resized.iter().rev().find(|resized| resized.serves(wanted));
        let resized = resized.map(|resized| &resized.picture);
        resized.or(self.decoded.as_ref()).expect("asked only for what it serves")
    }

    /// Turns a picture resized as `wanted` into a file: sRGB, upright, encoded.
    pub(crate) fn finish(&self, small: Picture, wanted: Geometry, quality: f32) -> Result<Variant> {
        let file = match small {
            Picture::Planes(small) => self.finish_planes(small, wanted, quality),
            Picture::Whole(pixels) | Picture::Reduced(Reduced { pixels, .. }) => {
                encode(&self.upright(pixels, wanted)?, quality)
            }
        };
        file.map(Variant::WebP)
    }

    /// Turns planes into a lossy file; into a lossless one, of all the colours that were decoded, if that is smaller.
    fn finish_planes(&self, small: Planes, wanted: Geometry, quality: f32) -> Result<Bytes> {
        let mut picture = self.upright_planes(small)?;
        let lossy = encode_planes(&mut picture, quality)?;
        if !may_be_lossless(&picture, lossy.len())? {
            return Ok(lossy);
        }
        let source = self.decoded.as_ref().unwrap_or_else(|| self.source(wanted));
        encode(&self.upright(resize(source, wanted)?, wanted)?, quality)
    }

    /// Turns planes resized for a lossy file into those that are shown: in video range, upright.
    fn upright_planes(&self, small: Planes) -> Result<Yuv> {
        let planes = small.planes.into_iter().enumerate().map(|(component, plane)| {
            let mut samples = self.header.orientation.apply(plane.samples);
            to_video_range(small.model, component, &mut samples.data);
            samples
        });
        let planes: [Pixels; 3] = planes.collect::<Vec<_>>().try_into().map_err(|_| {
            Error::internal("encoding a variant", "other planes than luminance and chrominance")
        })?;
        let [Pixels { width, height, data: y, .. }, u, v] = planes;
        Ok(Yuv { width, height, y, u: u.data, v: v.data, alpha: None })
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
        let small = resize(self.source(wanted), wanted)?;
        thumbhash(&self.upright(small, wanted)?)
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
        self.shrink(wanted).and_then(|small| self.finish(small, wanted, quality))
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
        let picture = Picture::Reduced(Reduced { pixels, extent: Extent::of(reduced) });
        self.resized.push(Resized::of(picture, reduced));
        Some(self)
    }

    /// Counts the bytes of pixels and profile.
    pub(crate) fn bytes(&self) -> u64 {
        let decoded = self.decoded.iter().map(Picture::bytes);
        let resized = self.resized.iter().map(|resized| resized.picture.bytes());
        let profile = self.profile.as_ref().map_or(0, Vec::len);
        (decoded.chain(resized).sum::<usize>() + profile) as u64
    }
}

impl Resized {
    /// Wraps a picture that was resized as `made`.
    fn of(picture: Picture, made: Geometry) -> Self {
        Self { picture, size: made.target, shown: made.crop }
    }

    /// Returns true if `wanted` is as good from this picture as from the decoded one.
    fn serves(&self, wanted: Geometry) -> bool {
        let Self { size, shown, .. } = self;
        let Geometry { crop, target } = wanted;
        shown.contains(crop)
            && is_enough(crop.width, size.width, shown.width, target.width)
            && is_enough(crop.height, size.height, shown.height, target.height)
    }
}

/// Turns samples of a component from the range of `model` to that of WebP: luminance from 16 to 235,
/// chrominance from 16 to 240 (BT.601).
fn to_video_range(model: Model, component: usize, samples: &mut [u8]) {
    if model == Model::VideoYCbCr {
        return;
    }
    // 219/255 and 224/255, and the darkest or most colourless value, in 16 bits of fraction.
    let (scale, offset) =
        if model.is_chrominance(component) { (57_569, 1_019_792) } else { (56_284, 16 << 16) };
    for sample in samples {
        let turned = (u32::from(*sample) * scale + offset + (1 << 15)) >> 16;
        *sample = turned.to_le_bytes()[0];
    }
}

/// Compares one side of the crop, in the `pixels` that show the stored pixels `shown`, with the
/// target. All but `pixels` are in stored pixels.
fn is_enough(crop: u32, pixels: u32, shown: u32, target: u32) -> bool {
    u64::from(crop) * u64::from(pixels) >= u64::from(ENOUGH * target) * u64::from(shown)
}
