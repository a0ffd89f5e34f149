//! JPEG, decoded no larger and no further than is wanted.
//!
//! Purpose: most of a gallery's time goes into the entropy decoding of photographs of which a small
//! picture is wanted. So each component is decoded at the scale it is needed in (`scale`), into a
//! plane that is resized on its own; coefficients that do not show at that scale are passed over
//! several at a time (`huffman`); of progressive files the scans that do not show are not read at
//! all (`progressive`); and what lies outside the wanted part becomes no samples (`walk`).
//!
//! `fallback` takes the pictures that are not grey or YCbCr.
//!
//! Lenient as decoders are: where the data is broken or ends, what came before is shown, and
//! decoding goes on at the next restart marker or scan. Every index is checked or masked, and all
//! arithmetic on the file's values wraps or is bounded, so no input panics.

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

use super::{
    Decoded, Extent, Layout, MAX_PROFILE_BYTES, Picture, Pixels, Plane, Planes, check_same_size,
};
use crate::domain::error::Result;
use crate::domain::record::Dimensions;
use crate::variant::budget::check_scans;
use crate::variant::header::{Header, JpegHeader};
use crate::variant::plan::Geometry;
use crate::variant::source::{Source, corrupt};

mod markers;
mod scale;
mod bits;
mod huffman;
mod idct;
mod block;
mod walk;
mod sequential;
mod progressive;
mod decoder;
mod fallback;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod writer;

use decoder::Decoder;
use markers::survey;
pub(super) use scale::{CHROMINANCE_TENTHS, LUMINANCE_TENTHS};

/// What is wanted of the picture, as [`decode`](super::decode) says it.
pub(super) fn decode(
    source: &Source<'_>,
    header: &Header,
    jpeg: JpegHeader,
    wanted: &[Geometry],
) -> Result<Decoded> {
    let file = source.read_all()?;
    let segments = survey(&file).map_err(corrupt)?;
    check_scans(header.stored, segments.scans().count() as u64)?;
    if !jpeg.scales {
        return fallback::decode(source, header, jpeg, &file[..segments.end]);
    }
    let frame = segments.frame.as_ref().ok_or_else(|| corrupt("no frame"))?;
    check_same_size(header, frame.width as usize, frame.height as usize)?;
    if !frame.is_regular() {
        return Err(corrupt("header and decoder disagree about the components"));
    }
    let parts = scale::parts(frame, wanted);
    let decoder = Decoder::new(frame, &parts, &segments, &file);
    let samples = match decoder.run(&|| source.is_late()) {
        Ok(Some(samples)) => samples,
        Ok(None) => return Err(corrupt("no picture data")),
        Err(_) => return Err(source.explain("deadline")),
    };
    let largest = scale::largest_sampling(frame);
    let planes = samples.into_iter().zip(&parts).zip(&frame.components);
    let planes: Vec<_> = planes
        .map(|((data, part), component)| {
            let axis = |first: u32, factor: u8, largest: u32| {
                let factor = f64::from(factor);
                let largest = f64::from(largest);
                (
                    f64::from(first) * 8.0 * largest / factor,
                    factor / largest * f64::from(part.n) / 8.0,
                )
            };
            let (left, scale_x) = axis(part.columns.0, component.h, largest.0);
            let (top, scale_y) = axis(part.rows.0, component.v, largest.1);
            let samples =
                Pixels { layout: Layout::Grey, width: part.width, height: part.height, data };
            Plane { samples, extent: Extent { left, top, scale_x, scale_y } }
        })
        .collect();
    let planes = match <[Plane; 3]>::try_from(planes) {
        Ok(all) => Planes::YCbCr(all),
        Err(mut other) => Planes::Grey(other.pop().ok_or_else(|| corrupt("no components"))?),
    };
    let profile = segments.profile(&file, MAX_PROFILE_BYTES);
    Ok(Decoded { picture: Picture::Planes(planes), profile })
}

/// The bytes that decoding holds at most, the planes it returns included.
pub(in crate::variant) fn memory_needed(
    stored: Dimensions,
    jpeg: JpegHeader,
    file_bytes: u64,
    wanted: &[Geometry],
) -> u64 {
    let (samples, per_block) = scale::most_samples(stored, jpeg.components, wanted);
    // The file, and an interval of it without stuffing.
    let bytes = samples + 2 * file_bytes;
    if !jpeg.holds_coefficients {
        return bytes;
    }
    // Two bytes for each coefficient held, and eight for each block.
    bytes + 2 * samples + 8 * (samples / per_block)
}
