//! Opens a store with a database outside its data directory.

use std::sync::Arc;

use super::last_used::Age;
#[cfg(feature = "postgres")]
use super::open::has_nothing;
#[cfg(feature = "postgres")]
use crate::domain::config::PostgresConfig;
use crate::domain::config::{MetadataPlace, StoreConfig};
use crate::domain::error::{Error, ErrorKind, Result};
#[cfg(feature = "postgres")]
use crate::domain::file::status::Location;
use crate::domain::time::clock::Clock;
use crate::metadata::Metadata;
#[cfg(feature = "postgres")]
use crate::metadata::postgres::PostgresOptions;
use crate::storage::DataDir;
#[cfg(feature = "postgres")]
use crate::tasks;

/// Opens the configured database, and joins the servers that use it.
///
/// Other servers cannot see the bytes in a private directory, and would report every file there as damaged.
/// The configuration must therefore name a shared backend, or state that this is the only server.
#[cfg(feature = "postgres")]
pub(in crate::service) async fn open(
    config: &StoreConfig,
    clock: &Clock,
    dir: &DataDir,
) -> Result<(Arc<dyn Metadata>, Age)> {
    use crate::domain::id::StoreId;
    use crate::metadata::postgres::{PostgresMetadata, ServerIdentity};
    use crate::metadata::{Company, Upkeep as _};

    let MetadataPlace::Postgres(place) = &config.metadata else {
        unreachable!("a database in the directory was opened with the directory");
    };
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
    let metadata: Arc<dyn Metadata> = Arc::new(metadata);
    if metadata.company() == Company::Others {
        tracing::info!("this server shares its database and its files with others");
    }
    Ok((metadata, age))
}

/// Checks the settings of a database elsewhere, without connecting.
#[cfg(feature = "postgres")]
pub(super) fn check(config: &StoreConfig) -> Result<()> {
    let MetadataPlace::Postgres(place) = &config.metadata else { return Ok(()) };
    if !place.only_server && !has_backend(config) {
        return Err(private_directory(
            "the records are in PostgreSQL and the files in a private directory",
        ));
    }
    postgres_options(config, place)?.check()
}

#[cfg(feature = "postgres")]
fn has_backend(config: &StoreConfig) -> bool {
    config.providers.iter().any(|provider| provider.location == Location::Local)
}

#[cfg(feature = "postgres")]
fn private_directory(fact: &str) -> Error {
    let message = format!(
        "{fact}, which other servers cannot read: set local.backend to a provider that all servers share, and move \
         the files there with `filestore migrate run --org N --to LOCAL`. If there are no other servers, set \
         postgres.only_server to true"
    );
    Error::new(ErrorKind::Unusable, message).with_field("postgres.only_server")
}

/// Converts the configured database to options for the engine.
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

/// Returns an error, because the program was built without the engine.
#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "its twin waits")]
pub(in crate::service) async fn open(
    config: &StoreConfig,
    _: &Clock,
    _: &DataDir,
) -> Result<(Arc<dyn Metadata>, Age)> {
    check(config)?;
    unreachable!("a database in the directory was opened with the directory");
}

/// Refuses a database elsewhere: the program was built without the engine.
#[cfg(not(feature = "postgres"))]
pub(super) fn check(config: &StoreConfig) -> Result<()> {
    if config.metadata == MetadataPlace::Sqlite {
        return Ok(());
    }
    let message =
        "the records are in PostgreSQL, and this program was built without the feature postgres";
    Err(Error::new(ErrorKind::Unusable, message).with_field("metadata"))
}

/// These tests need a server: `tests/services/postgres/run` starts one.
#[cfg(all(test, feature = "postgres"))]
mod tests;
