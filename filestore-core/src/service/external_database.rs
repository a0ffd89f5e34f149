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
    use crate::metadata::Upkeep as _;
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
    metadata.await_writers().await?;
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
mod tests;
