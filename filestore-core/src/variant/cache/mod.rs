//! Variants that were made: the hottest in memory, the others on disk; and decoded pictures for
//! further sizes; contact sheets in memory.

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
