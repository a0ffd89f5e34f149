//! A JPEG decoder that decodes no larger and no further than is wanted. Safe Rust.
//!
//! # Purpose
//! Most of a gallery's time goes into the entropy decoding of photographs of which a small picture
//! is wanted. zune-jpeg decodes everything at full size; libjpeg-turbo needs an assembler. Here each
//! component is decoded at the scale it is needed in, into a plane that is resized on its own and
//! becomes RGB only at the target's size.
//!
//! # A JPEG in five minutes
//! A picture is stored as *components*: luminance, and two of chrominance that often have half its
//! size (`sampling`). Each component is cut into *blocks* of 8×8 samples, and each block is stored as
//! 64 *coefficients* of a cosine transform (DCT): the first (*DC*) is the block's mean, the others
//! (*AC*) add ever finer detail, in *zigzag* order. Coefficients are divided by a *quantization*
//! table, so that most become 0, and written as *Huffman* codes: how many zeros to pass over, and a
//! value. A *scan* is a run of such codes. In a *sequential* file one scan has whole blocks, in the
//! order of *MCUs* (minimum coded units: the blocks of all components for one patch of the picture). In a
//! *progressive* file many scans each have a *band* of the coefficients, and later ones refine
//! earlier ones by one bit each. *Restart markers* cut a scan into intervals that stand alone.
//!
//! # The way through the modules
//! 1. `markers` lists the file's segments, before anything is decoded: which scans are worth reading
//!    is known only when all are.
//! 2. `scale` says how much of each component is decoded, and how large: an N×N transform of a
//!    block's lowest coefficients is the block at N/8 of its size, for N from 1 to 8.
//! 3. `decoder` goes through tables and scans, with `walk` for the order of the blocks: what lies
//!    outside the wanted part becomes no samples.
//! 4. `bits` and `huffman` read codes. Coefficients that do not show at the scale are passed over
//!    several to a look-up.
//! 5. `sequential` turns each block into samples at once (`block`, `idct`). `progressive` holds the
//!    coefficients until the last scan; scans and refinements that do not show are not read.
//!
//! # Limits
//! Takes grey, YCbCr, RGB and four inks in 8 bits with Huffman coding, in any sampling. Lenient as
//! decoders are: where the data is broken or ends, what came before is shown, and decoding goes on at
//! the next restart marker or scan. Missing Huffman tables are the `standard` ones. Every index is checked or masked, and all arithmetic on the file's values wraps or is
//! bounded, so no input panics.

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

use crate::domain::record::Dimensions;
use crate::variant::geometry::{Extent, Geometry};
use crate::variant::pixels::{Layout, Model, Pixels, Plane, Planes};

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

#[cfg(test)]
pub(crate) mod tests;

use decoder::Decoder;
use markers::{FrameComponent, Segments, survey};
pub(crate) use scale::suffice;
use scale::{Part, largest_sampling, parts};

/// A file and the list of its segments.
pub(crate) struct Jpeg<'a> {
    file: &'a [u8],
    segments: Segments,
}

/// The reason why a picture was not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The file makes no sense, or has no data.
    Corrupt(&'static str),
    /// The caller said that time is over.
    Late,
}

impl<'a> Jpeg<'a> {
    /// Lists the segments of `file`. `Err` says what makes the whole of it unreadable.
    pub(crate) fn survey(file: &'a [u8]) -> Result<Self, &'static str> {
        survey(file).map(|segments| Self { file, segments })
    }

    /// Counts the scans, broken ones left out.
    pub(crate) fn scan_count(&self) -> usize {
        self.segments.scans().count()
    }

    /// Returns the size of the frame, in pixels; `None` without a frame.
    pub(crate) fn size(&self) -> Option<Dimensions> {
        let frame = self.segments.frame.as_ref()?;
        Some(Dimensions { width: frame.width, height: frame.height })
    }

    /// Puts the ICC profile together; `None` if there is none of at most `most_bytes`.
    pub(crate) fn profile(&self, most_bytes: usize) -> Option<Vec<u8>> {
        self.segments.profile(self.file, most_bytes)
    }

    /// Decodes the parts that serve all of `wanted`, which are within the frame, whose components are
    /// those of `model`. `is_late` is asked before every row of blocks.
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

/// Returns where a plane starts along one axis, in stored pixels, and its samples for each of
/// those. `first` is the first block, decoded to `n` samples.
fn axis(first: u32, n: u8, sampling: u8, largest: u32) -> (f64, f64) {
    let (sampling, largest) = (f64::from(sampling), f64::from(largest));
    (f64::from(first) * 8.0 * largest / sampling, sampling / largest * f64::from(n) / 8.0)
}

/// The facts of a file's header that decide over memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outline {
    /// The size of the frame, in pixels.
    pub(crate) size: Dimensions,
    pub(crate) components: u8,
    /// True if all coefficients are held until the last scan.
    pub(crate) holds_coefficients: bool,
    pub(crate) sampling: Sampling,
}

/// The sampling of a frame's components, in as far as it decides over memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampling {
    /// No component is sampled more densely than those that are not chrominance: all are reduced
    /// to about the size that is wanted.
    Usual,
    /// Some may be decoded far larger than the variant asks for.
    Mixed,
}

/// Estimates the bytes that decoding holds at most, the planes it returns included.
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
