//! A WebP decoder in safe Rust. The decoder reads only the parts, and only at the size, that a variant needs.
//!
//! # Purpose
//! image-webp decodes whole pictures with the loop filter, and converts them to RGB, before they are reduced
//! to a fraction. This decoder reduces the planes of a lossy picture while it decodes them. The planes are
//! resized separately, and become RGB only at the target's size, like in our JPEG decoder. A lossless picture
//! is returned row by row.
//!
//! # Modules
//! 1. `container` finds the chunks of a still picture in the file.
//! 2. `lossy` decodes the VP8 bitstream to planes.
//! 3. `alpha` decodes the alpha plane of a lossy picture, and `rgba` joins the two.
//! 4. `lossless` decodes the VP8L bitstream, and alpha planes that are stored as VP8L.
//!
//! image-webp decodes animated files.
//!
//! # Limits
//! Like browsers, the decoder is lenient. If the data ends, the caller gets the earlier rows, and their
//! number. If the picture is much reduced, the decoder skips the loop filter, see the figures in
//! `lossy/scale.rs`.
//!
//! No input causes a panic. Every index is checked or masked, and all arithmetic on values from the file
//! wraps or is bounded.

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

use crate::Dimensions;
use crate::geometry::{Extent, Geometry};
use crate::pixels::{Layout, Model, Picture, Pixels, Plane, Planes};

mod container;
mod lossy;
mod lossless;
mod alpha;
mod rgba;

#[cfg(test)]
mod tests;

use container::Chunks;
use lossy::{Component, Wanted};

/// A file, and the chunks of its picture.
pub(crate) struct WebP<'a> {
    chunks: Chunks<'a>,
}

/// A decoded picture.
#[derive(Debug)]
pub(crate) struct Still {
    pub(crate) picture: Picture,
    /// The stored rows that arrived, if some wanted rows are missing. Missing rows repeat the nearest row.
    pub(crate) arrived: Option<Range<u32>>,
}

/// The feature flag for alpha.
const HAS_ALPHA: u8 = 0x10;

/// A lossless picture, opened before its first row.
pub(crate) struct Lossless<'a> {
    stream: lossless::Stream<'a>,
    pub(crate) has_alpha: bool,
}

impl Lossless<'_> {
    /// Decodes the picture and passes each row to `taken`, until `taken` breaks. Each pixel has alpha in the
    /// highest byte, then red, green and blue. Returns the number of decoded rows. The number is smaller than
    /// the height if the file is truncated or damaged.
    pub(crate) fn rows(self, taken: impl FnMut(&[u32]) -> ControlFlow<()>) -> Result<u32, Failure> {
        self.stream.rows(taken).map_err(Failure::Corrupt)
    }
}

/// The reason why a picture could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The file is invalid, or has no data.
    Corrupt(&'static str),
    /// The caller's deadline passed.
    Late,
}

impl<'a> WebP<'a> {
    /// Lists the chunks of `file`, which can be truncated.
    pub(crate) fn survey(file: &'a [u8]) -> Self {
        Self { chunks: Chunks::of(file) }
    }

    /// Returns the ICC profile, unchanged.
    pub(crate) fn profile(&self) -> Option<&'a [u8]> {
        self.chunks.profile.filter(|profile| !profile.is_empty())
    }

    /// Returns the plane of alpha. A file that names its features has one only if it says so, as browsers
    /// take it; a frame of an animation names none.
    fn alpha(&self) -> Option<&'a [u8]> {
        let is_said = self.chunks.features.is_none_or(|features| features & HAS_ALPHA != 0);
        self.chunks.alpha.filter(|_| is_said)
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
        let parts = if self.alpha().is_some() { Wanted::Whole } else { Wanted::Serving(wanted) };
        let components = lossy::decode(bytes, parts, is_late)?;
        if components.size != size {
            return Err(Failure::Corrupt("header and decoder disagree about the size"));
        }

        let arrived = components.arrived.clone();
        let Some(alpha) = self.alpha() else {
            let planes = components.planes.into_iter().map(plane).collect();
            let picture = Picture::Planes(Planes { model: Model::VideoYCbCr, planes });
            return Ok(Still { picture, arrived });
        };
        let alpha = alpha::decode(alpha, size).map_err(Failure::Corrupt)?;
        if is_late() {
            return Err(Failure::Late);
        }
        Ok(Still { picture: Picture::Whole(rgba::join(&components, &alpha)), arrived })
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

    /// Returns true if the file contains a lossy picture.
    pub(crate) fn is_lossy(&self) -> bool {
        self.chunks.lossy.is_some()
    }

    /// Decodes a complete lossy picture of `size` to RGBA. Calls `is_late` before every row of macroblocks.
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
        if components.arrived.is_some() {
            return Err(Failure::Corrupt("the picture is cut"));
        }

        let alpha = match self.alpha() {
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

/// Returns an upper bound for the decoding memory of a lossy picture with this `size`, in bytes, including
/// the result.
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

/// Returns an upper bound for the decoding memory of a lossless picture with this `size`, in bytes. The
/// memory for the results made from its rows is extra.
pub(crate) fn lossless_memory_needed(size: Dimensions, file_bytes: u64) -> u64 {
    file_bytes + lossless::memory_needed(size)
}
