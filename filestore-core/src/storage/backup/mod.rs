//! Snapshots: in a directory, or at a provider.
//!
//! Both are a [`Destination`], beneath which they differ. The directory:
//!
//! ```text
//! filestore-backup                 marks the directory: the version of the format, and its id
//! filestore-backup.lock            held by the one process that works on the directory
//! blobs/<2 digits>/<sha-256>       bytes, by their digest: equal bytes are there once
//! damaged/<sha-256>                bytes that were found not to have that digest
//! snapshots/<id>/metadata.sqlite3  the copy of the database
//! snapshots/<id>/manifest.jsonl    what the snapshot consists of, see `manifest`
//! ```
//!
//! What a provider has is in `bucket`.
//!
//! # Crash safety
//! A snapshot is there once its manifest has its name, which it gets last: after the bytes, the copy of
//! the database, the directories and the manifest itself are on the device.
//! The rest of a run that broke off is no snapshot; the bytes among it are read and compared before
//! a later one counts on them, as a power cut may have left zeros.
//!
//! # Locking
//! One process at a time makes, reads or removes snapshots of a directory (`flock`). Within it, runs claim
//! the directory, see `runs`. A provider has no such lock, see `bucket::lease`.

mod destination;
mod opened;
mod scratch;
mod copy;
mod manifest;
mod kept;
mod marker;
mod runs;
mod directory;
mod on_disk;
mod intake;
mod damaged;
mod sweep;
mod look;
mod bucket;
mod restored;

#[cfg(test)]
mod contract;

use crate::domain::error::{Error, Result};
use crate::tasks;

pub use bucket::{BackupBucket, look_for_at, present_at_provider};
pub use copy::Copying;
pub use destination::{
    DatabaseFile, Destination, Draft, Found, FoundHow, OnDisk, Removed, RunClaim, RunKind, Stored,
    Wanted,
};
pub use directory::BackupDirectory;
pub use look::{Known, LookedFor, Present, look_for, present_at};
pub use manifest::{Entry, EntryKind, Manifest, ManifestWriter};
pub use opened::Opened;
pub use restored::RestoredDirectory;

/// Runs `work` on the blocking pool.
pub async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tasks::blocking(work).await.unwrap_or_else(|lost| Err(Error::internal(doing, lost)))
}
