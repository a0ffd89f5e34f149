//! Tests of what is particular to PostgreSQL, and the contract suite. They need a server:
//! `tests/services/postgres/run` starts one.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::runtime::Handle;
use tokio::task::block_in_place;

use super::{PostgresMetadata, PostgresOptions};
use crate::domain::config::{Durability, MetadataPlace, PostgresConfig, StoreConfig};

pub(crate) mod proxy;
mod opening;
mod plans;
mod rows;
mod damage;
mod events;
mod faults;
mod servers;
mod members;
mod contract {
    crate::metadata::contract::contract_tests!(
        [ignore = "needs PostgreSQL: tests/services/postgres/run"] crate::metadata::postgres::tests::fresh
    );
}

/// The variable with the address of a server for tests, whose user may create schemas.
const ADDRESS: &str = "FILESTORE_TEST_POSTGRES";

/// Returns the address of the server for tests.
pub(crate) fn address() -> String {
    std::env::var(ADDRESS).unwrap()
}

/// Makes the configuration of a store whose records are in a schema of the database at `address`.
pub(crate) fn store_config_at(address: String, schema: &str) -> StoreConfig {
    let mut place = PostgresConfig::new(address);
    schema.clone_into(&mut place.schema);
    place.connections = 4;
    place.only_server = true;
    StoreConfig {
        metadata: MetadataPlace::Postgres(place),
        durability: Durability::Process,
        ..StoreConfig::default()
    }
}

/// A schema of a test's own, dropped with it.
pub(crate) struct Schema(PostgresOptions);

impl Schema {
    /// Names a schema that no other test has.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);

        let address = std::env::var(ADDRESS).unwrap_or_else(|_| {
            panic!("{ADDRESS} is not set: run these tests by tests/services/postgres/run")
        });
        let name = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let options = PostgresOptions::new(&address).unwrap();
        Self(options.with_schema(name).with_connections(8).with_durability(Durability::Process))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.schema
    }

    /// Counts the rows of a table.
    pub(crate) fn count(&self, table: &str) -> i64 {
        wait(async {
            let (client, connection) = self.0.server.connect(tokio_postgres::NoTls).await.unwrap();
            let driver = tokio::spawn(connection);
            let query = format!("SELECT count(*) FROM {}.{table}", self.0.schema);
            let count = client.query_one(&query, &[]).await.unwrap().get(0);
            drop(client);
            driver.await.unwrap().unwrap();
            count
        })
    }

    /// Makes the configuration of a store whose records are in the schema.
    pub(crate) fn store_config(&self) -> StoreConfig {
        store_config_at(std::env::var(ADDRESS).unwrap(), self.name())
    }

    pub(super) fn options(&self) -> PostgresOptions {
        self.0.clone()
    }

    /// Opens a server's engine on the schema.
    pub(super) fn open(&self) -> PostgresMetadata {
        wait(PostgresMetadata::open(&self.0)).unwrap()
    }

    /// Runs statements on a connection of their own.
    pub(crate) fn run(&self, statements: &str) {
        run(&self.0, [&format!("SET search_path TO {}", self.0.schema), statements]);
    }

    /// Runs statements as the server's superuser.
    pub(super) fn run_as_super(statements: &str) {
        let address = std::env::var("FILESTORE_TEST_POSTGRES_SUPER").unwrap();
        run(&PostgresOptions::new(&address).unwrap(), ["", statements]);
    }
}

/// Runs statements on a connection of their own, which `first` prepares.
fn run(options: &PostgresOptions, [first, statements]: [&str; 2]) {
    wait(async {
        let (client, connection) = options.server.connect(tokio_postgres::NoTls).await.unwrap();
        let driver = tokio::spawn(connection);
        client.batch_execute(first).await.unwrap();
        client.batch_execute(statements).await.unwrap();
        drop(client);
        driver.await.unwrap().unwrap();
    });
}

impl Drop for Schema {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.run(&format!(
                "SET client_min_messages TO warning; DROP SCHEMA IF EXISTS {} CASCADE",
                self.0.schema
            ));
        }
    }
}

/// Lets the script beside which the tests run do something with a server; returns what it says.
async fn service(arguments: &[&str]) -> String {
    let service = std::env::var("FILESTORE_TEST_POSTGRES_SERVICE").unwrap();
    let mut run = std::process::Command::new(service);
    run.args(arguments);
    let done = crate::tasks::blocking(move || run.output()).await.unwrap().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// Waits for a future on a thread of the test's runtime.
#[expect(
    clippy::disallowed_methods,
    reason = "the suite's functions that make an engine do not wait"
)]
fn wait<T>(future: impl Future<Output = T>) -> T {
    block_in_place(|| Handle::current().block_on(future))
}

/// An empty store in a schema of its own.
pub(super) fn fresh() -> (PostgresMetadata, Schema) {
    let schema = Schema::new();
    (schema.open(), schema)
}
