//! Moving the records of a store from SQLite to PostgreSQL.
//!
//! # Purpose
//! A store that has outgrown its database goes on with all that it had: its id, its files and their ids,
//! keys, bindings, replies, receipts. The bytes stay where they are, in the data directory and at
//! providers; `files_copy` moves those of the data directory afterwards.
//!
//! # Crash safety
//! A backend of LOCAL that the configuration names is tried out before anything is touched.
//! 1. The schema is made, with a mark that lets no server open it.
//! 2. Rows are copied, a page in a transaction, each table in the order of its keys.
//! 3. Every row is read again from both databases, and compared. A table that differs is emptied, and
//!    copied and compared once more.
//! 4. The SQLite database gets another name, durably: from here on no server opens the directory with it.
//! 5. The mark goes.
//!
//! A run that was stopped is started again, and goes on. There is no point at which a server could open
//! both databases.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Progress;
use crate::domain::config::StoreConfig;
use crate::domain::error::Result;
#[cfg(not(feature = "postgres"))]
use crate::domain::error::{Error, ErrorKind};

/// The outcome of a copy of records.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedRecords {
    /// Files.
    pub files: u64,
    /// Rows of all tables, those of files included.
    pub rows: u64,
    /// The SQLite database, which no server opens any more.
    pub former_database: PathBuf,
}

/// Copies the records of the data directory `dir` from its SQLite database to the PostgreSQL database that
/// `config` names, and compares every row. From then on the store is opened with `config`.
///
/// The schema must be a new one, or one into which an earlier run was copying these records, or have nothing
/// but the id of a store: no file, binding or key, and no other setting, as a server leaves it that was
/// started too early, and refused the directory. The records of a directory are copied once. No other
/// process may use the directory meanwhile: it is locked. Reports rows, each of which is copied and then
/// compared. [`ErrorKind::Unusable`] if there is nothing to copy, or the schema is in use.
///
/// [`ErrorKind::Unusable`]: crate::ErrorKind::Unusable
#[cfg(feature = "postgres")]
pub async fn copy_records(
    dir: &Path,
    config: &StoreConfig,
    progress: Arc<dyn Progress>,
) -> Result<CopiedRecords> {
    copying::copy(dir, config, &*progress, copying::PAGE).await
}

/// Tells whether the records of the data directory `dir` were copied, to the end, to the PostgreSQL database that
/// `config` names. Changes nothing.
#[cfg(feature = "postgres")]
pub async fn are_records_copied(dir: &Path, config: &StoreConfig) -> Result<bool> {
    copying::are_copied(dir, config).await
}

/// Refuses: the program was built without the feature `postgres`.
#[cfg(not(feature = "postgres"))]
pub async fn copy_records(
    _: &Path,
    _: &StoreConfig,
    _: Arc<dyn Progress>,
) -> Result<CopiedRecords> {
    Err(without_postgres())
}

/// Refuses: the program was built without the feature `postgres`.
#[cfg(not(feature = "postgres"))]
pub async fn are_records_copied(_: &Path, _: &StoreConfig) -> Result<bool> {
    Err(without_postgres())
}

#[cfg(not(feature = "postgres"))]
pub(super) fn without_postgres() -> Error {
    let message = "records cannot be copied to PostgreSQL: this program was built without the feature postgres";
    Error::new(ErrorKind::Unusable, message).with_field("metadata")
}

#[cfg(feature = "postgres")]
mod copying {
    use std::path::Path;

    use super::CopiedRecords;
    use crate::domain::clock::Clock;
    use crate::domain::config::{Durability, MetadataPlace, StoreConfig};
    use crate::domain::error::{Error, ErrorKind, Result};
    use crate::domain::id::StoreId;
    use crate::metadata::Upkeep as _;
    use crate::metadata::copying::{Cells, CopySource, Page, TABLES, Table};
    use crate::metadata::postgres::PostgresMetadata;
    use crate::metadata::sqlite::SqliteMetadata;
    use crate::service::{MARKED, postgres_options};
    use crate::storage::{CheckOutcome, DataDir, ProviderRegistry};
    use crate::tasks;
    use crate::worker::Progress;

    /// The rows that are copied in one transaction, and are in memory twice at a time. One may be a remembered
    /// reply to a large batch.
    pub(super) const PAGE: Page = Page { rows: 1000, bytes: 8 << 20 };

    /// Both databases.
    struct Pair<'p> {
        from: SqliteMetadata,
        to: PostgresMetadata,
        progress: &'p dyn Progress,
        page: Page,
    }

    pub(super) async fn copy(
        path: &Path,
        config: &StoreConfig,
        progress: &dyn Progress,
        page: Page,
    ) -> Result<CopiedRecords> {
        let MetadataPlace::Postgres(place) = &config.metadata else {
            return Err(unusable("the configuration names no PostgreSQL database to copy to"));
        };
        let options = postgres_options(config, place)?;
        try_backend(config).await?;

        let (dir, source, from) = open_source(path).await?;
        if !from.settings().await?.contains_key(MARKED) {
            let message = "the data directory is of an earlier version: start a server of this one on it, once";
            return Err(unusable(message));
        }
        let to = PostgresMetadata::open_to_copy(from.store_id(), source, &options).await?;
        progress.accepted();

        let pair = Pair { from, to, progress, page };
        let (files, rows) = pair.copy_all().await?;
        pair.to.number_on(pair.from.last_binding().await?).await?;
        pair.from.close().await;

        let former_database = dir.former_database();
        if source == CopySource::Current {
            retire(dir.clone()).await?;
        }
        pair.to.end_copy().await?;
        pair.to.close().await;
        Ok(CopiedRecords { files, rows, former_database })
    }

    /// Tells whether a directory has only the former database of a store that the schema has, in use.
    pub(super) async fn are_copied(path: &Path, config: &StoreConfig) -> Result<bool> {
        let MetadataPlace::Postgres(place) = &config.metadata else {
            return Err(unusable("the configuration names no PostgreSQL database"));
        };
        let options = postgres_options(config, place)?;

        let (_dir, source, from) = open_source(path).await?;
        let store = from.store_id();
        from.close().await;
        Ok(source == CopySource::Former && PostgresMetadata::has_store(store, &options).await?)
    }

    /// Tries out the backend to which files will go, so that no store is left half moved for want of a right there.
    async fn try_backend(config: &StoreConfig) -> Result<()> {
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

    /// Opens the SQLite database of a directory; one that has its former name already, as the run before
    /// came that far, under that name.
    async fn open_source(path: &Path) -> Result<(DataDir, CopySource, SqliteMetadata)> {
        let path = path.to_owned();
        let opening = tasks::blocking(move || {
            if !DataDir::exists(&path) {
                return Err(unusable(format!("there is no data directory {}", path.display())));
            }
            let dir = DataDir::open(&path)?;
            let former = dir.former_database();
            let (source, database) = match (dir.has_database(), former.exists()) {
                (true, false) => (CopySource::Current, dir.database()),
                (false, true) => (CopySource::Former, former),
                (true, true) => {
                    let message = format!(
                        "the data directory has a database and a former one: move {} out of it",
                        former.display()
                    );
                    return Err(unusable(message));
                }
                (false, false) => {
                    return Err(unusable(format!("{} has no database", path.display())));
                }
            };

            let fresh = StoreId::generate(Clock::system().now());
            let from = SqliteMetadata::open_known_as(fresh, &database, Durability::Full, None)?;
            Ok((dir, source, from))
        });
        opening.await.map_err(|e| Error::internal("opening the data directory", e))?
    }

    async fn retire(dir: DataDir) -> Result<()> {
        tasks::blocking(move || dir.retire_database())
            .await
            .map_err(|e| Error::internal("retiring the database", e))?
    }

    fn unusable(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unusable, message)
    }

    impl Pair<'_> {
        /// Copies and compares all tables; returns the numbers of files and of rows.
        async fn copy_all(&self) -> Result<(u64, u64)> {
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
}

/// They need a server: `tests/services/postgres/run` starts one.
#[cfg(all(test, feature = "postgres"))]
mod tests;
