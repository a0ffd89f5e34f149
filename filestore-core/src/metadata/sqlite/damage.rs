//! Damaged rows: stored rows that no code of ours writes and none can read.
//!
//! # Purpose
//! A query passes a damaged row over, so that it harms no other. The row is noted while the query
//! runs, and reported once the call is over: in the log the first time, and in
//! [`Upkeep::damage`](crate::metadata::Upkeep::damage) until a look-up finds it readable again.
//! A claim also sets the row aside, or rows that fail would be the first of every claim.

use std::cell::RefCell;

use rusqlite::Connection;

use crate::domain::damage::DamagedRow;
use crate::metadata::stored::NEVER;

use super::fault::Fault;
use super::row;

pub(super) const PURGE_NEVER: &str =
    "UPDATE files SET purge_claimed = 1, purge_owner = NULL, purge_not_before = ?2
     WHERE file_id = ?1 AND purge_status = 'SYSTEM_PURGE'";

pub(super) const SYNC_NEVER: &str = "UPDATE files SET sync_not_before = ?2
     WHERE file_id = ?1 AND sync_status = 'PENDING' AND purge_status IS NULL";

/// Rows that a call has passed over.
#[derive(Default)]
struct PassedOver {
    rows: Vec<DamagedRow>,
    /// The number of those, from the first, that were set aside.
    aside: usize,
}

thread_local! {
    /// Rows that the call on this thread has passed over: queries run to their end on one thread.
    static PASSED_OVER: RefCell<PassedOver> = RefCell::default();
}

/// Turns the fault of a damaged row into `None`, and notes the row.
pub(super) fn pass_over<T>(read: Result<T, Fault>) -> Result<Option<T>, Fault> {
    let fault = match read {
        Ok(value) => return Ok(Some(value)),
        Err(fault) => fault,
    };

    let Some(row) = fault.damaged_row() else { return Err(fault) };
    PASSED_OVER.with_borrow_mut(|passed| passed.rows.push(row));
    Ok(None)
}

/// Takes the rows that were passed over on this thread.
pub(super) fn take() -> Vec<DamagedRow> {
    PASSED_OVER.take().rows
}

/// Sets the files aside that the call on this thread has passed over, by `statement`: no claim meets
/// them again. Returns how many; what even this cannot change stays where it is.
pub(super) fn set_aside(sql: &Connection, statement: &str) -> Result<usize, Fault> {
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

/// Sets one file aside by `statement`. Returns how many rows that changed.
pub(super) fn set_file_aside(
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
