//! The schema and its versions.
//!
//! # Compatibility
//! `user_version` counts the applied migrations. Migrations are only added. A file of a newer program, or
//! without our `application_id`, is refused without changes.

use rusqlite::{Connection, TransactionBehavior};

use crate::domain::error::{Error, ErrorKind};
use crate::domain::id::StoreId;
use crate::tasks::step::{Step, reached};

use super::open_error::OpenError;
use super::store_id;

/// The text `FSTR`, in the header of every filestore database.
const APPLICATION_ID: i32 = 0x4653_5452;

/// The statements that each schema version adds. Never edit them, only append.
pub(in crate::metadata::sqlite) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
    include_str!("migrations/8.sql"),
    include_str!("migrations/9.sql"),
    include_str!("migrations/10.sql"),
    include_str!("migrations/11.sql"),
    include_str!("migrations/12.sql"),
];

/// The first schema version with a store id.
const HAS_ID: i64 = 3;

/// Reads the schema version of the file, or 0 if it is empty. Refuses foreign and newer files.
pub(super) fn identify(connection: &Connection) -> Result<usize, OpenError> {
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if (application, version, objects) == (0, 0, 0) {
        return Ok(0);
    }

    if application != APPLICATION_ID {
        let message = "the database file belongs to another program";
        return Err(Error::new(ErrorKind::Unusable, message).into());
    }

    match usize::try_from(version) {
        Ok(version) if version <= MIGRATIONS.len() => Ok(version),
        _ => {
            let known = MIGRATIONS.len();
            let message = format!(
                "the database was written by a newer version of this program: it knows schema {known}, the file has {version}"
            );
            Err(Error::new(ErrorKind::Unusable, message).into())
        }
    }
}

/// Updates the schema from `version`, with each step in its own transaction. A store without an id gets
/// `store_id`.
pub(super) fn migrate(
    connection: &mut Connection,
    version: usize,
    store_id: StoreId,
) -> rusqlite::Result<()> {
    let is_large = version > 0 && version < MIGRATIONS.len();
    if is_large {
        // A new index of many rows is sorted: on the disk, as memory is bounded. Adding a column checks
        // all rows, and a damaged one, which queries pass over, would keep the store from opening.
        connection
            .execute_batch("PRAGMA temp_store = FILE; PRAGMA ignore_check_constraints = ON;")?;
    }

    for (number, step) in (1_i64..).zip(MIGRATIONS).skip(version) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        if number == HAS_ID {
            store_id::put(&transaction, store_id)?;
        }

        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
        reached(Step::SchemaMigrated);
    }

    if is_large {
        connection
            .execute_batch("PRAGMA temp_store = MEMORY; PRAGMA ignore_check_constraints = OFF;")?;
    }
    Ok(())
}

/// Selects all objects of a schema with their executable text, except SQLite's own objects.
const OBJECTS: &str =
    "SELECT type, name, tbl_name, coalesce(rootpage, 0) = 0, CASE WHEN type IN ('trigger', 'view') THEN sql END
     FROM sqlite_schema WHERE NOT (type IN ('table', 'index') AND substr(name, 1, 7) = 'sqlite_')";

/// Refuses a database if its schema has additional objects compared with our schema of the same version.
/// Additional triggers and views would run with the first statement on their tables.
pub(super) fn expect_ours(connection: &Connection, version: usize) -> Result<(), OpenError> {
    let ours = Connection::open_in_memory()?;
    for step in &MIGRATIONS[..version] {
        ours.execute_batch(step)?;
    }

    let known = objects(&ours)?;
    match objects(connection)?.into_iter().find(|object| !known.contains(object)) {
        None => Ok(()),
        Some((kind, name, ..)) => {
            let message = format!(
                "the database contains an object that filestore did not create, and was not used: {kind} {name}"
            );
            Err(Error::new(ErrorKind::Unusable, message).into())
        }
    }
}

type Object = (String, String, String, bool, Option<String>);

fn objects(connection: &Connection) -> rusqlite::Result<Vec<Object>> {
    let mut statement = connection.prepare(OBJECTS)?;
    let objects = statement.query_map([], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    })?;
    objects.collect()
}
