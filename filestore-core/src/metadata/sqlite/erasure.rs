//! The removal of everything that the database has of an organization.

use rusqlite::{Connection, params};

use crate::domain::clock::Timestamp;
use crate::domain::erasure::{LeftInDatabase, Removed};
use crate::domain::id::OrganizationId;

use super::fault::Fault;
use super::row;
use super::writer::WriteTx;

/// Deleted files that no purge has claimed are due at once.
pub(super) const HASTEN_FILES: &str = "UPDATE files SET purge_marked_at = 0
     WHERE organization_id = ?1 AND purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0
     AND purge_marked_at > 0";

/// Claimed ones do not wait any longer after a failure.
const HASTEN_CLAIMED: &str = "UPDATE files SET purge_not_before = min(purge_not_before, ?2)
     WHERE organization_id = ?1 AND purge_status = 'SYSTEM_PURGE' AND purge_claimed = 1
     AND purge_owner IS NULL";

/// A slash is followed by a zero: this is the range of the keys of one organization.
pub(super) const HASTEN_DROPPED: &str = "UPDATE blob_gc SET not_before = min(not_before, ?2)
     WHERE blob_key > ?1 || '/' AND blob_key < ?1 || '0' AND is_absent = 0";

const FORGET_BINDINGS: &str = "DELETE FROM bindings WHERE organization_id = ?1";

const FORGET_REPLIES: &str = "DELETE FROM idempotency WHERE organization_id = ?1";

const FORGET_USAGE: &str =
    "DELETE FROM organization_usage WHERE organization_id = ?1 AND files = 0";

const COUNTS: [&str; 5] = [
    "SELECT count(*) FROM files WHERE organization_id = ?1 OR (blob_key > ?1 || '/' AND blob_key < ?1 || '0')",
    "SELECT count(*) FROM blob_gc WHERE blob_key > ?1 || '/' AND blob_key < ?1 || '0'",
    "SELECT count(*) FROM write_intents WHERE blob_key > ?1 || '/' AND blob_key < ?1 || '0'",
    "SELECT count(*) FROM bindings WHERE CAST(organization_id AS TEXT) = ?1",
    "SELECT count(*) FROM idempotency WHERE organization_id = ?1",
];

pub(super) fn hasten(
    sql: &Connection,
    organization: &OrganizationId,
    now: Timestamp,
) -> Result<(), Fault> {
    let params = params![organization.as_str(), now.as_millis()];
    row::execute(sql, HASTEN_FILES, [organization.as_str()])?;
    row::execute(sql, HASTEN_CLAIMED, params)?;
    row::execute(sql, HASTEN_DROPPED, params).map(drop)
}

/// Forgets bindings, replies and totals. Organizations that are no numbers have no bindings.
pub(super) fn forget(
    tx: &mut WriteTx<'_>,
    organization: &OrganizationId,
) -> Result<Removed, Fault> {
    let sql = tx.sql;
    tx.touch_bindings();
    let name = organization.as_str();
    let bindings = match name.parse::<i64>() {
        Ok(number) => row::execute(sql, FORGET_BINDINGS, [number])?,
        Err(_) => 0,
    };
    let replies = row::execute(sql, FORGET_REPLIES, [name])?;
    row::execute(sql, FORGET_USAGE, [name])?;
    Ok(Removed { bindings: bindings as u64, replies: replies as u64, ..Removed::default() })
}

/// Counts what is left. Reads every row of the tables, and so finds rows that are damaged as well.
pub(super) fn left(
    sql: &Connection,
    organization: &OrganizationId,
) -> Result<LeftInDatabase, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let count = |query: &str| {
        let counted =
            row::first(&snapshot, query, [organization.as_str()], |row| row::count(row, 0));
        counted.map(Option::unwrap_or_default)
    };
    let [files, dropped, notes, bindings, replies] = COUNTS;
    Ok(LeftInDatabase {
        files: count(files)?,
        dropped: count(dropped)?,
        notes: count(notes)?,
        bindings: count(bindings)?,
        replies: count(replies)?,
    })
}
