//! Gallery variants: all pixels of the service.
//!
//! Purpose: square WebP pictures of stored images, made once and kept in a cache. The engine knows
//! no SQL and no storage: it is given a key, a way to open the blob and a way to ask whether the
//! blob is still current.
//!
//! The way of a variant, each stage in its own module:
//!
//! | stage | module | what it does |
//! |---|---|---|
//! | header | `header` | format, size, orientation and memory need, from a few hundred bytes |
//! | plan | `plan` | pure geometry: pass through, or which square of the picture becomes which size |
//! | budget | `budget` | the limits, before anything is decoded |
//! | decode | `decode` | the picture's pixels, perhaps already scaled down |
//! | resize | `resize` | the planned square at the planned size |
//! | finish | `color`, `orient` | sRGB, and the right way up; on the small picture, where it is cheap |
//! | encode | `encode` | lossy WebP without metadata |
//!
//! `cache` holds the results in memory and on disk; `engine` runs all that on threads of its own,
//! once for all who ask at the same time, from a kept picture (`stock`) if there is one; `eager`
//! does so before anyone asks.

use std::fmt::Write as _;

use bytes::Bytes;
use sha2::{Digest, Sha256 as Sha256Hasher};

use crate::domain::id::{FileId, OrganizationId, Sha256};

mod plan;
mod orient;
mod source;
mod header;
mod probe;
mod budget;
mod decode;
mod resize;
mod stock;
mod color;
#[expect(unsafe_code, reason = "foreign calls, all in this one module")]
mod libwebp;
mod encode;
mod render;
mod cache;
mod pool;
mod flight;
mod engine;
mod eager;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod golden_tests;

pub use crate::domain::variant::{Fit, VariantSize};
pub use cache::CacheReport;
pub use engine::VariantEngine;
pub use probe::probe;
pub use render::render;

/// The version of the rendering: part of every key, so that a change of the recipe (another
/// filter, another encoder setting) makes new variants instead of serving old ones.
const RECIPE: u32 = 3;

/// What one variant is: the same key always means the same picture.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VariantKey {
    /// Whose file it is. In the key, so that organizations share nothing.
    pub organization_id: OrganizationId,
    /// The file.
    pub file_id: FileId,
    /// The digest of the blob.
    pub sha256: Sha256,
    /// The side of the square.
    pub size: VariantSize,
    /// How the picture fills it.
    pub fit: Fit,
}

impl VariantKey {
    /// The entity tag, weak: `W/"<32 hexadecimal digits>"`. It needs no picture, so a conditional
    /// request is answered without decoding anything.
    pub fn etag(&self) -> String {
        format!("W/\"{}\"", self.digest().to_hex())
    }

    fn digest(&self) -> KeyDigest {
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
        let sum = hasher.finalize();
        let mut digest = [0; 16];
        digest.copy_from_slice(&sum[..16]);
        KeyDigest(digest)
    }
}

/// The first 128 bits of a key's SHA-256: the name of its entry on disk and its entity tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct KeyDigest([u8; 16]);

impl KeyDigest {
    fn to_hex(self) -> String {
        self.0.iter().fold(String::with_capacity(32), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String cannot fail");
            text
        })
    }

    fn from_hex(text: &str) -> Option<Self> {
        let digits =
            text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let bits = u128::from_str_radix(text, 16).ok().filter(|_| digits)?;
        Some(Self(bits.to_be_bytes()))
    }
}

/// What a request for a variant is answered with. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variant {
    /// The picture is no larger than asked: the original's bytes are the answer, untouched.
    PassThrough {
        /// The media type the bytes themselves show.
        mime: &'static str,
    },
    /// A WebP file.
    WebP(Bytes),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::Timestamp;

    #[test]
    fn every_part_of_the_key_changes_the_entity_tag() {
        let size = |text| VariantSize::from_path(text, text).unwrap();
        let key = VariantKey {
            organization_id: "7".parse().unwrap(),
            file_id: FileId::generate(Timestamp::from_millis(1)),
            sha256: Sha256([1; 32]),
            size: size("200"),
            fit: Fit::Cover,
        };
        let others = [
            VariantKey { organization_id: "8".parse().unwrap(), ..key.clone() },
            VariantKey { file_id: FileId::generate(Timestamp::from_millis(1)), ..key.clone() },
            VariantKey { sha256: Sha256([2; 32]), ..key.clone() },
            VariantKey { size: size("250"), ..key.clone() },
            VariantKey { fit: Fit::Inside, ..key.clone() },
        ];
        assert_eq!(key.etag(), key.clone().etag());
        assert!(key.etag().starts_with("W/\"") && key.etag().len() == 36, "{}", key.etag());
        for other in others {
            assert_ne!(key.etag(), other.etag(), "{other:?}");
        }
    }
}
