//! Deleted files on their way out: expiry, claims, backlog.
//!
//! A deleted row is *unclaimed* (it can be restored) or *claimed* (it cannot, ever). A claimed row
//! is not to be touched before `purge_not_before`: the end of its lease, or of the wait after a
//! failure. `purge_owner` is set while it is leased.

use rusqlite::{Connection, Row, params};

use crate::domain::clock::Timestamp;
use crate::domain::id::FileId;
use crate::domain::record::FileRecord;
use crate::metadata::{Lease, PurgeBacklog, PurgeClaim};

use super::dropped;
use super::fault::Fault;
use super::row::{self, COLUMNS, columns, id};
use super::writer::WriteTx;

pub(super) const EXPIRE: &str =
    "UPDATE files SET purge_status = 'SYSTEM_PURGE', purge_marked_at = ?1, updated_at = ?1
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_expiring
     WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
     RETURNING file_id";

pub(super) const UNCLAIMED: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND purge_marked_at <= ?1
     ORDER BY purge_marked_at LIMIT ?2"
);

pub(super) const CLAIMED: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND purge_not_before <= ?3 AND purge_marked_at <= ?1
     ORDER BY purge_not_before LIMIT ?2"
);

pub(super) const CLAIM: &str = "UPDATE files SET purge_claimed = 1, purge_owner = ?2, purge_not_before = ?3 WHERE file_id = ?1";

pub(super) const FINISH: &str =
    "DELETE FROM files WHERE file_id = ?1 AND purge_claimed = 1 AND purge_owner = ?2";

pub(super) const FAIL: &str = "UPDATE files
     SET purge_owner = NULL, purge_not_before = ?3, purge_attempts = purge_attempts + 1
     WHERE file_id = ?1 AND purge_claimed = 1 AND purge_owner = ?2";

/// Every claimed row is in the range: there are few, and this runs once.
pub(super) const CLEAR_LEASES: &str = "UPDATE files SET purge_owner = NULL, purge_not_before = 0
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND purge_not_before >= 0 AND purge_owner IS NOT NULL)";

pub(super) const EXPIRED: &str = "SELECT count(*) FROM files INDEXED BY files_expiring
     WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= ?1";

pub(super) const COUNT_DUE: &str =
    "SELECT count(*), coalesce(sum(size_bytes), 0) FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND purge_marked_at <= ?1";

pub(super) const COUNT_WAITING: &str = "SELECT count(*) FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND purge_marked_at > ?1";

pub(super) const COUNT_CLAIMED: &str =
    "SELECT count(*), coalesce(sum(size_bytes), 0) FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND purge_not_before >= 0 AND purge_marked_at <= ?1";

/// Counts files that were claimed under a shorter grace period than this one.
pub(super) const COUNT_CLAIMED_WAITING: &str = "SELECT count(*) FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND purge_not_before >= 0 AND purge_marked_at > ?1";

pub(super) fn expire_temp(
    tx: &mut WriteTx<'_>,
    now: Timestamp,
    limit: usize,
) -> Result<u64, Fault> {
    let params = params![now.as_millis(), row::limit(limit)];
    let expired = row::collect(tx.sql, EXPIRE, params, |row| {
        row::parse(row, 0).map_err(|source| Fault::Row { what: "an expired file".into(), source })
    })?;

    for &id in &expired {
        tx.touch(id);
    }
    Ok(expired.len() as u64)
}

/// A deleted row with its mark and its attempts.
struct Candidate {
    record: FileRecord,
    marked_at: i64,
    attempts: u32,
}

fn candidate(row: &Row<'_>) -> Result<Candidate, Fault> {
    Ok(Candidate {
        record: row::record(row)?,
        marked_at: row.get(COLUMNS)?,
        attempts: row.get(COLUMNS + 1)?,
    })
}

pub(super) fn claim(
    sql: &Connection,
    lease: Lease<'_>,
    marked_before: Timestamp,
    limit: usize,
) -> Result<Vec<PurgeClaim>, Fault> {
    let (marked_before, now) = (marked_before.as_millis(), lease.now.as_millis());
    let rows = row::limit(limit);
    let mut due = row::collect(sql, UNCLAIMED, params![marked_before, rows], candidate)?;
    due.extend(row::collect(sql, CLAIMED, params![marked_before, rows, now], candidate)?);
    due.sort_by_key(|candidate| candidate.marked_at);
    due.truncate(limit);

    let mut claims = Vec::with_capacity(due.len());
    for Candidate { record, attempts, .. } in due {
        let params = params![id(record.file_id), lease.owner, lease.until.as_millis()];
        row::execute(sql, CLAIM, params)?;
        let dropped = dropped::of_file(sql, record.file_id)?;
        claims.push(PurgeClaim { record, dropped, attempts });
    }
    Ok(claims)
}

pub(super) fn finish(tx: &mut WriteTx<'_>, owner: &str, ids: &[FileId]) -> Result<u64, Fault> {
    let mut gone = 0;
    for &file in ids {
        if row::execute(tx.sql, FINISH, params![id(file), owner])? > 0 {
            dropped::forget_file(tx.sql, file)?;
            tx.touch(file);
            gone += 1;
        }
    }
    Ok(gone)
}

pub(super) fn postpone(
    sql: &Connection,
    owner: &str,
    file: FileId,
    retry_at: Timestamp,
) -> Result<(), Fault> {
    row::execute(sql, FAIL, params![id(file), owner, retry_at.as_millis()]).map(drop)
}

pub(super) fn clear_leases(sql: &Connection) -> Result<(), Fault> {
    row::execute(sql, CLEAR_LEASES, []).map(drop)
}

pub(super) fn backlog(
    sql: &Connection,
    marked_before: Timestamp,
    now: Timestamp,
) -> Result<PurgeBacklog, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let grace_end = marked_before.as_millis();
    let (unclaimed, unclaimed_bytes) = totals(&snapshot, COUNT_DUE, grace_end)?;
    let (claimed, claimed_bytes) = totals(&snapshot, COUNT_CLAIMED, grace_end)?;

    Ok(PurgeBacklog {
        expired: count(&snapshot, EXPIRED, now.as_millis())?,
        due: unclaimed + claimed,
        due_bytes: unclaimed_bytes + claimed_bytes,
        waiting: count(&snapshot, COUNT_WAITING, grace_end)?
            + count(&snapshot, COUNT_CLAIMED_WAITING, grace_end)?,
        due_blobs: count(&snapshot, dropped::COUNT_DUE, now.as_millis())?,
    })
}

fn totals(sql: &Connection, query: &str, until: i64) -> Result<(u64, u64), Fault> {
    let totals =
        row::first(sql, query, [until], |row| Ok((row::count(row, 0)?, row::count(row, 1)?)))?;
    Ok(totals.unwrap_or_default())
}

fn count(sql: &Connection, query: &str, at: i64) -> Result<u64, Fault> {
    Ok(row::first(sql, query, [at], |row| row::count(row, 0))?.unwrap_or(0))
}
