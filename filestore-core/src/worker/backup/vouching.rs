//! Reads the contents of a finished snapshot in parallel to a database.

use crate::domain::id::Sha256;
use crate::storage::backup::{Manifest, Stored};

/// The contents of a finished snapshot, in the order of their digests. Blocks.
pub(super) struct Vouching {
    manifest: Option<Manifest>,
    next: Option<Stored>,
}

impl Vouching {
    /// Begins to read a manifest. Without a manifest, or after a read error, no further content is found.
    pub(super) fn new(manifest: Option<Manifest>) -> Self {
        let mut vouching = Self { manifest, next: None };
        vouching.advance();
        vouching
    }

    /// Finds the content with this digest. Call it with ascending digests.
    pub(super) fn find(&mut self, sha256: Sha256) -> Option<Stored> {
        while self.next.is_some_and(|next| next.expected.sha256.0 < sha256.0) {
            self.advance();
        }
        self.next.filter(|next| next.expected.sha256 == sha256)
    }

    fn advance(&mut self) {
        self.next = None;
        let Some(manifest) = &mut self.manifest else { return };
        while let Ok(Some(entry)) = manifest.next_entry() {
            if let Some(stored) = entry.stored() {
                self.next = Some(stored);
                return;
            }
        }
    }
}
