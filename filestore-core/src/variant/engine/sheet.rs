//! Contact sheets: a page of variants in one picture.
//!
//! # Purpose
//! The variants come from their caches or are made, a few at a time, so that one page does not take all
//! places or all memory. Then one job combines them. A picture that is no larger than its cell is rendered in
//! its own size. A cell without a place is tried again after the others.
//!
//! A sheet's tag needs only its variants, or the reasons why they are missing. A client that already has the
//! sheet therefore costs little.
//!
//! # Staleness
//! Like a variant, a sheet is first cached, and then its blobs are checked.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::timeout;

use super::caller::{Currency, Source};
use super::pool::Held;
use super::shared::{Shared, Work};
use super::variant_engine::VariantEngine;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::sheet::{SheetGrid, SheetPlace};
use crate::domain::id::OrganizationId;
use crate::variant::cache::Lasting;
use crate::variant::convert::FAILURE_LASTS;
use crate::variant::pictures::{self, Small, is_final, sheet_memory};
use crate::variant::sheet::{Sheet, SheetCell, SheetKey};
use crate::variant::{Variant, VariantKey};

/// The number of a sheet's variants in progress, for each thread.
const CELLS_PER_THREAD: usize = 2;

/// A cell to fill: a variant and its blob, or the reason why the cell stays empty.
pub type CellSource = Result<(VariantKey, Source)>;

impl VariantEngine {
    /// Returns a sheet from memory. Never blocks or waits.
    pub fn cached_sheet(&self, key: &SheetKey) -> Option<Arc<Sheet>> {
        self.shared.caches.sheet(key)
    }

    /// Makes a sheet with a cell for each of the key's files.
    ///
    /// A picture that cannot be shown leaves its cell empty, with the reason. Returns
    /// [`Conflict`](crate::ErrorKind::Conflict) if a blob is no longer current. In that case, look up the
    /// records again. Can also return [`Busy`](crate::ErrorKind::Busy) and
    /// [`Internal`](crate::ErrorKind::Internal).
    pub async fn sheet(&self, key: SheetKey, cells: Vec<CellSource>) -> Result<Arc<Sheet>> {
        if let Some(sheet) = self.cached_sheet(&key) {
            return Ok(sheet);
        }
        let (engine, digest) = (self.clone(), key.digest());
        self.shared.sheets.join(digest, move || engine.make_sheet(key, cells)).await
    }

    /// Makes a sheet like [`sheet`](Self::sheet) of the pictures that are there within `wait`. The others leave their
    /// cells empty, with [`Busy`](crate::ErrorKind::Busy), and are made on. A sheet that lacks a picture is not cached.
    pub async fn sheet_within(
        &self,
        key: SheetKey,
        cells: Vec<CellSource>,
        wait: Duration,
    ) -> Result<Arc<Sheet>> {
        if let Some(sheet) = self.cached_sheet(&key) {
            return Ok(sheet);
        }
        sheet_memory(key.grid, self.shared.config.decode_memory_bytes)?;
        let behalf = Behalf::of(&cells);
        let files = self.files_within(cells, wait).await?;
        self.shared.combine(key, files, behalf).await
    }

    /// Returns the sheet's tag without combining pictures. Makes variants that are not cached. Errors
    /// are those of [`sheet`](Self::sheet).
    pub async fn sheet_tag(&self, key: &SheetKey, cells: Vec<CellSource>) -> Result<String> {
        if let Some(sheet) = self.cached_sheet(key) {
            return Ok(sheet.tag.clone());
        }
        sheet_memory(key.grid, self.shared.config.decode_memory_bytes)?;
        let files = self.files(cells).await?;
        Ok(self.shared.tag(key, &files))
    }

    async fn make_sheet(self, key: SheetKey, cells: Vec<CellSource>) -> Result<Arc<Sheet>> {
        sheet_memory(key.grid, self.shared.config.decode_memory_bytes)?;
        let behalf = Behalf::of(&cells);
        let files = self.files(cells).await?;
        self.shared.combine(key, files, behalf).await
    }

    /// Returns the files of the variants that are there within `wait`. A variant in progress continues without us. Only
    /// as many are begun as there are threads, so that the sheet itself soon has its turn.
    async fn files_within(
        &self,
        cells: Vec<CellSource>,
        wait: Duration,
    ) -> Result<Vec<Result<Bytes>>> {
        let (mut files, mut missing) = (Vec::with_capacity(cells.len()), Vec::new());
        for (number, cell) in cells.into_iter().enumerate() {
            let (key, source) = match cell {
                Ok(cell) => cell,
                Err(error) => {
                    files.push(Err(error));
                    continue;
                }
            };
            if let Some(Variant::WebP(bytes)) = self.cached(&key) {
                files.push(Ok(bytes));
            } else {
                files.push(Err(not_ready()));
                missing.push((number, (key, source)));
            }
        }

        let making = missing.into_iter().map(|(number, cell)| {
            let engine = self.clone();
            async move { (number, engine.cell(Ok(cell)).await) }
        });
        let mut made = stream::iter(making).buffer_unordered(self.shared.pool.threads());
        let all = async {
            while let Some((number, file)) = made.next().await {
                files[number] = file;
            }
        };
        // In time or not: what is there is shown.
        let _ = timeout(wait, all).await;

        let mut errors = files.iter().filter_map(|file: &Result<Bytes>| file.as_ref().err());
        match errors.find(|error| error.kind() == ErrorKind::Conflict) {
            Some(error) => Err(error.clone()),
            None => Ok(files),
        }
    }

    /// Returns the files of the variants, or the reasons why they are missing.
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

/// The organization for which a sheet is made, and the blobs that it shows.
struct Behalf {
    /// A sheet of several organizations is made on behalf of the first.
    organization: Option<OrganizationId>,
    currencies: Vec<Currency>,
}

impl Behalf {
    fn of(cells: &[CellSource]) -> Self {
        let shown = || cells.iter().flatten();
        Self {
            organization: shown().next().map(|(key, _)| key.organization_id.clone()),
            currencies: shown().map(|(_, source)| source.currency.clone()).collect(),
        }
    }
}

fn not_ready() -> Error {
    Error::new(ErrorKind::Busy, "the picture is not ready yet")
}

/// Returns true if an error of one cell fails the whole sheet, because the client or the caller tries again.
fn ends_all(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Busy)
}

/// Returns how long a sheet of these files is valid. `None` if it must not be cached.
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
    /// Renders a picture that is no larger than requested, in its own size.
    async fn make_small(&self, key: &VariantKey, source: &Source) -> Result<Variant> {
        let mut place = self.pool.place(&key.organization_id)?;
        let wanted = vec![(key.size, key.fit)];
        let assessed = place
            .keeps(async { self.assess(source.open().await?, wanted, Small::IsRendered).await });
        let (rendering, file) = assessed.await?;
        let made = self.render_file(rendering, file, place).await?;
        Ok(made.variant)
    }

    /// Returns the tag of the sheet with these files.
    fn tag(&self, key: &SheetKey, files: &[Result<Bytes>]) -> String {
        key.tag(self.config.quality, files.iter().map(|file| file.as_ref().err()))
    }

    /// Combines the variants, and caches the sheet if it can last.
    async fn combine(
        &self,
        key: SheetKey,
        files: Vec<Result<Bytes>>,
        behalf: Behalf,
    ) -> Result<Arc<Sheet>> {
        let lasting = lasting(&files);
        let sheet = Arc::new(self.assemble(&key, files, behalf.organization).await?);
        if let Some(lasting) = lasting {
            self.keep_sheet(key, &sheet, lasting, &behalf.currencies).await;
        }
        Ok(sheet)
    }

    /// Combines the variants on a thread of the pool. An empty sheet needs no thread.
    async fn assemble(
        &self,
        key: &SheetKey,
        files: Vec<Result<Bytes>>,
        organization: Option<OrganizationId>,
    ) -> Result<Sheet> {
        let tag = self.tag(key, &files);
        let organization = organization.filter(|_| files.iter().any(Result::is_ok));
        let (webp, places) = match organization {
            Some(organization) => self.put_together(key.grid, &files, &organization).await?,
            None => (pictures::blank_sheet(key.grid)?, vec![None; files.len()]),
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
        organization: &OrganizationId,
    ) -> Result<(Bytes, Vec<Option<SheetPlace>>)> {
        let place = self.pool.place(organization)?;
        let needed = sheet_memory(grid, self.config.decode_memory_bytes)?;
        let files: Vec<Option<Bytes>> =
            files.iter().map(|file| file.as_ref().ok().cloned()).collect();

        let config = self.config.clone();
        self.run(Work::Sheet, place, needed, move |_, held: Held, report| {
            let assembled = pictures::assemble_sheet(grid, &files, &config);
            drop(held);
            let _ = report.send(assembled);
        })
        .await
    }

    /// Caches a sheet, unless one of its blobs was replaced or purged in the meantime.
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
