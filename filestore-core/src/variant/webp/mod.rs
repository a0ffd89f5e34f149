//! A WebP decoder that decodes no further than is wanted. Safe Rust.
//!
//! # Purpose
//! image-webp decodes whole pictures with the loop filter, and turns them into RGB, before they are
//! reduced to a fraction. Here a lossy picture becomes planes that are reduced as they come, each
//! resized on its own, and RGB only at the target's size, as from our JPEG decoder. A lossless one is
//! given out row by row.
//!
//! # The way through the modules
//! 1. `container` finds the chunks of the file that make a still picture.
//! 2. `lossy` decodes the VP8 bitstream to planes.
//! 3. `alpha` decodes the plane of alpha that may stand beside it; `rgba` joins the two.
//! 4. `lossless` decodes the VP8L bitstream, and alpha that is stored as one.
//!
//! Animated files are image-webp's.
//!
//! # Limits
//! Lenient as browsers are: where the data ends, what came before is given out and named. The loop
//! filter is left out where the picture is much reduced: `lossy/scale.rs` has the figures. No input
//! panics: every index is checked or masked, and all arithmetic on the file's values wraps or is
//! bounded.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "bit fields and samples; all numbers here come from 16 bits at most"
)]
#![expect(
    clippy::inline_always,
    reason = "measured: the loop over macroblocks must become one function"
)]

use std::ops::{ControlFlow, Range};

use crate::domain::record::Dimensions;
use crate::variant::geometry::{Extent, Geometry};
use crate::variant::pixels::{Layout, Model, Picture, Pixels, Plane, Planes};

mod container;
mod lossy;
mod lossless;
mod alpha;
mod rgba;

#[cfg(test)]
mod tests;

use container::Chunks;
use lossy::{Component, Wanted};

/// A file and the chunks of its picture.
pub(crate) struct WebP<'a> {
    chunks: Chunks<'a>,
}

/// A decoded picture.
#[derive(Debug)]
pub(crate) struct Still {
    pub(crate) picture: Picture,
    /// The stored rows that came, if some of those that are wanted are missing; the missing repeat
    /// their nearest.
    pub(crate) came: Option<Range<u32>>,
}

/// The bit of a file's features that says that the picture has alpha.
const HAS_ALPHA: u8 = 0x10;

/// A lossless picture before its first row.
pub(crate) struct Lossless<'a> {
    stream: lossless::Stream<'a>,
    pub(crate) has_alpha: bool,
}

impl Lossless<'_> {
    /// Decodes the picture and gives each row to `taken`, its pixels with alpha in the highest byte and
    /// then red, green and blue, until that breaks off. Returns the number of rows given out: fewer than
    /// there are if the file was cut or is damaged.
    pub(crate) fn rows(self, taken: impl FnMut(&[u32]) -> ControlFlow<()>) -> Result<u32, Failure> {
        self.stream.rows(taken).map_err(Failure::Corrupt)
    }
}

/// The reason why a picture was not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The file makes no sense, or has no data.
    Corrupt(&'static str),
    /// The caller said that time is over.
    Late,
}

impl<'a> WebP<'a> {
    /// Lists the chunks of `file`, which may have been cut.
    pub(crate) fn survey(file: &'a [u8]) -> Self {
        Self { chunks: Chunks::of(file) }
    }

    /// Returns the ICC profile, as found.
    pub(crate) fn profile(&self) -> Option<&'a [u8]> {
        self.chunks.profile.filter(|profile| !profile.is_empty())
    }

    /// Decodes a lossy picture of `size` so that all of `wanted` can be made of it, which are
    /// within it. `is_late` is asked before every row of macroblocks.
    pub(crate) fn decode(
        &self,
        size: Dimensions,
        wanted: &[Geometry],
        is_late: &dyn Fn() -> bool,
    ) -> Result<Still, Failure> {
        let bytes = self.chunks.lossy.ok_or(Failure::Corrupt("no lossy picture"))?;
        let parts =
            if self.chunks.alpha.is_some() { Wanted::Whole } else { Wanted::Serving(wanted) };
        let components = lossy::decode(bytes, parts, is_late)?;
        if components.size != size {
            return Err(Failure::Corrupt("header and decoder disagree about the size"));
        }

        let came = components.came.clone();
        let Some(alpha) = self.chunks.alpha else {
            let planes = components.planes.into_iter().map(plane).collect();
            let picture = Picture::Planes(Planes { model: Model::VideoYCbCr, planes });
            return Ok(Still { picture, came });
        };
        let alpha = alpha::decode(alpha, size).map_err(Failure::Corrupt)?;
        if is_late() {
            return Err(Failure::Late);
        }
        Ok(Still { picture: Picture::Whole(rgba::join(&components, &alpha)), came })
    }

    /// Opens a lossless picture of `size`.
    pub(crate) fn lossless(&self, size: Dimensions) -> Result<Lossless<'a>, Failure> {
        let bytes = self.chunks.lossless.ok_or(Failure::Corrupt("no lossless picture"))?;
        let stream = lossless::Stream::open(bytes).map_err(Failure::Corrupt)?;
        if stream.size() != size {
            return Err(Failure::Corrupt("header and decoder disagree about the size"));
        }
        let features = self.chunks.features;
        let has_alpha = features.map_or(stream.has_alpha, |features| features & HAS_ALPHA != 0);
        Ok(Lossless { stream, has_alpha })
    }

    /// Returns true if there is a lossy picture.
    pub(crate) fn is_lossy(&self) -> bool {
        self.chunks.lossy.is_some()
    }

    /// Decodes a lossy picture of `size`, all of which must be there, to RGBA. `is_late` is asked before
    /// every row of macroblocks.
    pub(crate) fn decode_rgba(
        &self,
        size: Dimensions,
        is_late: &dyn Fn() -> bool,
    ) -> Result<Pixels, Failure> {
        let bytes = self.chunks.lossy.ok_or(Failure::Corrupt("no lossy picture"))?;
        if lossy::size(bytes) != Some(size) {
            return Err(Failure::Corrupt("a frame of another size than its picture"));
        }
        let components = lossy::decode(bytes, Wanted::Whole, is_late)?;
        if components.came.is_some() {
            return Err(Failure::Corrupt("the picture is cut"));
        }

        let alpha = match self.chunks.alpha {
            Some(alpha) => alpha::decode(alpha, size).map_err(Failure::Corrupt)?,
            None => vec![255; size.width as usize * size.height as usize],
        };
        Ok(rgba::join(&components, &alpha))
    }
}

fn plane(component: Component) -> Plane {
    let Component { width, height, samples, first, pixels } = component;
    let scale = 1.0 / pixels as f64;
    Plane {
        samples: Pixels {
            layout: Layout::Grey,
            width: width as u32,
            height: height as u32,
            data: samples,
        },
        extent: Extent {
            left: first.0 as f64,
            top: first.1 as f64,
            scale_x: scale,
            scale_y: scale,
        },
    }
}

/// Estimates the bytes that decoding a lossy picture of `size` holds at most, the result included.
pub(crate) fn memory_needed(
    size: Dimensions,
    file_bytes: u64,
    has_alpha: bool,
    wanted: &[Geometry],
) -> u64 {
    // For each macroblock of a row what those below depend on, and the filter's work.
    let of_row = u64::from(size.width.div_ceil(16)) * 96;
    let pixels = u64::from(size.width) * u64::from(size.height);
    if has_alpha {
        // The planes; then alpha as it is decoded, alone, and in the result.
        let alpha = lossless::memory_needed(size).max(4 * pixels) + pixels;
        return file_bytes + of_row + lossy::most_samples(size, Wanted::Whole) + alpha;
    }
    file_bytes + of_row + lossy::most_samples(size, Wanted::Serving(wanted))
}

/// Estimates the bytes that decoding a lossless picture of `size` holds at most, besides what is made
/// of its rows.
pub(crate) fn lossless_memory_needed(size: Dimensions, file_bytes: u64) -> u64 {
    file_bytes + lossless::memory_needed(size)
}
