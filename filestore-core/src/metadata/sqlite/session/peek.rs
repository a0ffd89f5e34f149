//! A look into the database of a store that is not open here. Another process can have it open.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::connection::set_up_reader;
use super::open_error::OpenError;
use super::schema;
use crate::domain::error::Result;
use crate::metadata::sqlite::tables::keys::ANY;

/// Tests whether the database at `path` has API keys. Changes nothing in it, and brings no schema up to
/// date. `Unusable` for the file of another program or a newer version. Blocks.
pub(crate) fn has_keys(path: &Path) -> Result<bool> {
    look(path).map_err(|error| error.into_error(path))
}

fn look(path: &Path) -> Result<bool, OpenError> {
    const HAS_TABLE: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'api_keys')";
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    set_up_reader(&connection)?;
    schema::identify(&connection)?;

    let has_table: bool = connection.query_row(HAS_TABLE, [], |row| row.get(0))?;
    if !has_table {
        return Ok(false);
    }
    Ok(connection.query_row(ANY, [], |row| row.get(0))?)
}
