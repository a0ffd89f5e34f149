//! Animated variants: the frames of a file in, an animated WebP out, one frame at a time.
//!
//! # Purpose
//! GIF, APNG and animated WebP become one format, composed as browsers compose them. Held are the canvas,
//! one frame on its way, and the file that is made; never several decoded frames.
//!
//! | module | concern |
//! |---|---|
//! | `outline` | the number of frames, their pixels, how often they play; nothing is decoded for it |
//! | `limits` | the limits before anything is decoded, and the memory that is needed |
//! | `canvas` | what a frame draws, and what becomes of it before the next one |
//! | `frames` | the frames in any format; `gif`, `png` and `webp` are the formats |
//! | `file` | the WebP file: RFC 9649, section 2.7 |
//! | `clock` | the processor time of the work |
//! | `render` | all of these in their order |
//!
//! # As browsers do
//! A frame of 10 ms or less is shown for 100 ms, in every format. A GIF that says "n more times" plays
//! n + 1 times. The background is transparent, whatever colour the file names. Of a file that ends early
//! or is damaged, the whole frames before that are shown.

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

pub use render::animate;
pub(crate) use render::{Animation, assess};
