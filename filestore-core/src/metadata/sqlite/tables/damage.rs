//! Damaged rows: stored rows that filestore never writes and cannot read.
//!
//! # Purpose
//! A query skips a damaged row, so that it affects no other row. The row is recorded during the query, and
//! reported at the end of the call: in the log the first time, and in
//! [`Upkeep::damage`](crate::metadata::Upkeep::damage) until a look-up can read it again. A claim also sets
//! the row aside, because otherwise failing rows would come first in every claim.

use std::cell::RefCell;

use rusqlite::Connection;

use crate::domain::file::damage::DamagedRow;
use crate::metadata::stored::NEVER;

use super::row;
use crate::metadata::sqlite::session::fault::Fault;

pub(in crate::metadata::sqlite) const PURGE_NEVER: &str =
    "UPDATE files SET purge_claimed = 1, purge_owner = NULL, purge_not_before = ?2
     WHERE file_id = ?1 AND purge_status = 'SYSTEM_PURGE'";

pub(in crate::metadata::sqlite) const SYNC_NEVER: &str = "UPDATE files SET sync_not_before = ?2
     WHERE file_id = ?1 AND sync_status = 'PENDING' AND purge_status IS NULL";

/// Rows that a call has skipped.
#[derive(Default)]
struct PassedOver {
    rows: Vec<DamagedRow>,
    /// The number of these rows, from the first, that were set aside.
    aside: usize,
}

thread_local! {
    /// Rows that the call on this thread has skipped. Queries run to their end on one thread.
    static PASSED_OVER: RefCell<PassedOver> = RefCell::default();
}

/// Converts the fault of a damaged row to `None`, and records the row.
pub(in crate::metadata::sqlite) fn pass_over<T>(
    read: Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    let fault = match read {
        Ok(value) => return Ok(Some(value)),
        Err(fault) => fault,
    };

    let Some(row) = fault.damaged_row() else { return Err(fault) };
    PASSED_OVER.with_borrow_mut(|passed| passed.rows.push(row));
    Ok(None)
}

/// Removes and returns the rows that were skipped on this thread.
pub(in crate::metadata::sqlite) fn take() -> Vec<DamagedRow> {
    PASSED_OVER.take().rows
}

/// Runs `statement` to exclude the skipped files of this thread's call from later claims. Returns their
/// number. Rows that the statement cannot change stay as they are.
pub(in crate::metadata::sqlite) fn set_aside(
    sql: &Connection,
    statement: &str,
) -> Result<usize, Fault> {
    let files = PASSED_OVER.with_borrow_mut(|passed| {
        let new = passed.rows[passed.aside..].iter();
        let files: Vec<_> = new
            .filter_map(|row| row.row.rsplit_once("file ").map(|(_, id)| id.to_owned()))
            .collect();
        passed.aside = passed.rows.len();
        files
    });

    let mut aside = 0;
    for file in files {
        aside += set_file_aside(sql, statement, &file)?;
    }
    Ok(aside)
}

/// Runs `statement` to set one file aside. Returns the number of changed rows.
pub(in crate::metadata::sqlite) fn set_file_aside(
    sql: &Connection,
    statement: &str,
    file: &str,
) -> Result<usize, Fault> {
    match row::execute(sql, statement, (file, NEVER)) {
        Err(Fault::Sql(error)) if is_constraint(&error) => Ok(0),
        outcome => outcome,
    }
}

fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}
