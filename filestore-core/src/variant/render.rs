//! From an open blob to its variants: the stages in their order, on one thread.

use std::cmp::Reverse;
use std::fs::File;

use super::Variant;
use super::budget::{check_size, memory_needed};
use super::color::to_srgb;
use super::decode::{Decoded, Pixels, decode};
use super::encode::encode;
use super::header::{self, Header};
use super::plan::{Fit, Geometry, Plan, Rectangle, VariantSize, plan};
use super::resize::{resize, resize_again};
use super::source::{Deadline, Source};
use crate::domain::config::VariantConfig;
use crate::domain::error::Result;

/// How many times larger than its target a resized picture must be, on both sides, to be resized
/// again instead of the decoded one. Lanczos3 leaves the lower half of the spectrum as it was, so
/// from twice the size on nothing is lost that the smaller picture could show.
const ENOUGH: u32 = 2;

/// Makes several variants of the image in `file` at once, without any cache, on this thread: one
/// decode serves them all.
///
/// The results are in the order of `wanted`. A smaller one may be resized from a larger one's
/// pixels (never from its lossy file), where that is as good as from the decoded picture.
///
/// Of `config`, the limits, the quality and the deadline (for all together) matter here. The memory
/// limit applies to this call alone: several at once share nothing.
///
/// Errors: [`NotAnImage`](crate::ErrorKind::NotAnImage), [`CorruptImage`](crate::ErrorKind::CorruptImage),
/// [`ImageTooLarge`](crate::ErrorKind::ImageTooLarge) (also past the deadline), and
/// [`Internal`](crate::ErrorKind::Internal) for a fault of the disk.
///
/// ```
/// use std::fs::File;
/// use filestore_core::domain::config::VariantConfig;
/// use filestore_core::variant::{Fit, VariantSize, render};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let wanted = [
///     (VariantSize::try_from(200)?, Fit::Cover),
///     (VariantSize::try_from(1000)?, Fit::Inside),
/// ];
/// let variants = render(&File::open("photo.jpg")?, &wanted, &VariantConfig::default())?;
/// assert_eq!(variants.len(), 2);
/// # Ok(())
/// # }
/// ```
pub fn render(file: &File, wanted: &[(VariantSize, Fit)], config: &VariantConfig) -> Result<Vec<Variant>> {
    let deadline = Deadline::after(config.deadline);
    assess(file, wanted, config).and_then(|work| work.run(file, config.quality, deadline))
}

/// What there is to do for some variants of one file, known from its header alone; has passed the
/// limits.
#[derive(Debug)]
pub(super) struct Work {
    header: Header,
    /// What each becomes, in stored axes.
    plans: Vec<Plan>,
    /// Bytes it will hold at its peak; 0 if nothing is decoded.
    pub(super) memory_bytes: u64,
}

/// Reads the header of `file`, plans, and checks the limits. Decodes nothing.
pub(super) fn assess(file: &File, wanted: &[(VariantSize, Fit)], config: &VariantConfig) -> Result<Work> {
    let source = Source::new(file, Deadline::NONE)?;
    let header = header::read(&source)?;
    let plans = wanted.iter().map(|(size, fit)| match plan(header.displayed(), *size, *fit) {
        Plan::PassThrough => Plan::PassThrough,
        Plan::Render(displayed) => Plan::Render(header.orientation.to_stored(displayed, header.stored)),
    });
    let mut work = Work { plans: plans.collect(), header, memory_bytes: 0 };
    let geometries = work.geometries();
    if !geometries.is_empty() {
        check_size(work.header.stored, config)?;
        work.memory_bytes = memory_needed(&work.header, &geometries, source.len(), config)?;
    }
    Ok(work)
}

impl Work {
    /// The answers, if nothing needs to be decoded for any of them.
    pub(super) fn nothing_to_decode(&self) -> Option<Vec<Variant>> {
        let pass_through = |plan: &Plan| match plan {
            Plan::PassThrough => Some(Variant::PassThrough { mime: self.header.format.mime() }),
            Plan::Render(_) => None,
        };
        self.plans.iter().map(pass_through).collect()
    }

    /// Makes the variants. Takes as long as decoding takes, but not much longer than until
    /// `deadline`.
    pub(super) fn run(&self, file: &File, quality: f32, deadline: Deadline) -> Result<Vec<Variant>> {
        if let Some(variants) = self.nothing_to_decode() {
            return Ok(variants);
        }
        let source = Source::new(file, deadline)?;
        source.check()?;
        let mut decoded = decode(&source, &self.header, &self.geometries())?;
        source.check()?;
        let profile = decoded.profile.take();
        let mut sizes = Sizes::of(decoded);
        let mut variants = vec![Variant::PassThrough { mime: self.header.format.mime() }; self.plans.len()];
        let mut left = &*self.largest_first();
        while let [(index, geometry), later @ ..] = left {
            left = later;
            let small = sizes.make(*geometry, later)?;
            source.check()?;
            let finished = self.header.orientation.apply(to_srgb(small, profile.as_deref()));
            variants[*index] = encode(&finished, quality).map(Variant::WebP)?;
            source.check()?;
        }
        Ok(variants)
    }

    fn geometries(&self) -> Vec<Geometry> {
        self.plans.iter().filter_map(Plan::geometry).collect()
    }

    /// What to render and whose it is, so that the small ones find the large ones made.
    fn largest_first(&self) -> Vec<(usize, Geometry)> {
        let planned = self.plans.iter().enumerate();
        let mut planned: Vec<_> =
            planned.filter_map(|(index, plan)| Some((index, plan.geometry()?))).collect();
        planned.sort_by_key(|(_, geometry)| Reverse(geometry.target.width.max(geometry.target.height)));
        planned
    }
}

/// The decoded picture and what was resized from it, as sources of further sizes.
struct Sizes {
    decoded: Decoded,
    /// The largest first.
    resized: Vec<Resized>,
}

/// A picture already resized, and the part of the stored one that it shows.
struct Resized {
    pixels: Pixels,
    shown: Rectangle,
}

impl Sizes {
    fn of(decoded: Decoded) -> Self {
        Self { decoded, resized: Vec::new() }
    }

    /// The picture that `wanted` is, from the smallest source large enough. It is kept if one of
    /// the `later` can be made of it.
    fn make(&mut self, wanted: Geometry, later: &[(usize, Geometry)]) -> Result<Pixels> {
        let pixels = match self.resized.iter().rev().find(|resized| resized.is_enough_for(wanted)) {
            Some(Resized { pixels, shown }) => resize_again(pixels, *shown, wanted)?,
            None => resize(&self.decoded, wanted)?,
        };
        let resized = Resized { pixels, shown: wanted.crop };
        if later.iter().any(|(_, later)| resized.is_enough_for(*later)) {
            let pixels = resized.pixels.clone();
            self.resized.push(resized);
            return Ok(pixels);
        }
        Ok(resized.pixels)
    }
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

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
