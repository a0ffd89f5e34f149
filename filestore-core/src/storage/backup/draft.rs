//! The files of a snapshot in progress, and the scratch directory of a run.
//!
//! Files on their way to or from a provider are in a scratch directory below the data directory.
//!
//! # Crash safety
//! Opening the data directory removes the leftovers of killed processes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::copy::{self, Copying};
use super::files::{BACKING_UP, SYNCS_EACH, full, make_directory, new_file};
use crate::domain::error::{Error, Result};
use crate::domain::id::SnapshotId;

/// A snapshot in progress.
#[derive(Debug)]
pub struct Draft {
    /// The snapshot's id.
    pub id: SnapshotId,
    /// The path for the copy of the database, a new file.
    pub database: PathBuf,
    /// The path for the manifest, a new file.
    pub manifest: PathBuf,
    /// The directory of these files, if they are not in their final place.
    pub(super) _scratch: Option<Scratch>,
}

impl Draft {
    /// Computes the digest of the database copy. No connection to the copy can be open. Blocks.
    pub fn digest_database(&self) -> Result<Copying> {
        let file = File::open(&self.database).map_err(|error| Error::io(BACKING_UP, error))?;
        if SYNCS_EACH {
            file.sync_all().map_err(|error| Error::io(BACKING_UP, error))?;
        }
        copy::digest_of_disk(&file, &mut Vec::new()).map_err(|error| Error::io(BACKING_UP, error))
    }

    /// Creates the file of the manifest. Blocks.
    pub fn make_manifest(&self) -> Result<File> {
        new_file(&self.manifest).map_err(|error| full(Error::io(BACKING_UP, error)))
    }
}

/// A copy of a database at a local path.
#[derive(Debug)]
pub struct DatabaseFile {
    /// The path.
    pub path: PathBuf,
    /// The file's directory, if this is not its final place.
    pub(super) _scratch: Option<Scratch>,
}

/// A directory that is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Creates the directory of a run below `parent`.
    pub(super) fn make(parent: &Path, run: SnapshotId) -> Result<Self> {
        let path = parent.join(run.to_string());
        make_directory(&path)?;
        Ok(Self(path))
    }

    /// Returns the path of a file in this directory.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "files of a snapshot stay until the next start");
        }
    }
}
