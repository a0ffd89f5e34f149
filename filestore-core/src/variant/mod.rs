//! Gallery variants of the pictures in a store.
//!
//! # Purpose
//! Variants are square WebP pictures of stored images, made once by `filestore-pictures` and kept in a cache.
//! The engine does not know SQL or storage. A caller passes a key, a function that opens the blob, and a
//! function that tells whether the blob is still current.
//!
//! | module | task |
//! |---|---|
//! | `key`, `sheet` | the identity of variants and contact sheets, with their entity tags |
//! | `fair` | distributes turns and waiting places fairly among organizations |
//! | `pictures` (in builds without pictures: `no_pictures`) | adapts `filestore-pictures` to a store |
//! | `cache` | keeps results in memory and on disk, and decoded pictures for further sizes |
//! | `engine` | makes variants on its own threads, once for all concurrent callers |
//! | `convert` | runs commands that make pictures from other files, each in a sandbox |
//!
//! Each module uses modules above it in this table, never modules below it.

use bytes::Bytes;

mod key;
mod sheet;
mod fair;
#[cfg(feature = "pictures")]
mod pictures;
#[cfg(not(feature = "pictures"))]
#[path = "no_pictures.rs"]
mod pictures;
mod cache;
mod engine;
pub(crate) mod convert;

#[cfg(all(test, feature = "pictures"))]
mod fixtures;

pub use crate::domain::file::variant::{Fit, Motion, VariantSize};
pub use cache::CacheReport;
#[cfg(feature = "converters")]
pub use convert::{LAUNCHER_ARGUMENT, launch};
pub use engine::{CellSource, Source, VariantEngine};
pub use key::VariantKey;
pub(crate) use pictures::probe;
pub use sheet::{Sheet, SheetCell, SheetKey};

/// The result of a request for a variant. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variant {
    /// The picture is no larger than requested. Use the original's bytes, unchanged.
    PassThrough {
        /// The media type, detected from the bytes.
        mime: &'static str,
    },
    /// The bytes of a WebP file.
    WebP(Bytes),
}
