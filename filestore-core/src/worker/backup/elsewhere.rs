//! Where the records of a restored store go: into its directory, or into the database that the configuration names.
//!
//! # Crash safety
//! Records for PostgreSQL take the way of `copying`:
//! 1. Before any file is restored, the schema gets a mark that lets no server open it. One that has records is refused.
//! 2. The files come into the directory, and the snapshot's database, which is made ready, as for SQLite.
//! 3. Its rows are copied and compared.
//! 4. It gets the name of a former database, durably.
//! 5. The mark goes: from now on a server can open the records.
//! 6. The note in the directory goes.
//!
//! A restore that broke off is started again, and goes on by what it finds: files that are whole, rows that are equal.
//! A copy keeps the id that the first run noted.

use crate::domain::config::{MetadataPlace, StoreConfig};
use crate::domain::error::Result;
use crate::domain::id::StoreId;
use crate::storage::backup::{RestoredDirectory, blocking};

#[cfg(feature = "postgres")]
use self::postgres::Reserved;
#[cfg(not(feature = "postgres"))]
use crate::worker::copying::records::without_postgres;

const RESTORING: &str = "restoring the records";

/// The place of the records.
pub(super) enum Records {
    /// In the data directory.
    Here,
    /// In a schema of PostgreSQL.
    #[cfg(feature = "postgres")]
    Elsewhere(Box<Reserved>),
}

impl Records {
    /// Prepares the place that the configuration names. `Unusable` if it has records. `has_retired` means
    /// that an earlier run of this restore put the records there.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(clippy::unused_async, unused_variables, reason = "its twin waits")
    )]
    pub(super) async fn reserve(
        config: &StoreConfig,
        store: StoreId,
        has_retired: bool,
    ) -> Result<Self> {
        match &config.metadata {
            MetadataPlace::Sqlite => Ok(Self::Here),
            #[cfg(feature = "postgres")]
            MetadataPlace::Postgres(place) => {
                let reserved =
                    Box::pin(Reserved::reserve(config, place, store, has_retired)).await?;
                Ok(Self::Elsewhere(Box::new(reserved)))
            }
            #[cfg(not(feature = "postgres"))]
            MetadataPlace::Postgres(_) => Err(without_postgres()),
        }
    }

    /// Ends the restore: all files are in `target`, and a database that is ready.
    pub(super) async fn finish(self, target: RestoredDirectory) -> Result<()> {
        match self {
            Self::Here => blocking(RESTORING, move || target.finish()).await,
            #[cfg(feature = "postgres")]
            Self::Elsewhere(reserved) => Box::pin(reserved.finish(target)).await,
        }
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use std::sync::Arc;

    use super::RESTORING;
    use crate::domain::config::{Durability, PostgresConfig, StoreConfig};
    use crate::domain::error::{Error, ErrorKind, Result};
    use crate::domain::id::StoreId;
    use crate::domain::time::clock::Clock;
    use crate::metadata::Upkeep as _;
    use crate::metadata::copying::CopySource;
    use crate::metadata::postgres::{PostgresMetadata, PostgresOptions};
    use crate::metadata::sqlite::SqliteMetadata;
    use crate::service::{MARKED, postgres_options};
    use crate::storage::backup::{RestoredDirectory, blocking};
    use crate::worker::copying::pair::{PAGE, Pair, try_backend};
    use crate::worker::running::progress::NoProgress;

    /// A schema that waits for the records of a restored store.
    pub(in crate::worker::backup) struct Reserved {
        options: PostgresOptions,
        store: StoreId,
        /// True if an earlier run has put the records there, to the end.
        is_done: bool,
    }

    impl Reserved {
        pub(super) async fn reserve(
            config: &StoreConfig,
            place: &PostgresConfig,
            store: StoreId,
            has_retired: bool,
        ) -> Result<Self> {
            let options = postgres_options(config, place)?;
            try_backend(config).await?;
            let is_done = PostgresMetadata::has_store(store, &options).await?;
            if is_done && !has_retired {
                return Err(has_records(&place.schema));
            }
            if !is_done {
                let to = PostgresMetadata::open_to_copy(store, CopySource::Current, &options);
                to.await?.close().await;
            }
            Ok(Self { options, store, is_done })
        }

        pub(super) async fn finish(self, target: RestoredDirectory) -> Result<()> {
            let target = Arc::new(target);
            if !self.is_done {
                self.copy(&target).await?;
            }
            let target = Arc::into_inner(target).expect("nothing works on it any more");
            blocking(RESTORING, move || target.conclude()).await
        }

        async fn copy(&self, target: &Arc<RestoredDirectory>) -> Result<()> {
            let (store, options) = (self.store, &self.options);
            let to = PostgresMetadata::open_to_copy(store, CopySource::Current, options).await?;
            let pair =
                Pair { from: open(target, store).await?, to, progress: &NoProgress, page: PAGE };
            pair.copy_all().await?;
            pair.to.number_on(pair.from.last_binding().await?).await?;
            pair.from.close().await;

            let directory = Arc::clone(target);
            blocking(RESTORING, move || directory.retire_database(store)).await?;
            pair.to.end_copy(Clock::system().now()).await?;
            pair.to.close().await;
            Ok(())
        }
    }

    /// Opens the database that was made ready, and notes in it that the directory has its markers: a server looks
    /// for them from now on.
    async fn open(target: &RestoredDirectory, store: StoreId) -> Result<SqliteMetadata> {
        let database = target.database();
        let opening =
            move || SqliteMetadata::open_known_as(store, &database, Durability::Full, None);
        let from = blocking(RESTORING, opening).await?;
        if from.store_id() != store {
            let message = format!(
                "the snapshot is of another store than its manifest says: {}",
                from.store_id()
            );
            return Err(Error::new(ErrorKind::Unusable, message));
        }
        from.put_settings([(MARKED.to_owned(), "1".to_owned())].into()).await?;
        Ok(from)
    }

    fn has_records(schema: &str) -> Error {
        let message = format!(
            "the schema {schema} has the records of this store, and a snapshot is restored into an empty one: name \
             another schema, or, if you no longer need these records, remove them first: DROP SCHEMA \"{schema}\" CASCADE"
        );
        Error::new(ErrorKind::Unusable, message).with_field("postgres.schema")
    }
}
