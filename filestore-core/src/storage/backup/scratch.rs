//! Files on their way to or from a provider: a directory in the data directory for each run.
//!
//! # Crash safety
//! What a process that was killed has left goes when the data directory is opened.

use std::fs;
use std::path::{Path, PathBuf};

use super::directory::make_directory;
use crate::domain::error::Result;
use crate::domain::id::SnapshotId;

/// A directory, removed when it is dropped.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the directory of a run below `parent`.
    pub(super) fn make(parent: &Path, run: SnapshotId) -> Result<Self> {
        let path = parent.join(run.to_string());
        make_directory(&path)?;
        Ok(Self(path))
    }

    /// Returns the path of a file in it.
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
