//! Contact sheets: their identity, and their contents.

use bytes::Bytes;
use sha2::{Digest, Sha256 as Sha256Hasher};

use super::key::{KeyDigest, RECIPE};
use crate::domain::error::Error;
use crate::domain::file::sheet::{SheetGrid, SheetPlace};
use crate::domain::file::variant::Fit;
use crate::domain::id::{FileId, Sha256};

/// A sheet's identity: the blobs in it, in order. If a file is replaced, deleted or not accessible to
/// the caller, the key differs. A sheet can therefore never be stale.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SheetKey {
    /// The cells.
    pub grid: SheetGrid,
    /// Fit of each picture in its cell.
    pub fit: Fit,
    /// Each file with its blob's digest. `None` if the caller cannot access the file.
    pub files: Vec<(FileId, Option<Sha256>)>,
}

impl SheetKey {
    /// Returns the digest that represents the key while a sheet is made.
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

    /// Returns the digest of a sheet's contents at `quality`, in 32 hexadecimal digits. Each cell contains
    /// its refusal, if there is one. No picture is needed.
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

        hex::encode(&hasher.finalize()[..16])
    }
}

/// Several pictures side by side in one WebP.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// The grid of the cells.
    pub grid: SheetGrid,
    /// The contents of the cells, in the order of the files.
    pub cells: Vec<SheetCell>,
    /// The bytes of the WebP file.
    pub webp: Bytes,
    /// The digest of the cells' contents and the configured quality, in 32 hexadecimal digits. The digest is
    /// for entity tags.
    pub tag: String,
}

/// A cell of a sheet.
#[derive(Debug, Clone)]
pub struct SheetCell {
    /// The file.
    pub file_id: FileId,
    /// The picture's position, or the reason why the cell is empty.
    pub shown: Result<SheetPlace, Error>,
}
