//! The schema and its versions.
//!
//! # Compatibility
//! `user_version` counts the migrations that were applied; their list only ever gets longer. A file of a
//! newer program is refused untouched, and so is a file that is not ours (`application_id`).

use rusqlite::{Connection, TransactionBehavior};

use crate::domain::error::{Error, ErrorKind};
use crate::domain::id::StoreId;
use crate::tasks::step::{Step, reached};

use super::connection::OpenError;
use super::settings;

/// The text `FSTR`, in the header of every database file of ours.
const APPLICATION_ID: i32 = 0x4653_5452;

/// The statements that each schema version adds to the one before it. Never edited, only appended
/// to.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
];

/// The version from which on the store has an id.
const HAS_ID: i64 = 3;

/// Reads the schema version of the file: 0 if it is empty. Refuses foreign and newer files.
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

/// Brings the schema from `version` up to date, each step in its own transaction. A store that has
/// no id yet gets `store_id`.
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
            settings::put_id(&transaction, store_id)?;
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
