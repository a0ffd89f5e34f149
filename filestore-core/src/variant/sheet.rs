//! A contact sheet: the identity of one, and one that was made.

use std::fmt::Write as _;

use bytes::Bytes;
use sha2::{Digest, Sha256 as Sha256Hasher};

use super::key::{KeyDigest, RECIPE};
use crate::domain::error::Error;
use crate::domain::id::{FileId, Sha256};
use crate::domain::sheet::{SheetGrid, SheetPlace};
use crate::domain::variant::Fit;

/// The identity of a sheet: the blobs that it shows, in their order. A replaced or deleted file, or a
/// file that the caller may not see, makes another key, so that no sheet is ever stale.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SheetKey {
    /// The cells.
    pub grid: SheetGrid,
    /// The way in which each picture fills its cell.
    pub fit: Fit,
    /// Each file with the digest of its blob; `None` where the caller sees no file.
    pub files: Vec<(FileId, Option<Sha256>)>,
}

impl SheetKey {
    /// Returns the digest that stands for the key while a sheet is made.
    pub(crate) fn digest(&self) -> KeyDigest {
        let mut digest = [0; 16];
        digest.copy_from_slice(&self.hasher().finalize()[..16]);
        KeyDigest(digest)
    }

    fn hasher(&self) -> Sha256Hasher {
        let mut hasher = Sha256Hasher::new();
        hasher.update(b"filestore sheet\0");
        hasher.update(RECIPE.to_le_bytes());
        hasher.update(self.grid.cell().to_le_bytes());
        hasher.update([u8::from(self.fit == Fit::Inside)]);
        for (file_id, sha256) in &self.files {
            hasher.update(file_id.to_bits().to_le_bytes());
            hasher.update(sha256.map_or([0; 32], |sha256| sha256.0));
        }
        hasher
    }

    /// Returns the digest of what a sheet of this key shows at `quality`, in 32 hexadecimal digits. Each
    /// cell has its refusal, if there is one. No picture is needed for it.
    pub(crate) fn tag<'a>(
        &self,
        quality: f32,
        refusals: impl Iterator<Item = Option<&'a Error>>,
    ) -> String {
        let mut hasher = self.hasher();
        hasher.update(quality.to_le_bytes());
        for refusal in refusals {
            hasher.update(refusal.map_or("", |error| error.kind().code()));
            hasher.update([0]);
        }

        hasher.finalize()[..16].iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String cannot fail");
            text
        })
    }
}

/// Pictures side by side in one WebP.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// The cells.
    pub grid: SheetGrid,
    /// The cells' contents, in the order of the files.
    pub cells: Vec<SheetCell>,
    /// The bytes of the WebP file.
    pub webp: Bytes,
    /// The digest of what is shown and what is not, and of the configured quality, in 32 hexadecimal
    /// digits: for entity tags.
    pub tag: String,
}

/// A cell of a sheet.
#[derive(Debug, Clone)]
pub struct SheetCell {
    /// The file.
    pub file_id: FileId,
    /// The place of the picture, or the reason why the cell is empty.
    pub shown: Result<SheetPlace, Error>,
}
