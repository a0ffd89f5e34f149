//! Removes the bytes that no snapshot names.

use std::fs;
use std::io;
use std::path::Path;

use super::directory::BackupDirectory;
use super::intake::INCOMING;
use super::kept::Kept;
use crate::domain::error::{Error, Result};
use crate::domain::id::Sha256;
use crate::tasks::step::{Step, reached};

const SWEEPING: &str = "removing old bytes";

impl BackupDirectory {
    /// Removes all bytes that no finished snapshot names, including leftovers of interrupted runs. Calls
    /// `removed` with the size of each. A damaged content stays while it is the last copy of a content that a
    /// snapshot names. Removes no bytes if a manifest cannot be read to its end.
    pub(super) fn remove_unheld(&self, removed: impl Fn(u64)) -> Result<()> {
        self.kept()?.drain()?;

        let mut kept = self.kept()?;
        let mut names = Vec::new();
        for prefix in 0..=u8::MAX {
            let directory = self.blobs_path().join(format!("{prefix:02x}"));
            list(&directory, &mut names)?;
            for sha256 in names.drain(..) {
                if !kept.holds(sha256)? {
                    removed(remove(&directory.join(sha256.to_hex()))?);
                }
            }
        }

        let mut kept = self.kept()?;
        for sha256 in self.damaged()? {
            if !kept.holds(sha256)? || self.blob_path(sha256).exists() {
                removed(remove(&self.damaged_path().join(sha256.to_hex()))?);
            }
        }
        Ok(())
    }

    /// Opens the contents of the finished snapshots.
    fn kept(&self) -> Result<Kept> {
        let ids = self.finished()?;
        Kept::open(ids.into_iter().map(|id| self.open_manifest(id)).collect::<Result<_>>()?)
    }
}

/// Removes a file and returns its size.
fn remove(path: &Path) -> Result<u64> {
    let size = fs::metadata(path).map_or(0, |found| found.len());
    fs::remove_file(path).map_err(|error| Error::io(SWEEPING, error))?;
    reached(Step::ContentSwept);
    Ok(size)
}

/// Lists the digests in a directory, in order. Removes replacement files of interrupted runs. Does not touch
/// foreign names.
pub(super) fn list(directory: &Path, names: &mut Vec<Sha256>) -> Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(SWEEPING, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| Error::io(SWEEPING, error))?;
        let path = entry.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let Some(sha256) = stem.and_then(|stem| stem.parse::<Sha256>().ok()) else { continue };

        match path.extension() {
            None => names.push(sha256),
            Some(extension) if extension == INCOMING => {
                fs::remove_file(&path).map_err(|error| Error::io(SWEEPING, error))?;
            }
            Some(_) => {}
        }
    }
    names.sort_unstable_by_key(|sha256| sha256.0);
    Ok(())
}
