//! Configures connections: one for the writer, and several for readers.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::domain::config::Durability;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::StoreId;
use crate::tasks::step::{Step, reached};

use super::open_error::OpenError;
use super::{reread, schema};

/// The oldest safe version of SQLite. Earlier versions have the WAL-reset bug, which can corrupt a database
/// (<https://sqlite.org/wal.html>).
const OLDEST_SQLITE: i32 = 3_051_003;

/// The time for which a statement waits for another process's lock.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum wait of a call for a reader connection, or for a place in the writer's queue.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The number of prepared statements in a connection. The limit exceeds the number of the engine's
/// statements.
const STATEMENTS: usize = 128;

/// Returns the flags of every connection. `CREATE` is missing, because [`create`] creates the file with its
/// mode.
fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// Opens the writer's connection. Creates the file if necessary, checks that it belongs to filestore, and
/// updates its schema. A store without an id gets `store_id`.
pub(in crate::metadata::sqlite) fn open_writer(
    path: &Path,
    durability: Durability,
    store_id: StoreId,
) -> Result<Connection> {
    check_library(rusqlite::version_number())?;
    create(path, durability)?;
    reread::drop_cached(path, durability)?;
    connect_writer(path, durability, store_id).map_err(|error| error.into_error(path))
}

fn connect_writer(
    path: &Path,
    durability: Durability,
    store_id: StoreId,
) -> Result<Connection, OpenError> {
    let mut connection = Connection::open_with_flags(path, flags())?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let version = schema::identify(&connection)?;

    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let message =
            format!("the database cannot use a write-ahead log here, its journal mode is {mode}");
        return Err(Error::new(ErrorKind::Unusable, message).into());
    }

    set_up(&connection)?;
    connection.execute_batch(synchronous(durability))?;
    connection.execute_batch("PRAGMA journal_size_limit = 4194304; PRAGMA cache_size = -16384;")?;
    reread::checkpoint(&connection)?;
    schema::migrate(&mut connection, version, store_id)?;
    #[cfg(feature = "sabotage")]
    if crate::tasks::sabotage::takes(crate::tasks::sabotage::Part::Events) {
        connection.execute_batch("DROP TRIGGER IF EXISTS events_update")?;
    }
    Ok(connection)
}

/// Returns the sync level of the database.
fn synchronous(durability: Durability) -> &'static str {
    #[cfg(feature = "sabotage")]
    if crate::tasks::sabotage::takes(crate::tasks::sabotage::Part::Fsync) {
        return "PRAGMA synchronous = OFF;";
    }

    match durability {
        // fullfsync: on macOS a plain fsync does not reach the medium.
        Durability::Full => {
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;"
        }
        // The log is synced before a checkpoint, and the database after it: a power cut takes the last
        // commits, and never a part of one.
        Durability::Process => "PRAGMA synchronous = NORMAL;",
    }
}

/// Configures a reader's connection, so that it cannot write.
pub(super) fn set_up_reader(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    set_up(connection)?;
    connection.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -8192;")
}

/// Returns the flags of a reader's connection.
pub(super) fn reader_flags() -> OpenFlags {
    flags()
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    // The writer alone checkpoints, when nobody waits; after an I/O error nobody may.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Query planner stability: else a statement whose plan might profit from the value of a parameter, such
    // as any with a bound LIMIT, is compiled anew for each value. Every plan here is meant for all values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // temp_store: the savepoints' journal must not depend on another file system being writable.
    // mmap_size: an I/O error must be an error, not a signal.
    connection.execute_batch(
        "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 0;
         PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 0;",
    )
}

fn check_library(version: i32) -> Result<()> {
    if version >= OLDEST_SQLITE {
        return Ok(());
    }
    let message = format!("SQLite must be 3.51.3 or newer, linked is {}", rusqlite::version());
    Err(Error::new(ErrorKind::Unusable, message))
}

/// Creates an empty file that only its owner can read, and makes its name durable. The log and its index copy
/// the mode.
fn create(path: &Path, durability: Durability) -> Result<()> {
    let doing = "creating the database";
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) if durability == Durability::Full => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let directory = File::open(parent.unwrap_or(Path::new(".")));
            directory
                .and_then(|directory| directory.sync_all())
                .map_err(|error| Error::io(doing, error))?;
            reached(Step::DatabaseMade);
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(Error::io(doing, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sqlite_with_the_wal_reset_bug_is_refused() {
        assert!(check_library(3_051_003).is_ok());
        assert_eq!(check_library(3_051_002).unwrap_err().kind(), ErrorKind::Unusable);
        assert!(check_library(rusqlite::version_number()).is_ok(), "the bundled one");
    }
}
