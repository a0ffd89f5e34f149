//! The index of custom metadata, with a row for each member that a listing can filter by.
//!
//! A *term* is the digest of one key with one value, so that rows are small for all members. A listing then
//! compares the members themselves. The keys are not known in advance, so there is no index on JSON
//! expressions. Triggers copy the file's status and deletion to the rows, and remove them with the file.

use rusqlite::{Connection, params};

use crate::domain::file::record::FileRecord;
use crate::metadata::stored::term;

use super::row::{self, id};
use crate::metadata::sqlite::session::fault::Fault;

pub(in crate::metadata::sqlite) const PUT: &str =
    "INSERT INTO file_terms (of_organization, term, is_deleted, in_status, of_file)
     VALUES (?1, ?2, ?3, ?4, ?5)";

pub(in crate::metadata::sqlite) const FORGET: &str = "DELETE FROM file_terms WHERE of_file = ?1";

/// Stores the terms of a file without terms.
pub(in crate::metadata::sqlite) fn put(sql: &Connection, record: &FileRecord) -> Result<(), Fault> {
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

/// Replaces the terms of a file.
pub(in crate::metadata::sqlite) fn replace(
    sql: &Connection,
    record: &FileRecord,
) -> Result<(), Fault> {
    row::execute(sql, FORGET, [id(record.file_id)])?;
    put(sql, record)
}
