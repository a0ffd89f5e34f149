//! The fingerprint of a request's content, which recognizes a repeated request.

use sha2::{Digest, Sha256 as Hasher};

/// A digest of a request's fields. Each field includes its length, so that different requests have different
/// inputs.
#[derive(Debug, Default)]
pub(super) struct Fingerprint(Hasher);

impl Fingerprint {
    pub(super) fn field(&mut self, value: Option<&str>) {
        match value {
            None => self.0.update([0]),
            Some(text) => {
                self.0.update([1]);
                self.0.update((text.len() as u64).to_le_bytes());
                self.0.update(text);
            }
        }
    }

    pub(super) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}
