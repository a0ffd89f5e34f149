//! Opening the records of a store whose database is not in its data directory.

use std::sync::Arc;

use super::last_used::Age;
#[cfg(feature = "postgres")]
use super::open::has_nothing;
use crate::domain::clock::Clock;
#[cfg(feature = "postgres")]
use crate::domain::config::PostgresConfig;
use crate::domain::config::StoreConfig;
use crate::domain::error::{Error, ErrorKind, Result};
#[cfg(feature = "postgres")]
use crate::domain::status::Location;
use crate::metadata::Metadata;
#[cfg(feature = "postgres")]
use crate::metadata::postgres::PostgresOptions;
use crate::storage::DataDir;
#[cfg(feature = "postgres")]
use crate::tasks;

/// Opens the database that the configuration names, and joins the servers that use it.
///
/// Bytes in a private directory are lost for other servers, which would take every file of this one for
/// damaged: so the configuration must name a backend that all share, or say that there is no other server.
#[cfg(feature = "postgres")]
pub(super) async fn open(
    config: &StoreConfig,
    clock: &Clock,
    dir: &DataDir,
) -> Result<(Arc<dyn Metadata>, Age)> {
    use crate::domain::config::MetadataPlace;
    use crate::domain::id::StoreId;
    use crate::metadata::postgres::{PostgresMetadata, ServerIdentity};
    use crate::metadata::{Company, Servers as _, Upkeep as _};

    let MetadataPlace::Postgres(place) = &config.metadata else {
        unreachable!("a database in the directory was opened with the directory");
    };
    if !place.only_server && !has_backend(config) {
        return Err(private_directory(
            "the records are in PostgreSQL and the files in a private directory",
        ));
    }

    let options = postgres_options(config, place)?.watched();
    let fresh = StoreId::generate(clock.now());
    let metadata = PostgresMetadata::open_known_as(fresh, &options).await?;
    let age = if metadata.store_id() == fresh { Age::New } else { Age::Old };
    if !place.only_server {
        metadata.check_clock(|| clock.now().as_millis()).await?;
        if !has_nothing(&metadata).await? {
            return Err(private_directory("some of the files are still in a private directory"));
        }
    }

    let dir = dir.clone();
    let name = tasks::blocking(move || dir.server_name()).await;
    let name = name.map_err(|lost| Error::internal("naming the server", lost))??;
    metadata.await_writers(&name).await?;
    metadata.join(ServerIdentity { name, is_only: place.only_server }).await?;
    if metadata.company() == Company::Others {
        tracing::info!("this server shares its database and its files with others");
    }
    Ok((Arc::new(metadata), age))
}

#[cfg(feature = "postgres")]
fn has_backend(config: &StoreConfig) -> bool {
    config.providers.iter().any(|provider| provider.location == Location::Local)
}

#[cfg(feature = "postgres")]
fn private_directory(fact: &str) -> Error {
    let message = format!(
        "{fact}, which other servers cannot read: set local.backend to a provider that all servers share, and move \
         what is in the directory there (`filestore migrate run --org N --to LOCAL`); or set postgres.only_server to \
         true if there are no other servers"
    );
    Error::new(ErrorKind::Unusable, message).with_field("postgres.only_server")
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
        .with_server_timeout(place.server_timeout)
        .with_durability(config.durability);
    Ok(match &place.password {
        Some(password) => options.with_password(password),
        None => options,
    })
}

/// Refuses: the program was built without the engine.
#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "its twin waits")]
pub(super) async fn open(
    _: &StoreConfig,
    _: &Clock,
    _: &DataDir,
) -> Result<(Arc<dyn Metadata>, Age)> {
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
