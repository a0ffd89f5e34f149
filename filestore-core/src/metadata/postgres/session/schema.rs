//! The schema and its versions.
//!
//! # Compatibility
//! `schema_versions` has a row for each applied migration. Migrations are only added, and never undone. A
//! migration states which programs can still use its result (`readable_from`). If a migration only adds
//! things, older servers continue and can even restart while newer servers run. If a database is too new for
//! this program, or its schema is foreign, the engine refuses it without changes.
//!
//! # Locking
//! Each migration is one transaction under an advisory lock. If several servers start at the same time, one
//! migrates, and the others find it done.

use tokio_postgres::{Client, Transaction};

use crate::domain::id::StoreId;
use crate::metadata::copying::{CopySource, TABLES, Table};

use super::fault::Fault;

/// A step from one version of the schema to the next.
struct Migration {
    statements: &'static str,
    /// The oldest schema version with programs that can use the result.
    readable_from: i32,
}

/// The migrations. Never edit them, only append.
const MIGRATIONS: &[Migration] = &[
    Migration { statements: include_str!("migrations/1.sql"), readable_from: 1 },
    // The programs before it end everybody's leases when they start.
    Migration { statements: include_str!("migrations/2.sql"), readable_from: 2 },
    Migration { statements: include_str!("migrations/3.sql"), readable_from: 2 },
    Migration { statements: include_str!("migrations/4.sql"), readable_from: 2 },
    Migration { statements: include_str!("migrations/5.sql"), readable_from: 2 },
    Migration { statements: include_str!("migrations/6.sql"), readable_from: 2 },
    Migration { statements: include_str!("migrations/7.sql"), readable_from: 2 },
    Migration { statements: include_str!("migrations/8.sql"), readable_from: 2 },
    Migration { statements: include_str!("migrations/9.sql"), readable_from: 2 },
    Migration { statements: include_str!("migrations/10.sql"), readable_from: 2 },
    Migration { statements: include_str!("migrations/11.sql"), readable_from: 2 },
    Migration { statements: include_str!("migrations/12.sql"), readable_from: 2 },
];

/// The version of the schema that this program works with.
pub(super) const KNOWN: usize = MIGRATIONS.len();

/// The name of the row of the settings that holds the store's id. A trigger keeps the row as it is.
pub(super) const STORE_ID: &str = "store_id";

const LOCK: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('filestore schema ' || $1::text, 0))";

// The catalogs are asked as tables: `to_regclass` and its like may answer by what the session knew before it
// waited for the lock.

const HAS_VERSIONS: &str =
    "SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1::text AND c.relname = 'schema_versions')";

const HAS_TABLES: &str =
    "SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1::text)";

/// True if the schema exists. A user without the right to create schemas can get an existing schema.
const HAS_SCHEMA: &str = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1::text)";

/// Marks a schema into which records are being copied, with the store's id. Until the mark is removed, no
/// server opens the schema.
const COPY: &str = "CREATE TABLE copy_under_way (store_id text COLLATE \"C\" NOT NULL)";

const PUT_COPY: &str = "INSERT INTO copy_under_way (store_id) VALUES ($1)";

const HAS_COPY: &str =
    "SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1::text AND c.relname = 'copy_under_way')";

const COPIED_STORE: &str = "SELECT store_id FROM copy_under_way";

/// Lets the first opening begin the log of events with `log.gap`, because the copied events are left out.
pub(in crate::metadata::postgres) const BEGIN_LOG: &str =
    "UPDATE event_log SET off_since = $1 WHERE NOT is_on";

/// Ends a copy of records. Servers can open the schema from then on.
pub(in crate::metadata::postgres) const END_COPY: &str = "DROP TABLE copy_under_way";

const VERSIONS: &str = "CREATE TABLE schema_versions (
     version integer NOT NULL PRIMARY KEY, readable_from integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())";

const READ_VERSION: &str =
    "SELECT coalesce(max(version), 0), coalesce(max(readable_from), 0) FROM schema_versions";

const PUT_VERSION: &str = "INSERT INTO schema_versions (version, readable_from) VALUES ($1, $2)";

const PUT_ID: &str =
    "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";

const FORGET_ID: &str = "DELETE FROM settings WHERE name = $1";

const HAS_TABLE: &str = "SELECT to_regclass($1::text) IS NOT NULL";

const GET_ID: &str = "SELECT value FROM settings WHERE name = $1";

/// Updates the schema, and creates it if it does not exist. A store without an id gets the id `store`.
/// Returns the store's id.
pub(in crate::metadata::postgres) async fn migrate(
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

/// Refuses a schema into which records are being copied.
pub(in crate::metadata::postgres) async fn refuse_unfinished(
    connection: &Client,
    schema: &str,
) -> Result<(), Fault> {
    let is_unfinished: bool = connection.query_one(HAS_COPY, &[&schema]).await?.try_get(0)?;
    if !is_unfinished {
        return Ok(());
    }
    Err(Fault::Refused(format!(
        "records are being copied into the schema {schema}: run `filestore metadata copy` or `filestore backup \
         restore` to its end"
    )))
}

/// Returns true if a schema contains the complete records of `store`.
pub(in crate::metadata::postgres) async fn has_store(
    connection: &Client,
    schema: &str,
    store: StoreId,
) -> Result<bool, Fault> {
    let is_ours: bool = connection.query_one(HAS_VERSIONS, &[&schema]).await?.try_get(0)?;
    let is_unfinished: bool = connection.query_one(HAS_COPY, &[&schema]).await?.try_get(0)?;
    let has_settings: bool = connection.query_one(HAS_TABLE, &[&"settings"]).await?.try_get(0)?;
    if !is_ours || is_unfinished || !has_settings {
        return Ok(false);
    }
    let known = connection.query_opt(GET_ID, &[&STORE_ID]).await?;
    let known: Option<String> = known.map(|row| row.try_get(0)).transpose()?;
    Ok(known == Some(store.to_string()))
}

/// Creates a schema for copying the records of `store`, with a mark that prevents servers from opening it.
/// Continues an unfinished copy of the same store. Takes over a schema that a server created and left empty.
/// Refuses any other existing schema.
pub(in crate::metadata::postgres) async fn begin_copy(
    connection: &mut Client,
    schema: &str,
    store: StoreId,
    source: CopySource,
) -> Result<(), Fault> {
    let transaction = connection.transaction().await?;
    transaction.execute(LOCK, &[&schema]).await?;
    let is_ours: bool = transaction.query_one(HAS_VERSIONS, &[&schema]).await?.try_get(0)?;
    if is_ours && goes_on(&transaction, schema, store).await? {
        return Ok(());
    }
    if source == CopySource::Former {
        return Err(copied_before());
    }

    if is_ours {
        take_over(&transaction, schema, store).await?;
    } else {
        make(&transaction, schema).await?;
    }
    transaction.batch_execute(COPY).await?;
    transaction.execute(PUT_COPY, &[&store.to_string()]).await?;
    Ok(transaction.commit().await?)
}

/// Returns true if a copy of `store` into a schema is unfinished. Refuses a schema with an unfinished copy of
/// another store.
async fn goes_on(
    transaction: &Transaction<'_>,
    schema: &str,
    store: StoreId,
) -> Result<bool, Fault> {
    let is_unfinished: bool = transaction.query_one(HAS_COPY, &[&schema]).await?.try_get(0)?;
    if !is_unfinished {
        return Ok(false);
    }
    let row = transaction.query_one(COPIED_STORE, &[]).await?;
    let copied: &str = row.try_get(0)?;
    if copied == store.to_string() {
        return Ok(true);
    }
    Err(Fault::Refused(format!(
        "the records of another store are being copied into {schema}: {copied}"
    )))
}

/// Removes the id from a schema that contains only an id. A server that was started on the data directory too
/// early, and refused it, leaves such a schema.
async fn take_over(
    transaction: &Transaction<'_>,
    schema: &str,
    store: StoreId,
) -> Result<(), Fault> {
    // Refuses one of a newer program.
    version(transaction, schema).await?;
    let known = transaction.query_opt(GET_ID, &[&STORE_ID]).await?;
    let known: Option<String> = known.map(|row| row.try_get(0)).transpose()?;
    if known == Some(store.to_string()) {
        return Err(Fault::Refused(format!(
            "the records of this store were copied to the schema {schema} before: start the server with it"
        )));
    }

    for table in TABLES {
        let there: bool = transaction.query_one(HAS_TABLE, &[&table.name]).await?.try_get(0)?;
        if there && transaction.query_opt(any_row(table).as_str(), &[]).await?.is_some() {
            return Err(Fault::Refused(format!(
                "the schema {schema} has the records of a store: its table {} is not empty. Name another schema. If you \
                 no longer need the records, delete them first: DROP SCHEMA \"{schema}\" CASCADE",
                table.name
            )));
        }
    }
    transaction.execute(FORGET_ID, &[&STORE_ID]).await?;
    Ok(())
}

/// Returns the query for any row of a table that belongs to a store in use.
fn any_row(table: &Table) -> String {
    match table.name {
        "settings" => format!("SELECT 1 FROM settings WHERE name <> '{STORE_ID}' LIMIT 1"),
        name => format!("SELECT 1 FROM {name} LIMIT 1"),
    }
}

fn copied_before() -> Fault {
    let message = "the records of this data directory were copied to PostgreSQL before, and only that database has the \
                   newer records: start the server with that database, or restore its backup";
    Fault::Refused(message.to_owned())
}

/// Applies the next migration. Returns true if there was none.
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

/// Reads the version of the schema. Creates an empty schema if necessary. Refuses foreign and newer schemas.
async fn version(transaction: &Transaction<'_>, schema: &str) -> Result<usize, Fault> {
    let is_ours: bool = transaction.query_one(HAS_VERSIONS, &[&schema]).await?.try_get(0)?;
    if !is_ours {
        make(transaction, schema).await?;
    }

    let row = transaction.query_one(READ_VERSION, &[]).await?;
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

/// Creates an empty schema. Refuses a foreign schema.
async fn make(transaction: &Transaction<'_>, schema: &str) -> Result<(), Fault> {
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
    Ok(transaction.batch_execute(VERSIONS).await?)
}
