//! The set-up of connections: one for the writer, several for readers.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::statvfs;

use crate::domain::config::Durability;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::StoreId;
use crate::tasks::step::{Step, reached};

use super::{reread, room, schema};

/// The oldest SQLite that is safe. Earlier ones have the WAL-reset bug, which can corrupt a
/// database (<https://sqlite.org/wal.html>).
const OLDEST_SQLITE: i32 = 3_051_003;

/// The time for which a statement waits for another process's lock.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest wait of a call for its turn: for a connection to read with, or for a place in the writer's
/// queue.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Free space in bytes below which the disk is full: the index grows by 32 KiB.
const SCARCE: u64 = 64 << 10;

/// The number of statements a connection keeps prepared: more than the engine has.
const STATEMENTS: usize = 128;

/// Returns the flags of every connection. No `CREATE`: [`create`] makes the file, with its mode.
fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// Opens the writer's connection: creates the file if there is none, checks that it is ours, brings
/// its schema up to date. A store that has no id yet gets `store_id`.
pub(super) fn open_writer(
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
    Ok(connection)
}

/// Returns how far the database is synced.
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

/// Sets a reader's connection up, so that it cannot write.
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

/// Makes an empty file, readable by its owner only (the log and its index take over the mode), and
/// makes its name durable.
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

/// A failure to open: SQLite's, or a refusal of ours.
pub(super) enum OpenError {
    Sql(rusqlite::Error),
    Refused(Error),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl OpenError {
    /// Makes the error that a caller gets for the database at `path`.
    pub(super) fn into_error(self, path: &Path) -> Error {
        let error = match self {
            Self::Refused(error) => return error,
            Self::Sql(error) => error,
        };

        let code = error.sqlite_error_code();
        if is_for_lack_of_space(code, path) {
            return Error::new(ErrorKind::StorageFull, "the storage is full").with_source(error);
        }

        let message = match code {
            Some(ErrorCode::NotADatabase) => "the database file is not a SQLite database",
            Some(ErrorCode::DatabaseCorrupt) => "the database file is corrupt",
            Some(ErrorCode::CannotOpen) => "the database file cannot be opened",
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "the database is locked by another process"
            }
            _ => return Error::internal("opening the database", error),
        };

        Error::new(ErrorKind::Unusable, message).with_source(error)
    }
}

/// Tells whether the disk was too full for what SQLite tried. Of its index in shared memory and of
/// its log it says that they cannot be made, and not why.
fn is_for_lack_of_space(code: Option<ErrorCode>, path: &Path) -> bool {
    match code {
        Some(ErrorCode::DiskFull) => true,
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            let free = statvfs(path).map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
            free.is_ok_and(|free| free < SCARCE) || room::is_used_up(path)
        }
        _ => false,
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
