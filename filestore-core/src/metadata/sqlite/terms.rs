//! The index of custom metadata: a row for each member that a listing can ask for.
//!
//! A *term* stands for one key with one value. It is a digest, so that a row is small whatever the
//! members are; a listing compares the members themselves afterwards. Nobody knows the keys beforehand, so
//! there is no index on JSON expressions. Triggers keep the rows equal to their file in status and deletion,
//! and remove them with it.

use rusqlite::{Connection, params};

use crate::domain::record::FileRecord;
use crate::metadata::stored::term;

use super::fault::Fault;
use super::row::{self, id};

pub(super) const PUT: &str =
    "INSERT INTO file_terms (of_organization, term, is_deleted, in_status, of_file)
     VALUES (?1, ?2, ?3, ?4, ?5)";

pub(super) const FORGET: &str = "DELETE FROM file_terms WHERE of_file = ?1";

/// Notes the terms of a file that has none yet.
pub(super) fn put(sql: &Connection, record: &FileRecord) -> Result<(), Fault> {
    let (file, organization) = (id(record.file_id), record.organization_id.as_str());
    let (is_deleted, status) = (record.state.is_deleted(), record.state.status().as_str());
    for (key, value) in record.metadata.terms() {
        row::execute(
            sql,
            PUT,
            params![organization, term(&key, &value), is_deleted, status, file],
        )?;
    }
    Ok(())
}

/// Notes the terms of a file in the place of those that it had.
pub(super) fn replace(sql: &Connection, record: &FileRecord) -> Result<(), Fault> {
    row::execute(sql, FORGET, [id(record.file_id)])?;
    put(sql, record)
}
