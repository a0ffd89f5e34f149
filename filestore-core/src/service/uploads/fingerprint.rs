//! The fingerprint of a request's content, by which a repeated request is known.

use sha2::{Digest, Sha256 as Hasher};

/// A digest over a request's fields, each with its length, so that no two requests run together.
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
