//! Animated variants: reads an animated file, and writes an animated WebP, one frame at a time.
//!
//! # Purpose
//! GIF, APNG and animated WebP become one format, composed like in browsers. Memory contains the canvas, one
//! frame in progress and the resulting file, but never several decoded frames.
//!
//! | module | task |
//! |---|---|
//! | `outline` | counts frames, pixels and repetitions without decoding |
//! | `limits` | checks the limits before decoding, and estimates the memory |
//! | `canvas` | draws frames, and disposes of them before the next frame |
//! | `frames` | reads frames of any format. The formats are `gif`, `png` and `webp` |
//! | `file` | writes the WebP file: RFC 9649, section 2.7 |
//! | `clock` | measures the processor time |
//! | `render` | runs all of these in order |
//!
//! # Compatibility with browsers
//! A frame of 10 ms or less lasts 100 ms, in every format. A GIF that says "n more times" plays n + 1 times.
//! The background is transparent, even if the file names a colour. If a file ends early or is damaged, the
//! animation ends after the last whole frame.

mod outline;
mod limits;
mod canvas;
mod frames;
mod gif;
mod png;
mod webp;
mod file;
mod clock;
mod render;

#[cfg(test)]
mod tests;

pub(crate) use png::first_frame as first_png_frame;
pub use render::{Animation, animate, assess};
