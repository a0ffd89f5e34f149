//! The limits of an animation, checked before anything is decoded, and the memory that it takes.

use super::outline::Outline;
use crate::domain::config::VariantConfig;
use crate::domain::error::Result;
use crate::variant::geometry::{Geometry, area};
use crate::variant::pipeline::budget::{check_size, render_bytes};
use crate::variant::pipeline::header::{Format, Header};
use crate::variant::pipeline::refusal::too_large;

/// Refuses an animation over the configured limits; the details carry the limit.
pub(super) fn check(header: &Header, outline: &Outline, config: &VariantConfig) -> Result<()> {
    check_size(header.stored, config)?;

    let limits = &config.animation;
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

/// Estimates the bytes that making the animated variant holds at its peak, at most. Refuses more than the
/// whole budget for decoding.
pub(super) fn memory_needed(
    header: &Header,
    outline: &Outline,
    wanted: Geometry,
    config: &VariantConfig,
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
    let made = 12 * area(wanted.target) + 2 * config.animation.max_bytes;

    let needed = canvas + frame + made + render_bytes(wanted);
    if needed <= config.decode_memory_bytes {
        return Ok(needed);
    }
    Err(too_large(format!("the animation needs too much memory to decode: {needed} bytes"))
        .with_limit(config.decode_memory_bytes))
}
