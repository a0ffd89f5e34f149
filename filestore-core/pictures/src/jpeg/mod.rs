//! A JPEG decoder in safe Rust. The decoder reads only the parts, and only at the size, that a variant needs.
//!
//! # Purpose
//! A gallery spends most of its time on the entropy decoding of photographs, although it needs only small
//! pictures. zune-jpeg decodes every picture at full size, and libjpeg-turbo needs an assembler. This decoder
//! decodes each component at the scale that the variant needs. The components are resized separately, and
//! become RGB only at the target's size.
//!
//! # A JPEG in five minutes
//! A picture is stored as *components*: luminance, and two of chrominance that often have half its size
//! (`sampling`). Each component consists of *blocks* of 8×8 samples. A block is stored as 64 *coefficients*
//! of a cosine transform (DCT). The first coefficient (*DC*) is the block's mean. The other coefficients
//! (*AC*) add finer and finer detail, in *zigzag* order.
//!
//! The encoder divides the coefficients by a *quantization* table, so that most become 0. The encoder then
//! writes the coefficients as *Huffman* codes. Each code contains a number of zeros to skip, and a value. A
//! *scan* is a run of such codes.
//!
//! In a *sequential* file, a scan contains whole blocks, in the order of *MCUs* (minimum coded units: the
//! blocks of all components for one patch of the picture). In a *progressive* file, there are many scans.
//! Each contains a *band* of the coefficients, and later scans refine earlier scans by one bit each. *Restart
//! markers* cut a scan into independent intervals.
//!
//! # Modules
//! 1. `markers` lists the file's segments before decoding. Only the complete list shows which scans are worth
//!    reading.
//! 2. `scale` computes which part of each component is decoded, and at which size. An N×N transform of a
//!    block's lowest coefficients is the block at N/8 of its size, for N from 1 to 8.
//! 3. `decoder` processes tables and scans, and `walk` computes the order of the blocks. Blocks outside the
//!    wanted part produce no samples.
//! 4. `bits` and `huffman` read codes. One look-up skips several coefficients that are not visible at the
//!    scale.
//! 5. `sequential` turns each block into samples at once (`block`, `idct`). `progressive` holds the
//!    coefficients until the last scan. It does not read scans and refinements that are not visible.
//!
//! # Limits
//! Decodes grey, YCbCr, RGB and four inks in 8 bits with Huffman coding, in any sampling. Like other
//! decoders, it is lenient. If data is broken or ends, the picture shows the earlier data, and decoding
//! continues at the next restart marker or scan. Missing Huffman tables are replaced by the `standard`
//! tables.
//!
//! No input causes a panic. Every index is checked or masked, and all arithmetic on values from the file
//! wraps or is bounded.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "bit fields and samples; all numbers here come from 16 bits at most"
)]
#![expect(
    clippy::inline_always,
    reason = "measured: the loop over blocks must become one function"
)]

use crate::Dimensions;
use crate::geometry::{Extent, Geometry};
use crate::pixels::{Layout, Model, Pixels, Plane, Planes};

mod markers;
mod scale;
mod bits;
mod huffman;
mod standard;
mod idct;
mod block;
mod walk;
mod sequential;
mod progressive;
mod decoder;
mod tables;

#[cfg(test)]
pub(crate) mod tests;

use decoder::Decoder;
use markers::{FrameComponent, PROGRESSIVE, Segments, survey};
pub(crate) use scale::suffice;
use scale::{Part, largest_sampling, parts};
pub(crate) use tables::Tables;

/// A file and the list of its segments.
pub(crate) struct Jpeg<'a> {
    file: &'a [u8],
    segments: Segments,
}

/// The reason why a picture could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The file is invalid, or has no data.
    Corrupt(&'static str),
    /// The caller's deadline passed.
    Late,
}

impl<'a> Jpeg<'a> {
    /// Lists the segments of `file`. `Err` tells why the whole file is unreadable.
    pub(crate) fn survey(file: &'a [u8]) -> Result<Self, &'static str> {
        survey(file).map(|segments| Self { file, segments })
    }

    /// Counts the scans, without broken scans.
    pub(crate) fn scan_count(&self) -> usize {
        self.segments.scans().count()
    }

    /// Returns the frame's size, in pixels; `None` without a frame.
    pub(crate) fn size(&self) -> Option<Dimensions> {
        let frame = self.segments.frame.as_ref()?;
        Some(Dimensions { width: frame.width, height: frame.height })
    }

    /// Returns true if the frame is of a kind that is decoded, and has the components of `model`.
    pub(crate) fn is_of(&self, model: Model) -> bool {
        self.segments.frame.as_ref().is_some_and(|frame| frame.is_regular(model))
    }

    /// Estimates the bytes that decoding all of the picture holds at most.
    pub(crate) fn memory_needed(&self) -> u64 {
        let Some(frame) = &self.segments.frame else { return 0 };
        let outline = Outline {
            size: Dimensions { width: frame.width, height: frame.height },
            components: u8::try_from(frame.components.len()).unwrap_or(u8::MAX),
            holds_coefficients: frame.marker == PROGRESSIVE,
            sampling: Sampling::Mixed,
        };
        memory_needed(outline, self.file.len() as u64, &[])
    }

    /// Joins the parts of the ICC profile. `None` if there is no profile of at most `most_bytes`.
    pub(crate) fn profile(&self, most_bytes: usize) -> Option<Vec<u8>> {
        self.segments.profile(self.file, most_bytes)
    }

    /// Decodes the parts that serve all of `wanted`, which must lie within the frame. The frame's components
    /// must be the components of `model`. Calls `is_late` before every row of blocks.
    pub(crate) fn decode(
        &self,
        model: Model,
        wanted: &[Geometry],
        is_late: &dyn Fn() -> bool,
    ) -> Result<Planes, Failure> {
        let frame = self.segments.frame.as_ref().ok_or(Failure::Corrupt("no frame"))?;
        if !frame.is_regular(model) {
            return Err(Failure::Corrupt("header and decoder disagree about the components"));
        }

        let parts = parts(frame, model, wanted);
        let decoder = Decoder::new(frame, model, &parts, &self.segments, self.file);
        let samples = decoder.run(is_late).map_err(|_| Failure::Late)?;
        let samples = samples.ok_or(Failure::Corrupt("no picture data"))?;

        let largest = largest_sampling(frame);
        let planes = samples
            .into_iter()
            .zip(&parts)
            .zip(&frame.components)
            .map(|((data, part), component)| plane(data, part, *component, largest));
        Ok(Planes { model, planes: planes.collect() })
    }
}

fn plane(data: Vec<u8>, part: &Part, component: FrameComponent, largest: (u32, u32)) -> Plane {
    let (left, scale_x) = axis(part.columns.0, part.n, component.h, largest.0);
    let (top, scale_y) = axis(part.rows.0, part.n, component.v, largest.1);
    Plane {
        samples: Pixels { layout: Layout::Grey, width: part.width, height: part.height, data },
        extent: Extent { left, top, scale_x, scale_y },
    }
}

/// Returns the start of a plane along one axis, in stored pixels, and the number of samples for each stored
/// pixel. `first` is the first block, decoded to `n` samples.
fn axis(first: u32, n: u8, sampling: u8, largest: u32) -> (f64, f64) {
    let (sampling, largest) = (f64::from(sampling), f64::from(largest));
    (f64::from(first) * 8.0 * largest / sampling, sampling / largest * f64::from(n) / 8.0)
}

/// The facts from a file's header that determine the memory need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outline {
    /// The frame's size, in pixels.
    pub(crate) size: Dimensions,
    pub(crate) components: u8,
    /// True if all coefficients stay in memory until the last scan.
    pub(crate) holds_coefficients: bool,
    pub(crate) sampling: Sampling,
}

/// The sampling of a frame's components, as far as it affects the memory need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampling {
    /// No chrominance component is sampled more densely than the other components. All are reduced to about
    /// the requested size.
    Usual,
    /// Some components can be decoded far larger than the variant needs.
    Mixed,
}

/// Returns an upper bound for the memory of decoding, in bytes, including the returned planes.
pub(crate) fn memory_needed(outline: Outline, file_bytes: u64, wanted: &[Geometry]) -> u64 {
    let scale::Most { samples, per_block } = scale::most_samples(outline, wanted);

    // The file, and an interval of it without stuffing.
    let bytes = samples + 2 * file_bytes;
    if !outline.holds_coefficients {
        return bytes;
    }
    // Two bytes for each coefficient held, and eight for each block.
    bytes + 2 * samples + 8 * (samples / per_block)
}
