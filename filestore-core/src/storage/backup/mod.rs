//! Snapshots, in a directory or at a provider.
//!
//! Both kinds are a [`Destination`]. Their formats differ. The format of a directory:
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
//! `bucket` describes the format at a provider.
//!
//! # Crash safety
//! A snapshot exists once its manifest has its final name. The manifest gets this name last: after the bytes,
//! the copy of the database, the directories and the manifest itself are on the device. The leftovers of an
//! interrupted run are not a snapshot. A later snapshot reads and compares their bytes before it uses them,
//! because a power cut can leave zeros.
//!
//! # Locking
//! One process at a time creates, reads or removes snapshots of a directory (`flock`). Runs in this process
//! claim the directory, see `runs`. A provider has no such lock, see `bucket::lease`.

mod destination;
mod content;
mod draft;
mod opened;
mod copy;
mod files;
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
pub use content::{Found, FoundHow, OnDisk, Stored, Wanted};
pub use copy::Copying;
pub use destination::{Destination, Removed, RunClaim, RunKind};
pub use directory::BackupDirectory;
pub use draft::{DatabaseFile, Draft};
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
