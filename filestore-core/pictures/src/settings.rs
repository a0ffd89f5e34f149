//! The limits for the work on one picture, and the quality of the result.

use std::time::Duration;

/// Settings for a call: the quality of the result, and the limits for the work.
///
/// ```
/// let mut settings = filestore_pictures::Settings::default();
/// settings.quality = 70.0;
/// settings.limits.max_pixels = 20_000_000;
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// WebP quality, from 0 to 100 (default 80).
    pub quality: f32,
    /// The limits for the work on one picture.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self { quality: 80.0, limits: Limits::default() }
    }
}

/// Limits for the work on one picture.
///
/// The crate checks sizes and memory from the header, before it decodes a pixel. During the work, it checks
/// `deadline`, `animation.cpu` and `animation.max_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of pixels, width × height (default 50 million).
    pub max_pixels: u64,
    /// The maximum length of the longer side, in pixels (default 16384).
    pub max_side: u32,
    /// The maximum memory of one call, in bytes (default 512 MiB).
    pub memory_bytes: u64,
    /// The maximum duration of one call (default 15 seconds).
    pub deadline: Duration,
    /// Additional limits for animations.
    pub animation: AnimationLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_pixels: 50_000_000,
            max_side: 16_384,
            memory_bytes: 512 << 20,
            deadline: Duration::from_secs(15),
            animation: AnimationLimits::default(),
        }
    }
}

/// Limits for an animation. These limits apply in addition to [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnimationLimits {
    /// The maximum number of frames (default 1000).
    pub max_frames: u32,
    /// The maximum number of pixels in all frames together (default 500 million). Each frame counts as a
    /// whole canvas, because the crate resizes the whole canvas for it.
    pub max_pixels: u64,
    /// The maximum processor time (default 10 seconds). The [`deadline`](Limits::deadline) of the whole call
    /// applies as well.
    pub cpu: Duration,
    /// The maximum size of the resulting file, in bytes (default 16 MiB).
    pub max_bytes: u64,
}

impl Default for AnimationLimits {
    fn default() -> Self {
        Self {
            max_frames: 1000,
            max_pixels: 500_000_000,
            cpu: Duration::from_secs(10),
            max_bytes: 16 << 20,
        }
    }
}
