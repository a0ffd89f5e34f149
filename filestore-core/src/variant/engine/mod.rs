//! The variant engine: caches, one flight for each key, and a pool of threads.
//!
//! # Purpose
//! The engine returns a variant from memory or from the disk. Otherwise it makes the variant once for all
//! waiting callers.
//!
//! # Locking
//! Look-ups in memory use the cache's own short locks. All other work runs in separate tasks without a lock
//! across an await. Three limits apply to the work (`pool`): the places for requests (`queue` and `threads`),
//! the memory of all running decoders, and the threads. Organizations share all three fairly. Turns and
//! memory are released only when the thread has finished its job, even if no caller waits for it.
//!
//! # Staleness
//! A caller removes a file's variants *after* its record has changed. The engine first publishes a result,
//! and then checks it against the record. Either the check sees the change, and the entry is removed. Or the
//! change comes later, and its removal finds the entry.

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
