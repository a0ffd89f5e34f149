//! Checks the limits of an animation before decoding, and estimates the memory.

use super::outline::Outline;
use crate::error::{Result, too_large};
use crate::geometry::{Geometry, area};
use crate::pipeline::budget::check_size;
use crate::pipeline::header::{Format, Header};
use crate::settings::Limits;

/// Refuses an animation that exceeds its limits. The error contains the limit.
pub(super) fn check(header: &Header, outline: &Outline, limits: &Limits) -> Result<()> {
    check_size(header.stored, limits)?;

    let limits = &limits.animation;
    if outline.frames > limits.max_frames {
        let message = format!("the animation has more than {} frames", limits.max_frames);
        return Err(too_large(message).with_limit(limits.max_frames.into()));
    }
    if outline.pixels > limits.max_pixels {
        let message = format!(
            "the frames of the animation have more than {} pixels: {}",
            limits.max_pixels, outline.pixels
        );
        return Err(too_large(message).with_limit(limits.max_pixels));
    }
    Ok(())
}

/// Estimates the peak memory for the animated variant, in bytes (an upper bound). Returns an error if the
/// estimate exceeds the whole budget for decoding.
pub(super) fn memory_needed(
    header: &Header,
    outline: &Outline,
    wanted: Geometry,
    limits: &Limits,
) -> Result<u64> {
    // The canvas; beside it a premultiplied copy while it is resized, and what a frame covers.
    let canvas = 12 * area(header.stored);
    let frame = match &header.format {
        Format::Png(png) => area(header.stored) * u64::from(png.channels),
        // As a still (`budget::decode_bytes`), and the stored frame twice.
        Format::WebP(_) => 10 * area(header.stored) + 2 * outline.frame_bytes,
        _ => 0,
    };
    // The last picture shown, the next one and the changed part of it; the file, and its copy while it
    // grows, neither over the limit.
    let made = 12 * area(wanted.target) + 2 * limits.animation.max_bytes;

    let needed = canvas + frame + made + wanted.memory_bytes();
    if needed <= limits.memory_bytes {
        return Ok(needed);
    }
    Err(too_large(format!("the animation needs too much memory to decode: {needed} bytes"))
        .with_limit(limits.memory_bytes))
}
