//! Caches: the most requested variants in memory, all variants on disk, decoded pictures for further sizes,
//! and contact sheets in memory.

mod caches;
mod disk;
mod memory;
mod memory_files;
mod retained;
mod sheets;
mod weighed;

pub use caches::CacheReport;
pub(crate) use caches::{Caches, HasRoom};
pub(crate) use sheets::Lasting;
