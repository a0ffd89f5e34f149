//! The lossy bitstream: a VP8 key frame (RFC 6386).
//!
//! # VP8 in five minutes
//! A picture is stored as luminance and two components of chrominance of half its size, in *macroblocks* of
//! 16×16 pixels, row by row. A macroblock is *predicted* from the decoded samples around it, as a whole or in
//! *subblocks* of 4×4.
//!
//! The error of the prediction (the *residue*) is stored as *coefficients* of 4×4 blocks, like in a JPEG. The
//! means of luminance can have their own block. An arithmetic coder writes all values as *decisions* (yes or
//! no, with a known probability). The first *partition* contains the prediction modes. One or more further
//! partitions contain the coefficients, which take most of the file and most of the time.
//!
//! # Modules
//! 1. `frame` reads the header. `tables` contains the constants that all pictures share.
//! 2. `decoder` processes the macroblocks. `modes` and `tokens` read them from `bools`, and `patch` computes
//!    their samples with `transform`.
//! 3. `output` writes the macroblock to the planes, reduced while it is in the first-level cache. Macroblocks
//!    outside the wanted part produce no samples, and rows below it are not read.
//! 4. `filter` then smooths edges, if this is visible.
//!
//! The decoder must compute every sample, even for a small variant, because other samples are predicted from
//! it.

use std::ops::Range;

use crate::Dimensions;
use crate::geometry::Geometry;

mod tables;
mod bools;
mod frame;
mod modes;
mod tokens;
mod transform;
mod patch;
mod scale;
mod output;
mod filter;
mod decoder;

#[cfg(test)]
mod tests;

use decoder::{Decoded, Decoder, Late};
use frame::Frame;
use scale::parts;
pub(super) use scale::{Wanted, most_samples};

use super::Failure;

/// The decoded components of a picture: luminance, and two of chrominance at half the size.
pub(super) struct Components {
    pub(super) size: Dimensions,
    /// The stored rows that arrived, if some wanted rows are missing.
    pub(super) arrived: Option<Range<u32>>,
    pub(super) planes: [Component; 3],
}

/// The samples of one component. The samples can show a part of the component, and can be reduced.
pub(super) struct Component {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) samples: Vec<u8>,
    /// The first visible pixel of the stored picture, across and down.
    pub(super) first: (usize, usize),
    /// The number of stored pixels for each sample, across and down.
    pub(super) pixels: usize,
}

/// Returns the size of the frame in `bytes`. `None` if there is no frame.
pub(super) fn size(bytes: &[u8]) -> Option<Dimensions> {
    Frame::read(bytes).ok().map(|frame| frame.size)
}

/// Decodes the frame in `bytes` as far as `wanted` needs it. Calls `is_late` before every row of macroblocks.
pub(super) fn decode(
    bytes: &[u8],
    wanted: Wanted<'_>,
    is_late: &dyn Fn() -> bool,
) -> Result<Components, Failure> {
    let frame = Frame::read(bytes).map_err(Failure::Corrupt)?;
    let size = frame.size;
    if size.width == 0 || size.height == 0 {
        return Err(Failure::Corrupt("a side of 0 pixels"));
    }

    let parts = parts(size, wanted);
    let samples = Decoder::new(frame, &parts).run(is_late).map_err(|Late| Failure::Late)?;
    let Decoded { samples, rows } = samples.ok_or(Failure::Corrupt("no picture data"))?;
    let arrived = (rows < parts.all[0].rows.1).then(|| 0..size.height.min(16 * rows as u32));

    let mut planes = samples.into_iter().zip(parts.all.iter().zip([16, 8, 8]));
    let planes = [(); 3].map(|()| {
        let (samples, (part, side)) = planes.next().expect("as many planes as parts");
        Component {
            width: part.width,
            height: part.height,
            samples,
            first: (16 * part.columns.0, 16 * part.rows.0),
            pixels: part.reduction * 16 / side,
        }
    });
    Ok(Components { size, arrived, planes })
}
