//! The variant engine: caches in front, one flight for each key, a pool behind.
//!
//! # Purpose
//! Answers a variant from memory, else from disk, else makes it once for all callers that wait.
//!
//! # Locking
//! Look-ups in memory take the cache's own short locks; everything else runs in a task of its own
//! that holds no lock across an await. Work is bounded three times (`limits`): by the places for
//! requests (`queue` and `threads`), by the memory that all running decoders may hold together, and
//! by the threads. Places and memory are released when the thread has really ended its job, even if
//! nobody waits for it any more.
//!
//! # Staleness
//! A caller removes a file's variants *after* its record has changed. A result is published first
//! and checked against the record after that: either the check sees the change and the entry is
//! forgotten, or the change comes later and its removal finds the entry.

mod limits;
mod pool;
pub(crate) mod flight;
mod caller;
mod eager_queue;
mod shared;
mod request;
mod served;
mod variant_engine;
mod eager;
mod sketch;
mod sheet;
mod animated;

#[cfg(test)]
mod tests;

pub use caller::Source;
pub use sheet::CellSource;
pub use variant_engine::VariantEngine;
