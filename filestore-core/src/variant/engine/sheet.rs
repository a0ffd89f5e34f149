//! Contact sheets: a page of variants in one picture.
//!
//! # Purpose
//! The variants come from their caches or are made, a few at a time, so that one page takes neither all
//! places nor all memory; then one job puts them together. A picture that is no larger than its cell is
//! rendered in its own size. A cell that finds no place has a second turn when the others have ended.
//!
//! A sheet's tag needs the variants, or why there are none, but no sheet: a client that has the sheet
//! costs nothing but the look at them.
//!
//! # Staleness
//! As with variants: a sheet is cached first, and its blobs are asked for after that.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::sync::oneshot;

use super::caller::{Currency, Source};
use super::shared::{Shared, Work};
use super::variant_engine::VariantEngine;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::sheet::{SheetGrid, SheetPlace};
use crate::variant::cache::Lasting;
use crate::variant::convert::FAILURE_LASTS;
use crate::variant::pipeline::mosaic;
use crate::variant::pipeline::refusal::is_final;
use crate::variant::pipeline::render::Small;
use crate::variant::sheet::{Sheet, SheetCell, SheetKey};
use crate::variant::{Variant, VariantKey};

/// The variants of a sheet that are under way at a time, for each thread.
const CELLS_PER_THREAD: usize = 2;

/// A cell to fill: a variant and its blob, or the reason why it stays empty.
pub type CellSource = Result<(VariantKey, Source)>;

impl VariantEngine {
    /// Returns the sheet if it is in memory: never blocks, never waits.
    pub fn cached_sheet(&self, key: &SheetKey) -> Option<Arc<Sheet>> {
        self.shared.caches.sheet(key)
    }

    /// Makes a sheet, with a cell for each of the key's files.
    ///
    /// A picture that cannot be shown leaves its cell empty, with the reason. Errors:
    /// [`Conflict`](crate::ErrorKind::Conflict) if a blob is no longer current (look the records up
    /// again), [`Busy`](crate::ErrorKind::Busy), [`Internal`](crate::ErrorKind::Internal).
    pub async fn sheet(&self, key: SheetKey, cells: Vec<CellSource>) -> Result<Arc<Sheet>> {
        if let Some(sheet) = self.cached_sheet(&key) {
            return Ok(sheet);
        }
        let (engine, digest) = (self.clone(), key.digest());
        self.shared.sheets.join(digest, move || engine.make_sheet(key, cells)).await
    }

    /// Returns the tag that the sheet has or would have, without putting it together. The variants that
    /// are not cached are made. Errors as of [`sheet`](Self::sheet).
    pub async fn sheet_tag(&self, key: &SheetKey, cells: Vec<CellSource>) -> Result<String> {
        if let Some(sheet) = self.cached_sheet(key) {
            return Ok(sheet.tag.clone());
        }
        mosaic::memory_needed(key.grid, self.shared.config.decode_memory_bytes)?;
        let files = self.files(cells).await?;
        Ok(self.shared.tag(key, &files))
    }

    async fn make_sheet(self, key: SheetKey, cells: Vec<CellSource>) -> Result<Arc<Sheet>> {
        mosaic::memory_needed(key.grid, self.shared.config.decode_memory_bytes)?;
        let currencies: Vec<Currency> =
            cells.iter().flatten().map(|(_, source)| source.currency.clone()).collect();
        let files = self.files(cells).await?;
        let lasting = lasting(&files);
        let sheet = Arc::new(self.shared.assemble(&key, files).await?);
        if let Some(lasting) = lasting {
            self.shared.keep_sheet(key, &sheet, lasting, &currencies).await;
        }
        Ok(sheet)
    }

    /// Returns the variants' files, or why there are none.
    async fn files(&self, cells: Vec<CellSource>) -> Result<Vec<Result<Bytes>>> {
        let at_once = CELLS_PER_THREAD * self.shared.pool.threads();
        let all = cells.iter().cloned().map(|cell| self.clone().cell(cell));
        let mut files: Vec<Result<Bytes>> = stream::iter(all).buffered(at_once).collect().await;

        for (file, cell) in files.iter_mut().zip(cells) {
            if file.as_ref().is_err_and(|error| error.kind() == ErrorKind::Busy) {
                *file = self.clone().cell(cell).await;
            }
        }
        match files.iter().filter_map(|file| file.as_ref().err()).find(|error| ends_all(error)) {
            Some(error) => Err(error.clone()),
            None => Ok(files),
        }
    }

    /// Returns the file of one cell's variant.
    async fn cell(self, cell: CellSource) -> Result<Bytes> {
        let (key, source) = cell?;
        let variant = match self.get(key.clone(), source.clone()).await? {
            Variant::PassThrough { .. } => self.shared.make_small(&key, &source).await?,
            variant @ Variant::WebP(_) => variant,
        };
        match variant {
            Variant::WebP(bytes) => Ok(bytes),
            Variant::PassThrough { .. } => unreachable!("small pictures are rendered here"),
        }
    }
}

/// Tells if an error of one cell ends the whole: the client or the caller tries again.
fn ends_all(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Busy)
}

/// Tells for how long a sheet of these files shows what it should; `None` if it is not to be kept.
fn lasting(files: &[Result<Bytes>]) -> Option<Lasting> {
    // One without any picture displaces no other: it costs nothing to make.
    if files.iter().all(Result::is_err) {
        return None;
    }

    let mut lasting = Lasting::AsLongAsItsFiles;
    for error in files.iter().filter_map(|file| file.as_ref().err()) {
        match error.kind() {
            ErrorKind::NotFound => {}
            // Tried again after that time.
            ErrorKind::ConversionFailed => lasting = Lasting::For(FAILURE_LASTS),
            _ if is_final(error) => {}
            _ => return None,
        }
    }
    Some(lasting)
}

impl Shared {
    /// Renders a picture that is no larger than asked, in its own size.
    async fn make_small(&self, key: &VariantKey, source: &Source) -> Result<Variant> {
        let place = self.limits.place()?;
        let wanted = vec![(key.size, key.fit)];
        let (rendering, file) =
            self.assess(source.open().await?, wanted, Small::IsRendered).await?;
        let made = self.render_file(rendering, file, place).await?;
        Ok(made.variant)
    }

    /// Returns the tag of the sheet that shows these files.
    fn tag(&self, key: &SheetKey, files: &[Result<Bytes>]) -> String {
        key.tag(self.config.quality, files.iter().map(|file| file.as_ref().err()))
    }

    /// Puts the variants together, on a thread of the pool if there are any.
    async fn assemble(&self, key: &SheetKey, files: Vec<Result<Bytes>>) -> Result<Sheet> {
        let tag = self.tag(key, &files);
        let (webp, places) = if files.iter().any(Result::is_ok) {
            self.put_together(key.grid, &files).await?
        } else {
            (mosaic::blank(key.grid), vec![None; files.len()])
        };

        let shown = files.into_iter().zip(places).map(|(file, place)| {
            file.map(|_| place.expect("a variant that was made has its place"))
        });
        let ids = key.files.iter().map(|(file_id, _)| *file_id);
        let cells = ids.zip(shown).map(|(file_id, shown)| SheetCell { file_id, shown }).collect();
        Ok(Sheet { grid: key.grid, cells, webp, tag })
    }

    async fn put_together(
        &self,
        grid: SheetGrid,
        files: &[Result<Bytes>],
    ) -> Result<(Bytes, Vec<Option<SheetPlace>>)> {
        let place = self.limits.place()?;
        let quality = self.config.quality;
        let needed = mosaic::memory_needed(grid, self.config.decode_memory_bytes)?;
        let memory = self.wait_for_memory(needed).await?;
        let files: Vec<Option<Bytes>> =
            files.iter().map(|file| file.as_ref().ok().cloned()).collect();

        self.run(Work::Sheet, move |deadline, report: oneshot::Sender<_>| {
            let assembled = mosaic::assemble(grid, &files, quality, deadline);
            drop((memory, place));
            let _ = report.send(assembled);
        })
        .await
    }

    /// Caches a sheet, unless one of its blobs was replaced or purged meanwhile.
    async fn keep_sheet(
        &self,
        key: SheetKey,
        sheet: &Arc<Sheet>,
        lasting: Lasting,
        currencies: &[Currency],
    ) {
        let key = Arc::new(key);
        self.caches.keep_sheet(Arc::clone(&key), Arc::clone(sheet), lasting);

        for currency in currencies {
            if !currency.holds().await {
                // Any file of the sheet leads to it.
                let (file_id, _) = key.files[0];
                self.caches.forget_sheets(file_id);
                return;
            }
        }
    }
}
