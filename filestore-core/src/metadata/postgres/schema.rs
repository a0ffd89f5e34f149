//! The schema and its versions.
//!
//! # Compatibility
//! `schema_versions` has a row for each migration that was applied; their list only ever gets longer, and
//! they only go forward. A migration says which programs can still work with its result (`readable_from`):
//! an older server goes on, and may start again, beside a newer one whose migration only added something.
//! A database of a newer program that does not allow that is refused untouched, and so is a schema that is
//! not ours.
//!
//! # Locking
//! Each migration is one transaction under an advisory lock, so that of several servers that start at the
//! same time one migrates and the others find it done.

use tokio_postgres::{Client, Transaction};

use crate::domain::id::StoreId;

use super::fault::Fault;

/// A step from one version of the schema to the next.
struct Migration {
    statements: &'static str,
    /// The oldest version whose programs can work with the result.
    readable_from: i32,
}

/// Never edited, only appended to.
const MIGRATIONS: &[Migration] =
    &[Migration { statements: include_str!("migrations/1.sql"), readable_from: 1 }];

/// The name of the row of the settings that holds the store's id. A trigger keeps the row as it is.
pub(super) const STORE_ID: &str = "store_id";

const LOCK: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('filestore schema ' || $1::text, 0))";

const HAS_VERSIONS: &str = "SELECT to_regclass($1::text || '.schema_versions') IS NOT NULL";

const HAS_TABLES: &str =
    "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace($1::text))";

/// A user who may not make schemas can be given one.
const HAS_SCHEMA: &str = "SELECT to_regnamespace($1::text) IS NOT NULL";

const VERSIONS: &str = "CREATE TABLE schema_versions (
     version integer NOT NULL PRIMARY KEY, readable_from integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())";

const VERSION: &str =
    "SELECT coalesce(max(version), 0), coalesce(max(readable_from), 0) FROM schema_versions";

const PUT_VERSION: &str = "INSERT INTO schema_versions (version, readable_from) VALUES ($1, $2)";

const PUT_ID: &str =
    "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";

const GET_ID: &str = "SELECT value FROM settings WHERE name = $1";

/// Brings the schema up to date, making it if it is not there. A store that has no id yet gets `store`.
/// Returns the id that it has.
pub(super) async fn migrate(
    connection: &mut Client,
    schema: &str,
    store: StoreId,
) -> Result<StoreId, Fault> {
    while !migrate_once(connection, schema).await? {}

    connection.execute(PUT_ID, &[&STORE_ID, &store.to_string()]).await?;
    let row = connection.query_one(GET_ID, &[&STORE_ID]).await?;
    let id: String = row.try_get(0)?;
    id.parse().map_err(|error: crate::domain::error::Error| Fault::Row {
        what: "the store".into(),
        source: error.into(),
    })
}

/// Applies the next migration; returns true if there was none left.
async fn migrate_once(connection: &mut Client, schema: &str) -> Result<bool, Fault> {
    let transaction = connection.transaction().await?;
    // Building an index of a large table takes its time, and so does waiting for a server that does it.
    transaction
        .batch_execute("SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO 0")
        .await?;
    transaction.execute(LOCK, &[&schema]).await?;
    let version = version(&transaction, schema).await?;

    let Some(migration) = MIGRATIONS.get(version) else {
        transaction.rollback().await?;
        return Ok(true);
    };
    transaction.batch_execute(migration.statements).await?;
    let next = i32::try_from(version + 1)?;
    transaction.execute(PUT_VERSION, &[&next, &migration.readable_from]).await?;
    transaction.commit().await?;
    tracing::info!(schema, version = next, "the schema of the database was brought up to date");
    Ok(false)
}

/// Reads the version of the schema, making an empty one. Refuses foreign and newer ones.
async fn version(transaction: &Transaction<'_>, schema: &str) -> Result<usize, Fault> {
    let is_ours: bool = transaction.query_one(HAS_VERSIONS, &[&schema]).await?.try_get(0)?;
    if !is_ours {
        let has_tables: bool = transaction.query_one(HAS_TABLES, &[&schema]).await?.try_get(0)?;
        if has_tables {
            return Err(Fault::Refused(format!(
                "the schema of the database belongs to another program: {schema}"
            )));
        }
        let exists: bool = transaction.query_one(HAS_SCHEMA, &[&schema]).await?.try_get(0)?;
        if !exists {
            transaction.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
        }
        transaction.batch_execute(VERSIONS).await?;
    }

    let row = transaction.query_one(VERSION, &[]).await?;
    let (version, readable_from): (i32, i32) = (row.try_get(0)?, row.try_get(1)?);
    let (version, readable_from) = (usize::try_from(version)?, usize::try_from(readable_from)?);
    let known = MIGRATIONS.len();
    if readable_from > known {
        return Err(Fault::Refused(format!(
            "the database was written by a newer version of this program: it knows schema {known}, the database has \
             {version}"
        )));
    }
    Ok(version)
}
