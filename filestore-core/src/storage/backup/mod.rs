//! Snapshots in a directory.
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
//! # Crash safety
//! A snapshot is there once its manifest has its name, which it gets last: after the bytes, the copy of
//! the database, the directories and the manifest itself are on the device.
//! The rest of a run that broke off is no snapshot; the bytes among it are read and compared before
//! a later one counts on them, as a power cut may have left zeros.
//!
//! # Locking
//! One process at a time makes, reads or removes snapshots of a directory (`flock`). Within it, runs claim
//! the directory, see `runs`.

mod copy;
mod damaged;
mod directory;
mod intake;
mod look;
mod manifest;
mod marker;
mod restored;
mod runs;
mod sweep;

pub use copy::Copying;
pub use directory::{BackupDirectory, Presence};
pub use intake::{BlobIntake, Taken};
pub use look::{Found, Known, Present, look_for, present_at};
pub use manifest::{Entry, EntryKind, Manifest, ManifestWriter};
pub use restored::RestoredDirectory;
pub use runs::Sharing;
