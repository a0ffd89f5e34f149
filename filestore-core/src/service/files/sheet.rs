//! Contact sheets: the variants of many files in one image.
//!
//! The caller's scope limits the look-up of the records. The key of a sheet consists of its contents: ids,
//! digests, size and fit. `engine/sheet.rs` takes the variants from their caches or makes them, a few at a
//! time. `filestore-pictures` decodes them and encodes the sheet once. A file that cannot be shown leaves its
//! cell empty. If a file changes in the meantime, the store starts the sheet again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::Files;
use super::variant::{key_of, source_of};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::record::FileRecord;
use crate::domain::file::sheet::SheetGrid;
use crate::domain::id::FileId;
use crate::variant::{CellSource, Fit, Motion, Sheet, SheetKey, VariantSize};

/// The maximum number of attempts for a sheet. An attempt ends early if one of its files changed.
const TRIES: usize = 4;

impl Files<'_> {
    /// Returns a contact sheet of up to 100 files: their variants of `size` in one WebP image, in the order
    /// of the ids. The sheet comes from memory, or is made now.
    ///
    /// A file that cannot be shown leaves its cell empty, with the reason. For example, the file is unknown,
    /// outside the scope, deleted, not a picture, or at a provider that does not answer.
    ///
    /// Returns `InvalidField` for no files, for too many files, and for a sheet over 16 megapixels. Returns
    /// `Busy` if too many variants are being made. Returns `Conflict` if the files keep changing.
    ///
    /// ```no_run
    /// use filestore_core::{FileId, FileStore, Fit, Scope};
    ///
    /// # async fn example(store: &FileStore, page: &[FileId]) -> filestore_core::Result<()> {
    /// let sheet = store.scoped(&Scope::All).sheet(page, 200.try_into()?, Fit::Cover).await?;
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
    pub async fn sheet(self, ids: &[FileId], size: VariantSize, fit: Fit) -> Result<Arc<Sheet>> {
        self.sheet_of(ids, size, fit, None).await
    }

    /// Returns a contact sheet like [`sheet`](Self::sheet) of the pictures that are there within `wait`. The other
    /// cells are empty with `Busy`. The store goes on with some of these pictures, so ask again.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use filestore_core::{FileId, FileStore, Fit, Scope};
    ///
    /// # async fn example(store: &FileStore, page: &[FileId]) -> filestore_core::Result<()> {
    /// let files = store.scoped(&Scope::All);
    /// let wait = Duration::from_millis(300);
    /// let sheet = files.sheet_within(page, 200.try_into()?, Fit::Cover, wait).await?;
    /// println!("{} pictures", sheet.cells.iter().filter(|cell| cell.shown.is_ok()).count());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sheet_within(
        self,
        ids: &[FileId],
        size: VariantSize,
        fit: Fit,
        wait: Duration,
    ) -> Result<Arc<Sheet>> {
        self.sheet_of(ids, size, fit, Some(wait)).await
    }

    async fn sheet_of(
        self,
        ids: &[FileId],
        size: VariantSize,
        fit: Fit,
        wait: Option<Duration>,
    ) -> Result<Arc<Sheet>> {
        let grid = SheetGrid::new(ids.len(), size)?;
        let mut tries = Tries::default();
        loop {
            match self.try_sheet(ids, grid, fit, wait).await {
                Err(error) if tries.allow_another(&error) => {}
                outcome => return outcome,
            }
        }
    }

    /// Returns the tag of the sheet that [`sheet`](Self::sheet) would return now.
    pub(super) async fn sheet_tag(
        self,
        ids: &[FileId],
        size: VariantSize,
        fit: Fit,
    ) -> Result<String> {
        let grid = SheetGrid::new(ids.len(), size)?;
        let mut tries = Tries::default();
        loop {
            match self.try_sheet_tag(ids, grid, fit).await {
                Err(error) if tries.allow_another(&error) => {}
                outcome => return outcome,
            }
        }
    }

    /// Makes the sheet of the current records. `Conflict` if one of them changes. Boxed for the reason in
    /// `worker/running/run.rs`.
    fn try_sheet<'s>(
        self,
        ids: &'s [FileId],
        grid: SheetGrid,
        fit: Fit,
        wait: Option<Duration>,
    ) -> BoxFuture<'s, Result<Arc<Sheet>>>
    where
        Self: 's,
    {
        Box::pin(async move {
            let (key, records) = self.sheet_key(ids, grid, fit).await?;
            let engine = &self.store.inner.pictures.engine;
            if let Some(sheet) = engine.cached_sheet(&key) {
                return Ok(sheet);
            }
            let cells = self.cells(&key, &records);
            match wait {
                None => engine.sheet(key, cells).await,
                Some(wait) => engine.sheet_within(key, cells, wait).await,
            }
        })
    }

    /// Returns the tag of a sheet with the current records. `Conflict` if one of them changes. Boxed for the
    /// reason in `worker/running/run.rs`.
    fn try_sheet_tag<'s>(
        self,
        ids: &'s [FileId],
        grid: SheetGrid,
        fit: Fit,
    ) -> BoxFuture<'s, Result<String>>
    where
        Self: 's,
    {
        Box::pin(async move {
            let (key, records) = self.sheet_key(ids, grid, fit).await?;
            let cells = self.cells(&key, &records);
            self.store.inner.pictures.engine.sheet_tag(&key, cells).await
        })
    }

    /// Looks up the files, and computes the key of the sheet for their current state.
    async fn sheet_key(
        self,
        ids: &[FileId],
        grid: SheetGrid,
        fit: Fit,
    ) -> Result<(SheetKey, Vec<Option<Arc<FileRecord>>>)> {
        let mut records = Vec::with_capacity(ids.len());
        for id in ids {
            records.push(match self.record(*id).await {
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
    fn cells(self, key: &SheetKey, records: &[Option<Arc<FileRecord>>]) -> Vec<CellSource> {
        let (size, fit) = (key.grid.size(), key.fit);
        let cells = records.iter().map(|record| match record {
            Some(record) => {
                let key = key_of(record, size, fit, Motion::Still);
                Ok((key, source_of(&self.store.inner, record)))
            }
            None => Err(Error::not_found("file")),
        });
        cells.collect()
    }
}

/// The number of attempts for a sheet.
#[derive(Default)]
struct Tries(usize);

impl Tries {
    /// Counts a failure. Allows another attempt if a file changed and attempts are left.
    fn allow_another(&mut self, error: &Error) -> bool {
        self.0 += 1;
        error.kind() == ErrorKind::Conflict && self.0 < TRIES
    }
}
