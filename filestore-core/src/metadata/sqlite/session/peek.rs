//! A look into the database of a store that is not open here. Another process can have it open.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags};

use super::connection::set_up_reader;
use super::open_error::OpenError;
use super::schema;
use crate::domain::error::Result;
use crate::metadata::sqlite::tables::keys::ANY;

const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Tests whether the database at `path` has API keys. Changes nothing in it, and brings no schema up to
/// date. `Unusable` for the file of another program or a newer version. Blocks.
pub(crate) fn has_keys(path: &Path) -> Result<bool> {
    // Without a log, everything is in the file. SQLite would make a log and its index all the same. A server that
    // began to write meanwhile has a log now.
    if !has_log(path)
        && let Ok(has_keys) = look(open_immutable(path))
        && !has_log(path)
    {
        return Ok(has_keys);
    }
    look(Connection::open_with_flags(path, FLAGS)).map_err(|error| error.into_error(path))
}

fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// Opens a file without a writer. SQLite then creates no file.
fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    let name = percent_encode(path.as_os_str().as_bytes(), NON_ALPHANUMERIC);
    let uri = format!("file:{name}?immutable=1");
    Connection::open_with_flags(uri, FLAGS | OpenFlags::SQLITE_OPEN_URI)
}

fn look(opened: rusqlite::Result<Connection>) -> Result<bool, OpenError> {
    const HAS_TABLE: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'api_keys')";
    let connection = opened?;
    set_up_reader(&connection)?;
    schema::identify(&connection)?;

    let has_table: bool = connection.query_row(HAS_TABLE, [], |row| row.get(0))?;
    if !has_table {
        return Ok(false);
    }
    Ok(connection.query_row(ANY, [], |row| row.get(0))?)
}
