//! Two databases: copies the rows from one to the other, and compares them.

use crate::domain::config::StoreConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::metadata::copying::{Cells, Page, TABLES, Table};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::sqlite::SqliteMetadata;
use crate::storage::{CheckOutcome, ProviderRegistry};
use crate::worker::Progress;

/// The rows that are copied in one transaction, and are in memory twice at a time. One may be a remembered
/// reply to a large batch.
pub(in crate::worker) const PAGE: Page = Page { rows: 1000, bytes: 8 << 20 };

/// Both databases.
pub(in crate::worker) struct Pair<'p> {
    pub(in crate::worker) from: SqliteMetadata,
    pub(in crate::worker) to: PostgresMetadata,
    pub(in crate::worker) progress: &'p dyn Progress,
    pub(in crate::worker) page: Page,
}

impl Pair<'_> {
    /// Copies and compares all tables; returns the numbers of files and of rows.
    pub(in crate::worker) async fn copy_all(&self) -> Result<(u64, u64)> {
        // Each is copied, and then compared.
        self.progress.start(Some(self.from.row_count().await? * 2));
        for table in TABLES {
            let behind = self.to.last_key(table).await?;
            self.copy(table, behind).await?;
        }

        let (mut files, mut all) = (0, 0);
        for table in TABLES {
            let rows = self.compare_or_mend(table).await?;
            all += rows;
            if table.name == "files" {
                files = rows;
            }
        }
        Ok((files, all))
    }

    /// Copies the rows of a table behind a key. The settings begin anew each time: the id of the store was
    /// among them from the first moment on.
    async fn copy(&self, table: &'static Table, behind: Option<Cells>) -> Result<()> {
        let mut behind = behind.filter(|_| table.name != "settings");
        loop {
            let rows = self.from.rows_of(table, behind, self.page).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            behind = Some(last[..table.key].to_vec());

            let count = rows.len() as u64;
            self.to.put_rows(table, rows).await?;
            self.progress.advance(count);
        }
    }

    /// Compares a table. One that differs, because the store was used after an earlier run, is copied anew.
    async fn compare_or_mend(&self, table: &'static Table) -> Result<u64> {
        if let Some(rows) = self.compare(table).await? {
            return Ok(rows);
        }

        tracing::info!(table = table.name, "the copy of a table differs: it is copied anew");
        self.to.empty(table).await?;
        self.copy(table, None).await?;
        let rows = self.compare(table).await?;
        rows.ok_or_else(|| {
            unusable(format!("the copy of the table {} differs from the original", table.name))
        })
    }

    /// Reads a table from both databases; returns the number of its rows if they are all the same.
    async fn compare(&self, table: &'static Table) -> Result<Option<u64>> {
        let (mut rows, mut behind) = (0, None);
        loop {
            let original = self.from.rows_of(table, behind.clone(), self.page).await?;
            // At the end one row too many shows.
            let copied = self.to.rows_of(table, behind, original.len().max(1)).await?;
            if original != copied {
                return Ok(None);
            }

            let Some(last) = original.last() else { return Ok(Some(rows)) };
            behind = Some(last[..table.key].to_vec());
            rows += original.len() as u64;
            self.progress.advance(original.len() as u64);
        }
    }
}

/// Tries out the backend to which files will go, so that no store is left half moved for want of a right there.
pub(in crate::worker) async fn try_backend(config: &StoreConfig) -> Result<()> {
    let providers = ProviderRegistry::open(&config.providers)?;
    let Some(backend) = providers.backend() else { return Ok(()) };
    let check = providers.cloud(backend)?.check().await;
    let failed = check.steps.iter().find(|step| step.outcome == CheckOutcome::Failed);
    match failed {
        Some(step) if !check.can_serve => {
            let (name, detail) = (step.name, &step.detail);
            let message = format!("the backend {backend} cannot take files: {name}: {detail}");
            Err(unusable(message))
        }
        _ => Ok(()),
    }
}

fn unusable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unusable, message)
}
