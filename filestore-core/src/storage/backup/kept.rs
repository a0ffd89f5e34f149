//! The contents of all finished snapshots, read in parallel in the order of their digests.

use super::content::Stored;
use super::manifest::Manifest;
use crate::domain::error::Result;
use crate::domain::id::Sha256;

/// The contents of snapshots. The code reads all manifests in parallel, to use little memory. Blocks.
pub(super) struct Kept {
    manifests: Vec<(Manifest, Option<Stored>)>,
}

impl Kept {
    pub(super) fn open(manifests: Vec<Manifest>) -> Result<Self> {
        let mut kept = Self { manifests: Vec::with_capacity(manifests.len()) };
        for mut manifest in manifests {
            let first = next_held(&mut manifest)?;
            kept.manifests.push((manifest, first));
        }
        Ok(kept)
    }

    /// Returns true if a snapshot contains the digest. Call it with ascending digests.
    pub(super) fn holds(&mut self, sha256: Sha256) -> Result<bool> {
        Ok(!self.all_of(sha256)?.is_empty())
    }

    /// Returns the content of a digest from each snapshot. Call it with ascending digests.
    pub(super) fn all_of(&mut self, sha256: Sha256) -> Result<Vec<Stored>> {
        let mut all = Vec::new();
        for (manifest, next) in &mut self.manifests {
            while next.is_some_and(|at| at.expected.sha256.0 < sha256.0) {
                *next = next_held(manifest)?;
            }
            all.extend(next.filter(|at| at.expected.sha256 == sha256));
        }
        Ok(all)
    }

    /// Reads the manifests to their ends. A damaged manifest can name more contents than it shows.
    pub(super) fn drain(&mut self) -> Result<()> {
        for (manifest, next) in &mut self.manifests {
            while next.is_some() {
                *next = next_held(manifest)?;
            }
        }
        Ok(())
    }
}

/// Returns the next content that a snapshot contains.
pub(super) fn next_held(manifest: &mut Manifest) -> Result<Option<Stored>> {
    while let Some(entry) = manifest.next_entry()? {
        if let Some(stored) = entry.stored() {
            return Ok(Some(stored));
        }
    }
    Ok(None)
}
