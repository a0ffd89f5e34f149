//! Deleted files on their way out: expiry, claims, backlog.
//!
//! A deleted row is *unclaimed* (it can be restored) or *claimed* (it cannot, ever). A claimed row
//! is not to be touched before `purge_not_before`: the end of its lease, or of the wait after a
//! failure. `purge_owner` is set while it is leased.
//!
//! Claims are made for one holder at a time, so that a holder that does not answer keeps no other's
//! files waiting, and in the order in which the files came due: a file that failed comes due again
//! later than the files that were deleted meanwhile, and does not starve them.

use rusqlite::{Connection, Row, params};

use crate::domain::clock::Timestamp;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::metadata::{Lease, PurgeBacklog, PurgeClaim, Purged};

use super::fault::Fault;
use super::row::{self, COLUMNS, columns, id};
use super::writer::WriteTx;
use super::{backlog, damage, dropped, holds, receipts};

pub(super) const EXPIRE: &str =
    "UPDATE files SET purge_status = 'SYSTEM_PURGE', purge_marked_at = ?1, updated_at = ?1,
     deleted_at = ?1, deleted_by = 'expiry'
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_expiring
     WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
     RETURNING file_id";

pub(super) const ANY_EXPIRED: &str = "SELECT 1 FROM files INDEXED BY files_expiring
     WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= ?1 LIMIT 1";

pub(super) const UNCLAIMED: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1 AND purge_marked_at <= ?2
     ORDER BY purge_marked_at LIMIT ?3"
);

/// Those behind the rows that are held, in the order of their rows: the held ones are not passed.
pub(super) const UNCLAIMED_BEHIND: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files INDEXED BY files_unclaimed_rows
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1 AND rowid > ?4
     AND purge_marked_at <= ?2 ORDER BY rowid LIMIT ?3"
);

pub(super) const CLAIMED: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_not_before, purge_attempts FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider = ?1 AND purge_not_before <= ?4 AND purge_marked_at <= ?2
     ORDER BY purge_not_before LIMIT ?3"
);

pub(super) const ANY_UNCLAIMED: &str = "SELECT 1 FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1
     AND purge_marked_at <= ?2 LIMIT 1";

pub(super) const ANY_UNCLAIMED_BEHIND: &str = "SELECT 1 FROM files INDEXED BY files_unclaimed_rows
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1 AND rowid > ?3
     AND purge_marked_at <= ?2 LIMIT 1";

pub(super) const ANY_CLAIMED: &str = "SELECT 1 FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider = ?1 AND purge_not_before <= ?3 AND purge_marked_at <= ?2 LIMIT 1";

pub(super) const CLAIM: &str = "UPDATE files SET purge_claimed = 1, purge_owner = ?2, purge_not_before = ?3 WHERE file_id = ?1";

pub(super) const FINISH: &str =
    "DELETE FROM files WHERE file_id = ?1 AND purge_claimed = 1 AND purge_owner = ?2";

pub(super) const FAIL: &str = "UPDATE files
     SET purge_owner = NULL, purge_not_before = ?3, purge_attempts = purge_attempts + 1
     WHERE file_id = ?1 AND purge_claimed = 1 AND purge_owner = ?2";

pub(super) const AWAIT: &str = "UPDATE files SET purge_owner = NULL, purge_not_before = ?3
     WHERE file_id = ?1 AND purge_claimed = 1 AND purge_owner = ?2";

/// Ends the wait of a claimed file of which a dropped blob has gone.
pub(super) const GO_ON: &str = "UPDATE files SET purge_not_before = 0
     WHERE file_id = ?1 AND purge_claimed = 1 AND purge_owner IS NULL";

pub(super) const RENEW: &str = "UPDATE files SET purge_not_before = ?2
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_purge_leased WHERE purge_owner = ?1)";

pub(super) const RELEASE: &str = "UPDATE files SET purge_owner = NULL, purge_not_before = 0
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_purge_leased WHERE purge_owner = ?1)";

pub(super) const CLEAR_LEASES: &str = "UPDATE files SET purge_owner = NULL, purge_not_before = 0
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_purge_leased WHERE purge_owner > '')";

pub(super) const END_WAITS: &str = "UPDATE files SET purge_not_before = ?2
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider = ?1 AND purge_not_before > ?2 AND purge_owner IS NULL LIMIT ?3)";

pub(super) const EXPIRED: &str = "SELECT count(*) FROM files INDEXED BY files_expiring
     WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= ?1";

pub(super) const NEXT_UNCLAIMED: &str =
    "SELECT storage_provider FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider > ?1
     ORDER BY storage_provider LIMIT 1";

pub(super) const NEXT_CLAIMED: &str = "SELECT storage_provider FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider > ?1 ORDER BY storage_provider LIMIT 1";

pub(super) const COUNT_UNCLAIMED: &str =
    "SELECT count(*), coalesce(sum(size_bytes), 0) FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1
     AND purge_marked_at > ?2 AND purge_marked_at <= ?3";

pub(super) const COUNT_CLAIMED: &str =
    "SELECT count(*), coalesce(sum(size_bytes), 0) FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider = ?1 AND purge_not_before >= 0
     AND purge_marked_at > ?2 AND purge_marked_at <= ?3";

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

/// Tells if a file has expired. Only reads, so that looking in vain costs the writer nothing.
pub(super) fn is_any_expired(sql: &Connection, now: Timestamp) -> Result<bool, Fault> {
    Ok(row::first(sql, ANY_EXPIRED, [now.as_millis()], |_| Ok(()))?.is_some())
}

/// A deleted row with the instant from which it can be purged, and its attempts.
struct Candidate {
    record: FileRecord,
    due: i64,
    attempts: u32,
}

fn candidate(row: &Row<'_>) -> Result<Candidate, Fault> {
    Ok(Candidate {
        record: row::record(row)?,
        due: row.get(COLUMNS)?,
        attempts: row.get(COLUMNS + 1)?,
    })
}

/// Tells if a claim would find anything. Only reads, so that looking in vain costs the writer nothing.
pub(super) fn is_any_due(
    sql: &Connection,
    holder: &ProviderCode,
    marked_before: Timestamp,
    now: Timestamp,
) -> Result<bool, Fault> {
    let holder = holder.as_str();
    let held = holds::last_held_row(sql, now)?;
    let (before, now) = (marked_before.as_millis(), now.as_millis());
    let unclaimed = if held > 0 {
        row::first(sql, ANY_UNCLAIMED_BEHIND, params![holder, before, held], |_| Ok(()))?
    } else {
        row::first(sql, ANY_UNCLAIMED, params![holder, before], |_| Ok(()))?
    };
    if unclaimed.is_some() {
        return Ok(true);
    }

    let claimed = row::first(sql, ANY_CLAIMED, params![holder, before, now], |_| Ok(()))?;
    Ok(claimed.is_some())
}

/// Claims up to `limit` files that `holder` holds, in the order in which they came due. Files that a
/// snapshot under way may name are left out, unless they were claimed before, and not even looked at:
/// meanwhile newer ones are claimed in the order of their rows. Those whose records are
/// damaged are set aside: no later claim meets them.
pub(super) fn claim(
    sql: &Connection,
    lease: Lease<'_>,
    holder: &ProviderCode,
    marked_before: Timestamp,
    limit: usize,
) -> Result<Vec<PurgeClaim>, Fault> {
    loop {
        let claims = claim_readable(sql, lease, holder, marked_before, limit)?;
        let aside = damage::set_aside(sql, damage::PURGE_NEVER)?;
        if !claims.is_empty() || aside == 0 {
            return Ok(claims);
        }
    }
}

fn claim_readable(
    sql: &Connection,
    lease: Lease<'_>,
    holder: &ProviderCode,
    marked_before: Timestamp,
    limit: usize,
) -> Result<Vec<PurgeClaim>, Fault> {
    let (before, now) = (marked_before.as_millis(), lease.now.as_millis());
    let rows = row::limit(limit);
    let grace = now.saturating_sub(before);
    let held = holds::last_held_row(sql, lease.now)?;

    let mut due = if held > 0 {
        let unclaimed = params![holder.as_str(), before, rows, held];
        row::collect(sql, UNCLAIMED_BEHIND, unclaimed, candidate)?
    } else {
        row::collect(sql, UNCLAIMED, params![holder.as_str(), before, rows], candidate)?
    };
    for marked in &mut due {
        marked.due = marked.due.saturating_add(grace);
    }
    due.extend(row::collect(sql, CLAIMED, params![holder.as_str(), before, rows, now], candidate)?);
    due.sort_by_key(|candidate| candidate.due);
    due.truncate(limit);

    let mut claims = Vec::with_capacity(due.len());
    for Candidate { record, attempts, .. } in due {
        // Bytes that it dropped are not to outlive the record unseen.
        let Some(dropped) = damage::pass_over(dropped::of_file(sql, record.file_id))? else {
            continue;
        };
        let params = params![id(record.file_id), lease.owner, lease.until.as_millis()];
        row::execute(sql, CLAIM, params)?;
        claims.push(PurgeClaim { record, dropped, attempts });
    }
    Ok(claims)
}

pub(super) fn finish(
    tx: &mut WriteTx<'_>,
    owner: &str,
    purged: &[Purged],
    now: Timestamp,
) -> Result<u64, Fault> {
    let mut gone = 0;
    for one in purged {
        if receipts::put(tx.sql, owner, one, now)? {
            row::execute(tx.sql, FINISH, params![id(one.file_id), owner])?;
            dropped::forget_file(tx.sql, one.file_id)?;
            tx.touch(one.file_id);
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

/// Postpones a claimed file until its dropped blobs at other providers are gone, which come due now.
/// Those that went since the file was claimed ended no wait: if they were all, there is none.
pub(super) fn await_dropped(
    sql: &Connection,
    lease: Lease<'_>,
    record: &FileRecord,
) -> Result<(), Fault> {
    let file = record.file_id;
    let params = params![id(file), lease.owner, lease.until.as_millis()];
    if row::execute(sql, AWAIT, params)? == 0 {
        return Ok(());
    }
    if dropped::hasten(sql, file, &record.blob.provider, lease.now)? == 0 {
        row::execute(sql, GO_ON, [id(file)])?;
    }
    Ok(())
}

pub(super) fn renew(sql: &Connection, owner: &str, until: Timestamp) -> Result<(), Fault> {
    row::execute(sql, RENEW, params![owner, until.as_millis()]).map(drop)
}

pub(super) fn release(sql: &Connection, owner: &str) -> Result<(), Fault> {
    row::execute(sql, RELEASE, [owner]).map(drop)
}

pub(super) fn clear_leases(sql: &Connection) -> Result<(), Fault> {
    row::execute(sql, CLEAR_LEASES, []).map(drop)
}

/// Ends the waits of up to `limit` files that `holder` holds; returns how many.
pub(super) fn end_waits(
    sql: &Connection,
    holder: &ProviderCode,
    now: Timestamp,
    limit: usize,
) -> Result<u64, Fault> {
    let params = params![holder.as_str(), now.as_millis(), row::limit(limit)];
    row::execute(sql, END_WAITS, params).map(|ended| ended as u64)
}

pub(super) fn backlog(
    sql: &Connection,
    marked_before: Timestamp,
    now: Timestamp,
) -> Result<PurgeBacklog, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let grace_end = marked_before.as_millis();
    let mut found = PurgeBacklog {
        expired: count(&snapshot, EXPIRED, now.as_millis())?,
        due_blobs: dropped::count_due(&snapshot, now)?,
        ..PurgeBacklog::default()
    };

    for (next, query) in [(NEXT_UNCLAIMED, COUNT_UNCLAIMED), (NEXT_CLAIMED, COUNT_CLAIMED)] {
        for holder in backlog::holders(&snapshot, next)? {
            let (due, bytes) = totals(&snapshot, query, &holder, (i64::MIN, grace_end))?;
            found.due += due;
            found.due_bytes += bytes;
            // Claimed ones too: those that were claimed under a shorter grace period than this one.
            found.waiting += totals(&snapshot, query, &holder, (grace_end, i64::MAX))?.0;
        }
    }
    Ok(found)
}

/// Counts the files of `holder` marked after the first and up to the second of `marked`, and their
/// bytes.
fn totals(
    sql: &Connection,
    query: &str,
    holder: &ProviderCode,
    marked: (i64, i64),
) -> Result<(u64, u64), Fault> {
    let params = params![holder.as_str(), marked.0, marked.1];
    let totals =
        row::first(sql, query, params, |row| Ok((row::count(row, 0)?, row::count(row, 1)?)))?;
    Ok(totals.unwrap_or_default())
}

fn count(sql: &Connection, query: &str, at: i64) -> Result<u64, Fault> {
    Ok(row::first(sql, query, [at], |row| row::count(row, 0))?.unwrap_or(0))
}
