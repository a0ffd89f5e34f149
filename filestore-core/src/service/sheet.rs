//! Contact sheets: the variants of many files in one picture.
//!
//! The records are looked up within the caller's scope, and the sheet is named by what it would
//! show: ids, digests, size, fit. `engine/sheet.rs` takes the variants from their caches or makes
//! them, a few at a time; `pipeline/mosaic.rs` decodes them and encodes the page once. A file
//! that cannot be shown leaves its cell empty. A file that changed meanwhile begins the sheet
//! anew.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::FileStore;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::FileId;
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;
use crate::domain::sheet::SheetGrid;
use crate::variant::{CellSource, Fit, Motion, Sheet, SheetKey, VariantSize};

/// Times a sheet is begun anew because one of its files changed.
const TRIES: usize = 4;

impl FileStore {
    /// Makes a contact sheet of up to a hundred files in their order, or takes it from memory: their
    /// variants of `size` in one WebP.
    ///
    /// A file that cannot be shown (unknown, outside `scope`, deleted, no picture, at a provider that
    /// does not answer) leaves its cell empty, with the reason. `InvalidField` for no file, too many, or
    /// a sheet over 16 megapixels; `Busy` if too many variants are being made; `Conflict` if files keep
    /// changing.
    ///
    /// ```no_run
    /// use filestore_core::{FileId, FileStore, Fit, Scope};
    ///
    /// # async fn example(store: &FileStore, page: &[FileId]) -> filestore_core::Result<()> {
    /// let sheet = store.sheet(page, 200.try_into()?, Fit::Cover, &Scope::All).await?;
    /// for cell in &sheet.cells {
    ///     match &cell.shown {
    ///         Ok(place) => println!("{} at {}, {}", cell.file_id, place.x, place.y),
    ///         Err(error) => println!("{}: {error}", cell.file_id),
    ///     }
    /// }
    /// std::fs::write("page.webp", &sheet.webp).expect("a disk");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sheet(
        &self,
        ids: &[FileId],
        size: VariantSize,
        fit: Fit,
        scope: &Scope,
    ) -> Result<Arc<Sheet>> {
        let grid = SheetGrid::new(ids.len(), size)?;
        let mut tries = Tries::default();
        loop {
            match self.try_sheet(ids, grid, fit, scope).await {
                Err(error) if tries.allow_another(&error) => {}
                outcome => return outcome,
            }
        }
    }

    /// Returns the [tag](Sheet::tag) that [`sheet`](Self::sheet) would return now, for a caller who may have
    /// the sheet. The variants are made, if they are not cached; the sheet is not. Errors as there.
    pub async fn sheet_tag(
        &self,
        ids: &[FileId],
        size: VariantSize,
        fit: Fit,
        scope: &Scope,
    ) -> Result<String> {
        let grid = SheetGrid::new(ids.len(), size)?;
        let mut tries = Tries::default();
        loop {
            match self.try_sheet_tag(ids, grid, fit, scope).await {
                Err(error) if tries.allow_another(&error) => {}
                outcome => return outcome,
            }
        }
    }

    /// Makes the sheet of the records as they are now; `Conflict` if one changes. Boxed for the reason in
    /// `worker/run.rs`.
    fn try_sheet<'a>(
        &'a self,
        ids: &'a [FileId],
        grid: SheetGrid,
        fit: Fit,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Arc<Sheet>>> {
        Box::pin(async move {
            let (key, records) = self.sheet_key(ids, grid, fit, scope).await?;
            if let Some(sheet) = self.inner.variants.cached_sheet(&key) {
                return Ok(sheet);
            }
            let cells = self.cells(&key, &records);
            self.inner.variants.sheet(key, cells).await
        })
    }

    /// Returns the tag of the sheet of the records as they are now; `Conflict` if one changes. Boxed for the
    /// reason in `worker/run.rs`.
    fn try_sheet_tag<'a>(
        &'a self,
        ids: &'a [FileId],
        grid: SheetGrid,
        fit: Fit,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<String>> {
        Box::pin(async move {
            let (key, records) = self.sheet_key(ids, grid, fit, scope).await?;
            let cells = self.cells(&key, &records);
            self.inner.variants.sheet_tag(&key, cells).await
        })
    }

    /// Looks the files up, and names the sheet of what they are now.
    async fn sheet_key(
        &self,
        ids: &[FileId],
        grid: SheetGrid,
        fit: Fit,
        scope: &Scope,
    ) -> Result<(SheetKey, Vec<Option<Arc<FileRecord>>>)> {
        let mut records = Vec::with_capacity(ids.len());
        for id in ids {
            records.push(match self.record(*id, scope).await {
                Ok(record) => Some(record),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            });
        }

        let shown = records.iter().map(|record| Some(record.as_ref()?.blob.sha256));
        let files = ids.iter().copied().zip(shown).collect();
        Ok((SheetKey { grid, fit, files }, records))
    }

    /// Describes the files' blobs for the engine.
    fn cells(&self, key: &SheetKey, records: &[Option<Arc<FileRecord>>]) -> Vec<CellSource> {
        let (size, fit) = (key.grid.size(), key.fit);
        let cells = records.iter().map(|record| match record {
            Some(record) => {
                let key = self.variant_key(record, size, fit, Motion::Still);
                Ok((key, self.source_of(record)))
            }
            None => Err(Error::not_found("file")),
        });
        cells.collect()
    }
}

/// The times that a sheet was begun.
#[derive(Default)]
struct Tries(usize);

impl Tries {
    /// Counts a failure; allows another try if a file changed meanwhile, but not for ever.
    fn allow_another(&mut self, error: &Error) -> bool {
        self.0 += 1;
        error.kind() == ErrorKind::Conflict && self.0 < TRIES
    }
}
