//! Contact sheets: a page of variants in one picture.
//!
//! # Purpose
//! The variants come from their caches or are made, a few at a time, so that one page takes neither all
//! places nor all memory; then one job puts them together. A picture that is no larger than its cell is
//! rendered in its own size.
//!
//! # Staleness
//! As with variants: a sheet is cached first, and its blobs are asked for after that.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::sync::oneshot;

use super::caller::{Currency, Source};
use super::shared::Shared;
use super::variant_engine::VariantEngine;
use crate::domain::error::{Error, ErrorKind, Result};
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

    async fn make_sheet(self, key: SheetKey, cells: Vec<CellSource>) -> Result<Arc<Sheet>> {
        mosaic::memory_needed(key.grid, self.shared.config.decode_memory_bytes)?;
        let currencies: Vec<Currency> =
            cells.iter().flatten().map(|(_, source)| source.currency.clone()).collect();
        let at_once = CELLS_PER_THREAD * self.shared.pool.threads();
        let variants = cells.into_iter().map(|cell| {
            let engine = self.clone();
            async move {
                let (key, source) = cell?;
                engine.cell(key, source).await
            }
        });
        let variants: Vec<Result<Bytes>> = stream::iter(variants).buffered(at_once).collect().await;

        if let Some(error) =
            variants.iter().filter_map(|made| made.as_ref().err()).find(|error| ends_all(error))
        {
            return Err(error.clone());
        }
        // One without any picture displaces no other.
        let is_any_shown = variants.iter().any(Result::is_ok);
        let is_lasting =
            is_any_shown && variants.iter().filter_map(|made| made.as_ref().err()).all(is_lasting);
        let sheet = Arc::new(self.shared.assemble(&key, variants).await?);
        if is_lasting {
            self.shared.keep_sheet(key, &sheet, &currencies).await;
        }
        Ok(sheet)
    }

    /// Returns the file of one cell's variant.
    async fn cell(&self, key: VariantKey, source: Source) -> Result<Bytes> {
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

/// Tells if a cell stays empty for as long as its key.
fn is_lasting(error: &Error) -> bool {
    is_final(error) || error.kind() == ErrorKind::NotFound
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

    /// Puts the variants together, on a thread of the pool.
    async fn assemble(&self, key: &SheetKey, variants: Vec<Result<Bytes>>) -> Result<Sheet> {
        let place = self.limits.place()?;
        let (grid, quality) = (key.grid, self.config.quality);
        let needed = mosaic::memory_needed(grid, self.config.decode_memory_bytes)?;
        let memory = self.wait_for_memory(needed).await?;
        let files: Vec<Option<Bytes>> =
            variants.iter().map(|made| made.as_ref().ok().cloned()).collect();

        let assembled = self.run(move |deadline, report: oneshot::Sender<_>| {
            let assembled = mosaic::assemble(grid, &files, quality, deadline);
            drop((memory, place));
            let _ = report.send(assembled);
        });
        let (webp, places) = assembled.await?;

        let shown = variants.into_iter().zip(places).map(|(made, place)| {
            made.map(|_| place.expect("a variant that was made has its place"))
        });
        let ids = key.files.iter().map(|(file_id, _)| *file_id);
        let cells = ids.zip(shown).map(|(file_id, shown)| SheetCell { file_id, shown }).collect();
        Ok(Sheet::new(key, cells, webp))
    }

    /// Caches a sheet, unless one of its blobs was replaced or purged meanwhile.
    async fn keep_sheet(&self, key: SheetKey, sheet: &Arc<Sheet>, currencies: &[Currency]) {
        let key = Arc::new(key);
        self.caches.keep_sheet(Arc::clone(&key), Arc::clone(sheet));

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
