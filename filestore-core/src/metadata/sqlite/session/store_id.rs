//! The store's id, in a row of its settings.

use rusqlite::Connection;

use crate::domain::id::StoreId;

use super::fault::{Fault, Source};
use crate::metadata::sqlite::tables::row;

/// The name of the setting with the store's id. A trigger protects the row.
pub(super) const STORE_ID: &str = "store_id";

pub(in crate::metadata::sqlite) const ONE: &str = "SELECT value FROM settings WHERE name = ?1";

const INSERT: &str = "INSERT INTO settings (name, value) VALUES (?1, ?2)";

/// Writes the id of a store without an id.
pub(super) fn put(sql: &Connection, id: StoreId) -> rusqlite::Result<()> {
    sql.execute(INSERT, [STORE_ID, &id.to_string()]).map(drop)
}

/// Reads the store's id.
pub(in crate::metadata::sqlite) fn read(sql: &Connection) -> Result<StoreId, Fault> {
    let id = row::first(sql, ONE, [STORE_ID], |row| row::parse(row, 0).map_err(inconsistent))?;
    id.ok_or_else(|| inconsistent("the store has no id".into()))
}

fn inconsistent(source: Source) -> Fault {
    Fault::Row { what: "the store".into(), source }
}
