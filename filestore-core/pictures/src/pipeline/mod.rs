//! The pipeline from the bytes of a picture to smaller pictures, one module for each stage.
//!
//! | stage | module | task |
//! |---|---|---|
//! | header | `header` | reads format, size, orientation and memory need from a few hundred bytes |
//! | plan | `plan` | computes the geometry: pass through, or which rectangle becomes which size |
//! | budget | `budget` | checks the limits before anything is decoded |
//! | decode | `decode` | decodes the picture's pixels, perhaps reduced |
//! | resize | `resize` | scales the planned rectangle to the planned size |
//! | finish | `color`, `orient` | converts to sRGB and turns upright, on the small picture, where this is cheap |
//! | encode | `encode` | writes lossy WebP without metadata |
//!
//! `render` runs the stages in this order. `retained` keeps a decoded picture for further sizes, and
//! `placeholder` makes its ThumbHash. `animation` makes one file from many frames, and `sheet` puts files
//! side by side. `image_file` reads the bytes, `incomplete` handles pictures that end early, and `guard`
//! catches panics of third-party decoders.
//!
//! A rendering uses one thread. A caller can lend it a second thread (`spare`), which reduces the rows of a
//! PNG while the first thread inflates the next rows.

pub(crate) mod image_file;
mod guard;
pub(crate) mod spare;
pub(crate) mod orient;
mod header;
pub(crate) mod probe;
pub(crate) mod plan;
pub(crate) mod budget;
mod decode;
mod incomplete;
mod resize;
mod color;
#[expect(unsafe_code, reason = "foreign calls, all in this one module")]
mod libwebp;
mod encode;
pub(crate) mod retained;
pub(crate) mod placeholder;
pub mod sheet;
pub(crate) mod render;
pub(crate) mod animation;
