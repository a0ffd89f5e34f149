//! Opening the records of a store whose database is not in its data directory.

use std::sync::Arc;

use super::last_used::Age;
use crate::domain::clock::Clock;
#[cfg(feature = "postgres")]
use crate::domain::config::PostgresConfig;
use crate::domain::config::StoreConfig;
use crate::domain::error::Result;
use crate::metadata::Metadata;
#[cfg(feature = "postgres")]
use crate::metadata::postgres::PostgresOptions;

/// Opens the database that the configuration names.
///
/// The bytes are in a directory that other servers do not see. So another server that used the same records
/// would take every file of this one for lost: the configuration must say that there is none.
#[cfg(feature = "postgres")]
pub(super) async fn open(config: &StoreConfig, clock: &Clock) -> Result<(Arc<dyn Metadata>, Age)> {
    use crate::domain::config::MetadataPlace;
    use crate::domain::error::{Error, ErrorKind};
    use crate::domain::id::StoreId;
    use crate::metadata::postgres::PostgresMetadata;

    let MetadataPlace::Postgres(place) = &config.metadata else {
        unreachable!("a database in the directory was opened with the directory");
    };
    if !place.only_server {
        let message = "the records are in PostgreSQL and the files in a private directory, which other servers cannot \
                       read: set postgres.only_server to true if there are none";
        return Err(Error::new(ErrorKind::Unusable, message).with_field("postgres.only_server"));
    }

    let options = postgres_options(config, place)?;
    let fresh = StoreId::generate(clock.now());
    let metadata = PostgresMetadata::open_known_as(fresh, &options).await?;
    let age = if metadata.store_id() == fresh { Age::New } else { Age::Old };
    Ok((Arc::new(metadata), age))
}

/// Describes the database that a configuration names to the engine.
#[cfg(feature = "postgres")]
pub(crate) fn postgres_options(
    config: &StoreConfig,
    place: &PostgresConfig,
) -> Result<PostgresOptions> {
    let options = PostgresOptions::new(&place.address)?
        .with_schema(&place.schema)
        .with_connections(place.connections)
        .with_durability(config.durability);
    Ok(match &place.password {
        Some(password) => options.with_password(password),
        None => options,
    })
}

/// Refuses: the program was built without the engine.
#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "its twin waits")]
pub(super) async fn open(_: &StoreConfig, _: &Clock) -> Result<(Arc<dyn Metadata>, Age)> {
    use crate::domain::error::{Error, ErrorKind};

    let message =
        "the records are in PostgreSQL, and this program was built without the feature postgres";
    Err(Error::new(ErrorKind::Unusable, message).with_field("metadata"))
}

#[cfg(all(test, not(feature = "postgres")))]
mod tests {
    use crate::domain::config::{MetadataPlace, PostgresConfig, StoreConfig};
    use crate::domain::error::ErrorKind;
    use crate::service::FileStore;

    #[tokio::test]
    async fn without_the_feature_the_refusal_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let place = PostgresConfig::new("postgres://u@127.0.0.1/d");
        let config =
            StoreConfig { metadata: MetadataPlace::Postgres(place), ..StoreConfig::default() };
        let error = FileStore::builder(dir.path()).config(config).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unusable);
        assert!(error.to_string().contains("without the feature postgres"), "{error}");
    }
}

/// They need a server: `tests/services/postgres/run` starts one.
#[cfg(all(test, feature = "postgres"))]
mod tests {
    use std::path::Path;

    use crate::domain::config::{Durability, MetadataPlace, PostgresConfig, StoreConfig};
    use crate::domain::error::ErrorKind;
    use crate::domain::scope::Scope;
    use crate::metadata::postgres::tests::Schema;
    use crate::service::{FileStore, NewUpload};

    fn config(schema: &Schema) -> StoreConfig {
        let mut place = PostgresConfig::new(std::env::var("FILESTORE_TEST_POSTGRES").unwrap());
        schema.name().clone_into(&mut place.schema);
        place.connections = 4;
        place.only_server = true;
        StoreConfig {
            metadata: MetadataPlace::Postgres(place),
            durability: Durability::Process,
            ..StoreConfig::default()
        }
    }

    async fn open(dir: &Path, schema: &Schema) -> crate::domain::error::Result<FileStore> {
        FileStore::builder(dir).config(config(schema)).open().await
    }

    fn new() -> NewUpload {
        NewUpload::new("42".parse().unwrap(), "docs".parse().unwrap())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_store_keeps_its_records_in_postgres_and_its_bytes_in_its_directory() {
        let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
        let store = open(dir.path(), &schema).await.unwrap();
        let id = store.inner.metadata.store_id();
        let record = store.upload(new(), &b"bytes"[..]).await.unwrap();
        assert_eq!(store.read(record.file_id, &Scope::All).await.unwrap(), "bytes");
        store.close().await;
        drop(store);
        assert!(!dir.path().join("metadata.sqlite3").exists());

        let again = open(dir.path(), &schema).await.unwrap();
        assert_eq!(again.inner.metadata.store_id(), id);
        assert_eq!(again.read(record.file_id, &Scope::All).await.unwrap(), "bytes");
        again.close().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn another_stores_directory_is_refused() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let sqlite = FileStore::open(other.path()).await.unwrap();
        sqlite.close().await;
        drop(sqlite);

        let schema = Schema::new();
        for _ in ["new records", "records that were made by the first attempt"] {
            let error = open(other.path(), &schema).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unusable, "{error}");
        }
        let store = open(dir.path(), &schema).await.unwrap();
        store.close().await;
        drop(store);

        let elsewhere = tempfile::tempdir().unwrap();
        let error = open(elsewhere.path(), &schema).await.unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Unusable,
            "an empty directory is not the one of these records"
        );
        let error = FileStore::open(dir.path()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unusable, "nor is SQLite what has them");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_private_directory_needs_the_word_that_there_is_no_other_server() {
        let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
        let mut config = config(&schema);
        let MetadataPlace::Postgres(place) = &mut config.metadata else { panic!("{config:?}") };
        place.only_server = false;
        let error = FileStore::builder(dir.path()).config(config).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unusable);
        assert!(error.to_string().contains("postgres.only_server"), "{error}");
    }
}
