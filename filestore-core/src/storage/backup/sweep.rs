//! Removing the bytes that no snapshot names any more.

use std::fs;
use std::io;
use std::path::Path;

use super::directory::BackupDirectory;
use super::intake::INCOMING;
use super::manifest::{EntryKind, Manifest};
use crate::domain::error::{Error, Result};
use crate::domain::id::Sha256;

const SWEEPING: &str = "removing old bytes";

/// The digests that the kept snapshots hold, in order and one manifest beside the other.
struct Kept {
    manifests: Vec<(Manifest, Option<Sha256>)>,
}

impl Kept {
    fn open(manifests: Vec<Manifest>) -> Result<Self> {
        let mut kept = Self { manifests: Vec::with_capacity(manifests.len()) };
        for mut manifest in manifests {
            let first = next_held(&mut manifest)?;
            kept.manifests.push((manifest, first));
        }
        Ok(kept)
    }

    /// Tells whether a kept snapshot holds the digest. Digests are asked for in their order.
    fn holds(&mut self, sha256: Sha256) -> Result<bool> {
        let mut is_held = false;
        for (manifest, next) in &mut self.manifests {
            while let Some(at) = *next
                && at.0 < sha256.0
            {
                *next = next_held(manifest)?;
            }
            is_held |= *next == Some(sha256);
        }
        Ok(is_held)
    }

    /// Reads the manifests to their ends: one that is damaged may name more than it shows.
    fn drain(&mut self) -> Result<()> {
        for (manifest, next) in &mut self.manifests {
            while next.is_some() {
                *next = next_held(manifest)?;
            }
        }
        Ok(())
    }
}

fn next_held(manifest: &mut Manifest) -> Result<Option<Sha256>> {
    while let Some(entry) = manifest.next_entry()? {
        if entry.kind == EntryKind::Held {
            return Ok(Some(entry.sha256));
        }
    }
    Ok(None)
}

impl BackupDirectory {
    /// Removes all bytes that no finished snapshot holds, those of runs that broke off included; calls
    /// `removed` with the size of each. What was set aside stays while it is the last of a content that a
    /// snapshot holds. Nothing is removed if a manifest cannot be read to its end.
    pub fn sweep(&self, mut removed: impl FnMut(u64)) -> Result<()> {
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

    /// Opens the contents that finished snapshots hold.
    fn kept(&self) -> Result<Kept> {
        let ids = self.snapshots()?;
        Kept::open(ids.into_iter().map(|id| self.manifest(id)).collect::<Result<_>>()?)
    }
}

/// Removes a file; returns its size.
fn remove(path: &Path) -> Result<u64> {
    let size = fs::metadata(path).map_or(0, |found| found.len());
    fs::remove_file(path).map_err(|error| Error::io(SWEEPING, error))?;
    Ok(size)
}

/// Lists the digests in a directory, in order, and removes what was to replace one of them when a run
/// broke off. Foreign names are left alone.
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
