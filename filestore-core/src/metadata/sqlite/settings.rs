//! The store's own settings: its id, and what a server last worked by.

use std::collections::BTreeMap;

use rusqlite::Connection;

use crate::domain::id::StoreId;

use super::fault::{Fault, Source};
use super::row;

/// The name of the row that holds the store's id. A trigger keeps the row as it is.
const STORE_ID: &str = "store_id";

const ALL: &str = "SELECT name, value FROM settings";

pub(super) const ONE: &str = "SELECT value FROM settings WHERE name = ?1";

const INSERT: &str = "INSERT INTO settings (name, value) VALUES (?1, ?2)";

pub(super) const PUT: &str = "INSERT INTO settings (name, value) VALUES (?1, ?2)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value <> excluded.value";

/// Writes the id of a store that has none yet.
pub(super) fn put_id(sql: &Connection, id: StoreId) -> rusqlite::Result<()> {
    sql.execute(INSERT, [STORE_ID, &id.to_string()]).map(drop)
}

/// Reads the id of the store.
pub(super) fn id(sql: &Connection) -> Result<StoreId, Fault> {
    let id = row::first(sql, ONE, [STORE_ID], |row| row::parse(row, 0).map_err(inconsistent))?;
    id.ok_or_else(|| inconsistent("the store has no id".into()))
}

fn inconsistent(source: Source) -> Fault {
    Fault::Row { what: "the store".into(), source }
}

/// Reads all settings but the id.
pub(super) fn all(sql: &Connection) -> Result<BTreeMap<String, String>, Fault> {
    let mut all: BTreeMap<_, _> =
        row::collect(sql, ALL, [], |row| Ok((row.get(0)?, row.get(1)?)))?.into_iter().collect();
    all.remove(STORE_ID);
    Ok(all)
}

/// Writes settings, in the place of earlier values of the same names.
pub(super) fn put(sql: &Connection, values: &BTreeMap<String, String>) -> Result<(), Fault> {
    values.iter().try_for_each(|(name, value)| row::execute(sql, PUT, [name, value]).map(drop))
}
