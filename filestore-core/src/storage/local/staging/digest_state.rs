//! The state of a SHA-256 between two requests of a resumable upload.
//!
//! # Compatibility
//! The stored form begins with a tag that names the layout. A state with another tag, or of a layout that this
//! program reads differently, is not used: the bytes are hashed again from the disk.

use sha2::Digest;
use sha2::digest::common::hazmat::{SerializableState, SerializedState};

use crate::domain::id::Sha256;

/// The layout of `sha2` 0.11: eight words, the number of blocks, the rest of a block with its length.
const TAG: &[u8] = b"sha2-0.11 ";

/// The state of a SHA-256.
#[derive(Clone, Default)]
pub struct DigestState(sha2::Sha256);

impl DigestState {
    pub(super) fn of(hasher: sha2::Sha256) -> Self {
        Self(hasher)
    }

    pub(super) fn into_hasher(self) -> sha2::Sha256 {
        self.0
    }

    /// Returns the digest of the bytes so far.
    pub fn digest(&self) -> Sha256 {
        Sha256(self.0.clone().finalize().into())
    }

    /// Writes the state down.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = TAG.to_vec();
        bytes.extend_from_slice(&self.0.serialize());
        bytes
    }

    /// Reads a state; `None` for another layout.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let state = bytes.strip_prefix(TAG)?;
        let state: SerializedState<sha2::Sha256> = state.try_into().ok()?;
        sha2::Sha256::deserialize(&state).ok().map(Self).filter(|_| is_layout_known())
    }
}

/// Tests that a state goes on as it should: a library with another layout under the same tag does not.
fn is_layout_known() -> bool {
    let (first, second) = ([b'a'; 100], [b'b'; 100]);
    let mut whole = sha2::Sha256::new();
    whole.update(first);
    let Ok(mut halved) = sha2::Sha256::deserialize(&whole.serialize()) else { return false };
    whole.update(second);
    halved.update(second);
    whole.finalize() == halved.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_state_goes_on_at_every_offset() {
        let bytes: Vec<u8> = (0_u8..=255).collect();
        for cut in 0..=bytes.len() {
            let state = DigestState::of(sha2::Sha256::new_with_prefix(&bytes[..cut]));
            let mut read = DigestState::from_bytes(&state.to_bytes()).unwrap().into_hasher();
            read.update(&bytes[cut..]);
            assert_eq!(read.finalize(), sha2::Sha256::digest(&bytes), "{cut}");
        }
    }

    #[test]
    fn a_state_of_another_layout_is_not_used() {
        let good = DigestState::default().to_bytes();
        assert!(DigestState::from_bytes(&good).is_some());
        assert!(DigestState::from_bytes(&good[1..]).is_none());
        assert!(DigestState::from_bytes(&good[..good.len() - 1]).is_none());
        assert!(DigestState::from_bytes(b"").is_none());
    }
}
