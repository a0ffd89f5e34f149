//! Tests of what is particular to SQLite, and the contract suite.

use std::path::PathBuf;

use rusqlite::Connection;
use tempfile::TempDir;

use super::SqliteMetadata;
use crate::domain::config::Durability;
use crate::metadata::contract::damage::Vandal;

mod opening;
mod plans;
mod groups;
mod faults;
mod memory;
mod contract {
    crate::metadata::contract::contract_tests!([cfg(test)] crate::metadata::sqlite::tests::fresh);
}

/// An empty database in a directory of its own. Not flushed: these tests do not cut the power.
pub(super) fn fresh() -> (SqliteMetadata, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (open(&directory), directory)
}

/// Opens the database in `directory`.
fn open(directory: &TempDir) -> SqliteMetadata {
    SqliteMetadata::open(&file(directory), Durability::Process, None).unwrap()
}

pub(super) fn file(directory: &TempDir) -> PathBuf {
    directory.path().join("metadata.db")
}

impl Vandal for TempDir {
    fn run(&self, statement: &str) {
        let connection = Connection::open(file(self)).unwrap();
        connection.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
        assert_eq!(connection.execute(statement, []).unwrap(), 1);
    }

    fn count(&self, rows: &str) -> i64 {
        let connection = Connection::open(file(self)).unwrap();
        let query = format!("SELECT count(*) FROM {rows}");
        connection.query_row(&query, [], |row| row.get(0)).unwrap()
    }
}
