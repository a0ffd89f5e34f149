//! The identity of a variant: its key, and the digest that names it on disk and in HTTP.

use sha2::{Digest, Sha256 as Sha256Hasher};

use crate::domain::file::variant::{Fit, Motion, VariantSize};
use crate::domain::id::{FileId, OrganizationId, Sha256};

/// The version of the rendering: part of every key, so that a change of the recipe (another
/// filter, another encoder setting) makes new variants instead of serving old ones.
pub(crate) const RECIPE: u32 = 8;

/// A variant's identity. The same key always means the same picture.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VariantKey {
    /// The file's organization. The organization is a part of the key, so that organizations share no
    /// variants.
    pub organization_id: OrganizationId,
    /// The file that the variant shows.
    pub file_id: FileId,
    /// The digest of the file's blob.
    pub sha256: Sha256,
    /// The square's side.
    pub size: VariantSize,
    /// Fit of the picture in the square.
    pub fit: Fit,
    /// Still or animated variant.
    pub motion: Motion,
}

impl VariantKey {
    /// Returns the weak entity tag: `W/"<32 hexadecimal digits>"`. The tag is computed without the picture,
    /// so a conditional request needs no decoding.
    pub fn etag(&self) -> String {
        format!("W/\"{:032x}\"", u128::from_be_bytes(self.digest().0))
    }

    /// Returns the key of the still variant.
    pub(crate) fn still(&self) -> Self {
        Self { motion: Motion::Still, ..self.clone() }
    }

    pub(crate) fn digest(&self) -> KeyDigest {
        let mut hasher = Sha256Hasher::new();
        hasher.update(b"filestore variant\0");
        hasher.update(RECIPE.to_le_bytes());
        hasher.update(self.organization_id.as_str());
        hasher.update([0]);
        hasher.update(self.file_id.to_bits().to_le_bytes());
        hasher.update(self.sha256.0);
        hasher.update(self.size.pixels().to_le_bytes());
        hasher.update([match self.fit {
            Fit::Cover => 0,
            Fit::Inside => 1,
        }]);
        if self.motion == Motion::Animated {
            hasher.update(b"animated");
        }

        let sum = hasher.finalize();
        let mut digest = [0; 16];
        digest.copy_from_slice(&sum[..16]);
        KeyDigest(digest)
    }
}

/// A key with its digest, which is computed once.
#[derive(Debug, Clone)]
pub(crate) struct DigestedKey {
    pub(crate) key: VariantKey,
    pub(crate) digest: KeyDigest,
}

impl From<VariantKey> for DigestedKey {
    fn from(key: VariantKey) -> Self {
        Self { digest: key.digest(), key }
    }
}

/// The first 128 bits of a key's SHA-256. The value is the name of the entry on disk, and the entity tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyDigest(pub(crate) [u8; 16]);

impl KeyDigest {
    pub(crate) fn to_hex(self) -> String {
        hex::encode(self.0)
    }

    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        (hex::encode(bytes) == text).then_some(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::clock::Timestamp;

    #[test]
    fn every_part_of_the_key_changes_the_entity_tag() {
        let size = |text| VariantSize::from_path(text, text).unwrap();
        let key = VariantKey {
            organization_id: "7".parse().unwrap(),
            file_id: FileId::generate(Timestamp::from_millis(1)),
            sha256: Sha256([1; 32]),
            size: size("200"),
            fit: Fit::Cover,
            motion: Motion::Still,
        };
        let others = [
            VariantKey { organization_id: "8".parse().unwrap(), ..key.clone() },
            VariantKey { file_id: FileId::generate(Timestamp::from_millis(1)), ..key.clone() },
            VariantKey { sha256: Sha256([2; 32]), ..key.clone() },
            VariantKey { size: size("250"), ..key.clone() },
            VariantKey { fit: Fit::Inside, ..key.clone() },
            VariantKey { motion: Motion::Animated, ..key.clone() },
        ];
        assert_eq!(key.etag(), key.clone().etag());
        assert!(key.etag().starts_with("W/\"") && key.etag().len() == 36, "{}", key.etag());
        for other in others {
            assert_ne!(key.etag(), other.etag(), "{other:?}");
        }
    }
}
