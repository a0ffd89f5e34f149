//! Holds: what a snapshot names waits for its removal until the snapshot is whole.
//!
//! A hold is taken before the snapshot is read, so the snapshot shows as claimed every file that was
//! claimed before, and such a file is not named. While a hold lasts, no other deleted file is claimed
//! up to the snapshot's last row, and no dropped blob comes due: which of them the snapshot names is
//! not known here.

use rusqlite::{Connection, params};

use crate::domain::clock::Timestamp;

use super::fault::Fault;
use super::row;

const TAKE: &str = "INSERT INTO holds (hold_id, last_row, lasts_until) VALUES (?1, ?2, ?3)
     ON CONFLICT (hold_id) DO UPDATE SET last_row = excluded.last_row, lasts_until = excluded.lasts_until";

pub(super) const RENEW: &str =
    "UPDATE holds SET lasts_until = ?3 WHERE hold_id = ?1 AND lasts_until > ?2";

pub(super) const NARROW: &str = "UPDATE holds SET last_row = ?2 WHERE hold_id = ?1";

pub(super) const RELEASE: &str = "DELETE FROM holds WHERE hold_id = ?1";

/// Reads a table of a few rows.
const FORGET: &str = "DELETE FROM holds WHERE lasts_until <= ?1";

const CLEAR: &str = "DELETE FROM holds";

/// Reads a table of a few rows.
const LAST_ROW: &str = "SELECT max(last_row) FROM holds WHERE lasts_until > ?1";

/// Takes a hold of all that is there, and forgets those that have ended.
pub(super) fn take(
    sql: &Connection,
    id: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), Fault> {
    row::execute(sql, FORGET, [now.as_millis()])?;
    row::execute(sql, TAKE, params![id, i64::MAX, until.as_millis()]).map(drop)
}

/// Renews a hold; false if it has ended.
pub(super) fn renew(
    sql: &Connection,
    id: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, Fault> {
    let renewed = row::execute(sql, RENEW, params![id, now.as_millis(), until.as_millis()])?;
    Ok(renewed > 0)
}

/// Frees the files behind `last_row`, which the snapshot does not name.
pub(super) fn narrow(sql: &Connection, id: &str, last_row: i64) -> Result<(), Fault> {
    row::execute(sql, NARROW, params![id, last_row]).map(drop)
}

pub(super) fn release(sql: &Connection, id: &str) -> Result<(), Fault> {
    row::execute(sql, RELEASE, [id]).map(drop)
}

/// Ends all holds.
pub(super) fn clear(sql: &Connection) -> Result<(), Fault> {
    row::execute(sql, CLEAR, []).map(drop)
}

/// Returns the largest row of `files` that is held at `now`; 0 if none is.
pub(super) fn last_held_row(sql: &Connection, now: Timestamp) -> Result<i64, Fault> {
    let last = row::first(sql, LAST_ROW, [now.as_millis()], |row| Ok(row.get(0)?))?;
    Ok(last.flatten().unwrap_or(0))
}
