//! The lossy bitstream: a VP8 key frame (RFC 6386).
//!
//! # VP8 in five minutes
//! A picture is stored as luminance and two components of chrominance of half its size, in
//! *macroblocks* of 16×16 pixels, row by row. A macroblock is *predicted* from the samples around
//! it that are already there, whole or in
//! *subblocks* of 4×4. What the prediction missed (the *residue*) is stored as *coefficients* of
//! 4×4 blocks, as in a JPEG; the means of luminance may have a block of their own. Everything is
//! written as *decisions* (yes or no, with a known probability) by an arithmetic coder: the first
//! *partition* has the modes of prediction, one or several others the coefficients, which are most
//! of the file and most of the time.
//!
//! # The way through the modules
//! 1. `frame` reads the header, with `tables` for what all pictures share.
//! 2. `decoder` goes through the macroblocks: `modes` and `tokens` read them out of `bools`,
//!    `patch` puts one together with `transform`.
//! 3. `output` takes the macroblock into the planes, reduced while it is in the nearest cache. What
//!    lies outside the wanted part becomes no samples; rows below it are not read.
//! 4. `filter` smooths edges afterwards, where that shows.
//!
//! Every sample must be made, even for a small variant: its neighbours are predicted from it.

use std::ops::Range;

use crate::domain::record::Dimensions;
use crate::variant::geometry::Geometry;

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
    /// The stored rows that came, if some of those that are wanted are missing.
    pub(super) came: Option<Range<u32>>,
    pub(super) planes: [Component; 3],
}

/// The samples of one component: a part of it, perhaps reduced.
pub(super) struct Component {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) samples: Vec<u8>,
    /// The first pixel of the stored picture that shows, across and down.
    pub(super) first: (usize, usize),
    /// The pixels of the stored picture for one sample, across and down.
    pub(super) pixels: usize,
}

/// Returns the size of the frame in `bytes`, if there is one.
pub(super) fn size(bytes: &[u8]) -> Option<Dimensions> {
    Frame::read(bytes).ok().map(|frame| frame.size)
}

/// Decodes the frame in `bytes` as far as `wanted` needs it. `is_late` is asked before every row of
/// macroblocks.
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
    let came = (rows < parts.all[0].rows.1).then(|| 0..size.height.min(16 * rows as u32));

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
    Ok(Components { size, came, planes })
}
