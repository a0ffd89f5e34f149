//! From an open blob to its variants, stage by stage.
//!
//! | stage | module | concern |
//! |---|---|---|
//! | header | `header` | format, size, orientation and memory need, from a few hundred bytes |
//! | plan | `plan` | pure geometry: pass through, or which square of the picture becomes which size |
//! | budget | `budget` | the limits, before anything is decoded |
//! | decode | `decode` | the picture's pixels, perhaps already scaled down |
//! | resize | `resize` | the planned square at the planned size |
//! | finish | `color`, `orient` | sRGB, and the right way up; on the small picture, where it is cheap |
//! | encode | `encode` | lossy WebP without metadata |
//!
//! `render` runs the stages in this order; `retained` is a decoded picture that further sizes are
//! made of, and `sketch` its placeholder; `animation` makes one file of many frames, `mosaic` puts variants side by
//! side, and `blank` is the sheet of none. `image_file` reads the blob, `refusal` names what is wrong with a picture, `cut` shows
//! what came of one that ends early, and `guard` catches the panics of decoders that are not ours.
//!
//! A rendering has one thread. While one of the pool is idle, a rendering that a client waits for may have a second one
//! (`aside`): it reduces the rows of a PNG while the next ones are inflated.

pub(crate) mod refusal;
pub(crate) mod image_file;
mod guard;
pub(crate) mod aside;
pub(crate) mod orient;
mod header;
mod probe;
pub(crate) mod plan;
pub(crate) mod budget;
mod decode;
mod cut;
mod resize;
mod color;
#[expect(unsafe_code, reason = "foreign calls, all in this one module")]
mod libwebp;
mod encode;
mod blank;
pub(crate) mod retained;
pub(crate) mod sketch;
pub(crate) mod mosaic;
pub(crate) mod render;
pub(crate) mod animation;

pub use animation::animate;
pub use probe::probe;
pub use render::render;
