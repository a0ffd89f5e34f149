//! Gallery variants: all pixels of the service.
//!
//! # Purpose
//! Square WebP pictures of stored images, made once and kept in a cache. The engine knows no SQL
//! and no storage: a caller gives it a key, a way to open the blob and a way to ask whether the
//! blob is still current.
//!
//! | module | concern |
//! |---|---|
//! | `key`, `sheet` | the identity of a variant and of a contact sheet, their entity tags |
//! | `geometry`, `pixels` | the words of the stages: rectangles, planes, layouts |
//! | `jpeg` | a JPEG decoder that decodes no larger and no further than is wanted |
//! | `webp` | a decoder of WebP stills that decodes no further than is wanted |
//! | `lzw` | the compression of GIF and of many TIFFs |
//! | `pipeline` | from an open blob to its variants, stage by stage, on one thread |
//! | `cache` | results in memory and on disk, and decoded pictures for further sizes |
//! | `engine` | the pipeline on threads of its own, once for all callers that ask at the same time |
//! | `convert` | commands that make pictures of what is none, each in a sandbox |
//!
//! Each module uses those above it, never those below.

use bytes::Bytes;

mod key;
mod sheet;
mod geometry;
mod pixels;
mod jpeg;
mod webp;
mod lzw;
mod png;
mod pipeline;
mod cache;
mod engine;
pub(crate) mod convert;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

pub use crate::domain::variant::{Fit, Motion, VariantSize};
pub use cache::CacheReport;
pub use convert::{LAUNCHER_ARGUMENT, launch};
pub use engine::{CellSource, Source, VariantEngine};
pub use key::VariantKey;
pub use pipeline::{animate, probe, render};
pub use sheet::{Sheet, SheetCell, SheetKey};

/// The answer to a request for a variant. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variant {
    /// The picture is no larger than asked: the original's bytes are the answer, untouched.
    PassThrough {
        /// The media type that the bytes themselves show.
        mime: &'static str,
    },
    /// The bytes of a WebP file.
    WebP(Bytes),
}
