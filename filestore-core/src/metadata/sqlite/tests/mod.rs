//! Tests of what is particular to SQLite, and the contract suite.

use std::path::PathBuf;

use tempfile::TempDir;

use super::SqliteMetadata;
use crate::domain::config::Durability;

mod opening;
mod plans;
mod groups;
mod faults;
mod damage;
mod memory;
mod contract {
    crate::metadata::contract::contract_tests!(crate::metadata::sqlite::tests::fresh);
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
