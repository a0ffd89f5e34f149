//! Moves the records of a store from SQLite to PostgreSQL.
//!
//! # Purpose
//! A store that has outgrown its database keeps all its data: its id, its files and their ids, keys,
//! bindings, replies and receipts. The bytes stay in the data directory and at providers. `files` can move
//! the bytes in the data directory later.
//!
//! # Crash safety
//! If the configuration names a backend of LOCAL, the run tests it first.
//! 1. The schema is created, with a mark that prevents servers from opening it.
//! 2. Rows are copied, one page in each transaction, and each table in the order of its keys.
//! 3. Every row is read again from both databases and compared. A table that differs is emptied, copied and
//!    compared once more.
//! 4. The SQLite database is renamed, durably. From now on, no server opens the directory with it.
//! 5. The mark is removed.
//!
//! A stopped run can be started again, and continues. A server can never open both databases.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::config::StoreConfig;
use crate::domain::error::Result;
#[cfg(not(feature = "postgres"))]
use crate::domain::error::{Error, ErrorKind};
use crate::worker::Progress;
#[cfg(feature = "postgres")]
use crate::worker::copying::pair::PAGE;

/// The result of copying records.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedRecords {
    /// File count.
    pub files: u64,
    /// The number of rows in all tables, including files.
    pub rows: u64,
    /// The former SQLite database, which no server opens.
    pub former_database: PathBuf,
}

/// Copies the records of the data directory `dir` from its SQLite database to the PostgreSQL database in
/// `config`, and compares every row. After that, open the store with `config`. Progress counts each row
/// twice: when it is copied and when it is compared.
///
/// The schema must be new, or contain an unfinished copy of these records. The schema can also contain just
/// a store's id, without files, bindings, keys and other settings. A server that was started too early
/// leaves such a schema. A directory's records are copied only once. The directory is locked during the
/// copy, so no other process can use it.
///
/// Returns [`ErrorKind::Unusable`] if there are no records to copy, or if the schema is in use.
///
/// [`ErrorKind::Unusable`]: crate::ErrorKind::Unusable
#[cfg(feature = "postgres")]
pub async fn copy_records(
    dir: &Path,
    config: &StoreConfig,
    progress: Arc<dyn Progress>,
) -> Result<CopiedRecords> {
    copying::copy(dir, config, &*progress, PAGE).await
}

/// Returns true if the records of the data directory `dir` were completely copied to the PostgreSQL database
/// in `config`. Only reads.
#[cfg(feature = "postgres")]
pub async fn are_records_copied(dir: &Path, config: &StoreConfig) -> Result<bool> {
    copying::are_copied(dir, config).await
}

/// Returns an error, because the program was built without the feature `postgres`.
#[cfg(not(feature = "postgres"))]
pub async fn copy_records(
    _: &Path,
    _: &StoreConfig,
    _: Arc<dyn Progress>,
) -> Result<CopiedRecords> {
    Err(without_postgres())
}

/// Returns an error, because the program was built without the feature `postgres`.
#[cfg(not(feature = "postgres"))]
pub async fn are_records_copied(_: &Path, _: &StoreConfig) -> Result<bool> {
    Err(without_postgres())
}

#[cfg(not(feature = "postgres"))]
pub(in crate::worker) fn without_postgres() -> Error {
    let message = "records cannot be copied to PostgreSQL: this program was built without the feature postgres";
    Error::new(ErrorKind::Unusable, message).with_field("metadata")
}

#[cfg(feature = "postgres")]
mod copying {
    use std::path::Path;

    use super::CopiedRecords;
    use crate::domain::config::{Durability, MetadataPlace, StoreConfig};
    use crate::domain::error::{Error, ErrorKind, Result};
    use crate::domain::id::StoreId;
    use crate::domain::time::clock::Clock;
    use crate::metadata::Upkeep as _;
    use crate::metadata::copying::{CopySource, Page};
    use crate::metadata::postgres::PostgresMetadata;
    use crate::metadata::sqlite::SqliteMetadata;
    use crate::service::{MARKED, postgres_options};
    use crate::storage::DataDir;
    use crate::tasks;
    use crate::worker::Progress;
    use crate::worker::copying::pair::{Pair, try_backend};

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
        pair.to.end_copy(Clock::system().now()).await?;
        pair.to.close().await;
        Ok(CopiedRecords { files, rows, former_database })
    }

    /// Returns true if a directory has only the former database of a store that the schema contains and uses.
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
}

/// These tests need a server. `tests/services/postgres/run` starts one.
#[cfg(all(test, feature = "postgres"))]
mod tests;
