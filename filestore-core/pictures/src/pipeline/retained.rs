//! Pixels that are retained in memory for further sizes: a decoded picture, and the pictures resized from it.
//!
//! A size can be made from a picture that is already resized, if the result is as good. For this, the source
//! must be at least twice as large on both sides ([`ENOUGH`]). The pixels can differ in the last bit, which
//! is one reason why entity tags of variants are weak. No picture is ever made from a variant's lossy file.
//!
//! A reduced copy serves every size that a request can ask for. A whole picture of 50 megapixels takes more
//! memory than the cache gives to a single picture, so the reduced copy takes its place.

use std::ops::Range;

use bytes::Bytes;

use super::color::{Profile, ToSrgb, to_srgb};
use super::decode::{Decoded, decode};
use super::encode::{encode, encode_planes, may_be_lossless};
use super::header::Header;
use super::image_file::ImageFile;
use super::incomplete;
use super::libwebp::Yuv;
use super::placeholder::hash::thumbhash;
use super::plan::{ENOUGH, Plan, Small, plan_placeholder, plan_reduced};
use super::resize::{resize, resize_planes};
use super::spare::Spare;
use crate::error::{Result, corrupt, internal};
use crate::geometry::{Extent, Geometry, Rectangle, area};
use crate::jpeg;
use crate::pixels::{Layout, Model, Picture, Pixels, Planes, Reduced};
use crate::{Dimensions, Rendered, Wanted};

/// The minimum longest side of a picture that is worth retaining. A smaller picture serves only the smallest
/// size.
const USEFUL_SIDE: u32 = 250;

/// A picture in one or more sizes, retained in memory.
#[derive(Debug)]
pub struct Retained {
    header: Header,
    /// The words of the file on its colours: pixels are converted when they are small.
    profile: Option<Profile>,
    /// The stored rows that arrived, if some are missing.
    arrived: Option<Range<u32>>,
    decoded: Option<Picture>,
    /// True if planes stay planes until the lossy encoder.
    keeps_planes: bool,
    /// Pictures resized from `decoded`, largest first.
    resized: Vec<Resized>,
}

/// A resized picture, and the part of the stored picture that it shows.
#[derive(Debug)]
struct Resized {
    picture: Picture,
    /// The size of the resized picture, in pixels.
    size: Dimensions,
    shown: Rectangle,
}

impl Retained {
    /// Decodes the picture in a form that serves all `wanted`.
    pub(crate) fn decode(
        image: &ImageFile<'_>,
        header: &Header,
        wanted: &[Geometry],
        spare: &dyn Spare,
    ) -> Result<Self> {
        let Decoded { picture, profile, arrived } = decode(image, header, wanted, spare)?;
        let header = header.clone();

        let is_ycc = matches!(
            &picture,
            Picture::Planes(Planes { model: Model::YCbCr | Model::VideoYCbCr, .. })
        );
        // Most profiles are sRGB's: that is found once for all sizes.
        let profile = profile.filter(|profile| {
            !is_ycc || !ToSrgb::new(Layout::Rgb, Some(profile)).is_without_profile()
        });
        let keeps_planes = is_ycc && profile.is_none() && arrived.is_none();
        let decoded = Some(picture);
        Ok(Self { header, profile, arrived, decoded, keeps_planes, resized: Vec::new() })
    }

    /// Makes the picture for `wanted` from the smallest source that is as good as any other. Retains the
    /// result if it can serve one of the `later` sizes.
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

    /// Resizes to planes if the lossy encoder takes them unchanged. Otherwise resizes to pixels.
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

    /// Finds the smallest picture that is as good a source for `wanted` as any other.
    fn source(&self, wanted: Geometry) -> &Picture {
        let resized = self.resized.iter().rev().find(|resized| resized.serves(wanted));
        let resized = resized.map(|resized| &resized.picture);
        resized.or(self.decoded.as_ref()).expect("asked only for what it serves")
    }

    /// Turns a picture resized as `wanted` into a file: converts to sRGB, turns upright and encodes.
    pub(crate) fn finish(
        &self,
        small: Picture,
        wanted: Geometry,
        quality: f32,
    ) -> Result<Rendered> {
        let file = match small {
            Picture::Planes(small) => self.finish_planes(small, wanted, quality),
            Picture::Whole(pixels) | Picture::Reduced(Reduced { pixels, .. }) => {
                encode(&self.upright(pixels, wanted)?, quality)
            }
        };
        file.map(Rendered::WebP)
    }

    /// Encodes planes as a lossy file. If a lossless file with all decoded colours is smaller, returns that
    /// file.
    fn finish_planes(&self, small: Planes, wanted: Geometry, quality: f32) -> Result<Bytes> {
        let mut picture = self.upright_planes(small)?;
        let lossy = encode_planes(&mut picture, quality)?;
        if !may_be_lossless(&picture, lossy.len())? {
            return Ok(lossy);
        }
        let source = self.decoded.as_ref().unwrap_or_else(|| self.source(wanted));
        encode(&self.upright(resize(source, wanted)?, wanted)?, quality)
    }

    /// Converts planes for a lossy file to video range, and turns them upright.
    fn upright_planes(&self, small: Planes) -> Result<Yuv> {
        let planes = small.planes.into_iter().enumerate().map(|(component, plane)| {
            let mut samples = self.header.orientation.apply(plane.samples);
            to_video_range(small.model, component, &mut samples.data);
            samples
        });
        let planes: [Pixels; 3] = planes.collect::<Vec<_>>().try_into().map_err(|_| {
            internal("encoding a variant", "other planes than luminance and chrominance")
        })?;
        let [Pixels { width, height, data: y, .. }, u, v] = planes;
        Ok(Yuv { width, height, y, u: u.data, v: v.data, alpha: None })
    }

    /// Converts pixels resized as `wanted` to sRGB, and turns them upright.
    fn upright(&self, small: Pixels, wanted: Geometry) -> Result<Pixels> {
        let mut finished = to_srgb(small, self.profile.as_ref());
        if let Some(arrived) = &self.arrived {
            finished = incomplete::mask(finished, arrived, wanted)
                .ok_or_else(|| corrupt("no row of the requested part arrived"))?;
        }
        Ok(self.header.orientation.apply(finished))
    }

    /// Plans a picture from these pixels alone. `None` if the file must be decoded for it.
    pub fn plan(&self, wanted: Wanted, small: Small) -> Option<Plan> {
        wanted.check().ok()?;
        let plan = small.planned(&self.header, wanted);
        match plan {
            Plan::PassThrough => Some(plan),
            Plan::Render(wanted) => self.serves(wanted).then_some(plan),
        }
    }

    /// Plans a placeholder from these pixels alone. `None` if the file must be decoded for it.
    pub fn plan_placeholder(&self) -> Option<Geometry> {
        Some(plan_placeholder(self.header.stored)).filter(|wanted| self.serves(*wanted))
    }

    /// Makes the placeholder that [`plan_placeholder`](Self::plan_placeholder) planned.
    pub fn placeholder(&self, wanted: Geometry) -> Result<Vec<u8>> {
        let small = resize(self.source(wanted), wanted)?;
        Ok(thumbhash(&self.upright(small, wanted)?))
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

    /// Renders the picture that [`plan`](Self::plan) planned, as WebP of `quality` (0 to 100).
    pub fn render(&self, wanted: Geometry, quality: f32) -> Result<Rendered> {
        self.shrink(wanted).and_then(|small| self.finish(small, wanted, quality))
    }

    /// Returns the result for a request that the original answers.
    pub fn pass_through(&self) -> Rendered {
        Rendered::PassThrough { mime: self.header.format.mime() }
    }

    /// Reduces the picture to the pixels that are worth retaining for later requests, at most `max_bytes`.
    /// Keeps the decoded picture if it fits. Otherwise makes a reduced copy that serves all sizes. `None` if
    /// neither is worth retaining.
    pub fn reduce_to(mut self, max_bytes: u64) -> Option<Self> {
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

    /// Returns the size of pixels and profile, in bytes.
    pub fn bytes(&self) -> u64 {
        let decoded = self.decoded.iter().map(Picture::bytes);
        let resized = self.resized.iter().map(|resized| resized.picture.bytes());
        let profile = self.profile.as_ref().map_or(0, Profile::bytes);
        (decoded.chain(resized).sum::<usize>() + profile) as u64
    }
}

impl Resized {
    /// Wraps a picture that was resized as `made`.
    fn of(picture: Picture, made: Geometry) -> Self {
        Self { picture, size: made.target, shown: made.crop }
    }

    /// Returns true if this picture is as good a source for `wanted` as the decoded picture.
    fn serves(&self, wanted: Geometry) -> bool {
        let Self { size, shown, .. } = self;
        let Geometry { crop, target } = wanted;
        shown.contains(crop)
            && is_enough(crop.width, size.width, shown.width, target.width)
            && is_enough(crop.height, size.height, shown.height, target.height)
    }
}

/// Converts a component's samples from the range of `model` to the range of WebP: luminance from 16 to 235,
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

/// Compares one side of the crop with the target. `pixels` show the stored pixels `shown`. All other values
/// are in stored pixels.
fn is_enough(crop: u32, pixels: u32, shown: u32, target: u32) -> bool {
    u64::from(crop) * u64::from(pixels) >= u64::from(ENOUGH * target) * u64::from(shown)
}
