//! Deleted files on their way out: expiry, claims, backlog.
//!
//! A deleted row is *unclaimed* (it can be restored) or *claimed* (it cannot, ever). A claimed row
//! is not to be touched before `purge_not_before`: the end of its lease, or of the wait after a
//! failure. `purge_owner` is set while it is leased.
//!
//! # Locking
//! Runs of several servers claim at the same time: each passes over the rows that another one is about to
//! claim (`SKIP LOCKED`). A hold of a snapshot waits for the claims under way, and they for it: so a file
//! is claimed before the snapshot begins, or is seen to be held.

use std::collections::HashSet;

use tokio_postgres::Row;

use crate::domain::clock::Timestamp;
use crate::domain::id::FileId;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::metadata::{DroppedBlob, Lease, PurgeBacklog, PurgeClaim, Purged};

use super::fault::Fault;
use super::row::{self, COLUMNS, columns, id};
use super::sql::{Lock, Sql};
use super::{backlog, damage, dropped, holds, receipts};

pub(super) const EXPIRE: &str = "WITH expired AS MATERIALIZED (
     SELECT file_id FROM files WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= $1
     ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
     UPDATE files SET purge_status = 'SYSTEM_PURGE', purge_marked_at = $1, updated_at = $1,
     deleted_at = $1, deleted_by = 'expiry' FROM expired WHERE files.file_id = expired.file_id";

pub(super) const UNCLAIMED: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1
     AND purge_marked_at <= $2 ORDER BY purge_marked_at LIMIT $3 FOR UPDATE SKIP LOCKED"
);

/// Those behind the rows that are held, in the order of their rows: the held ones are not passed.
pub(super) const UNCLAIMED_BEHIND: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1
     AND row_id > $4 AND purge_marked_at <= $2 ORDER BY row_id LIMIT $3 FOR UPDATE SKIP LOCKED"
);

pub(super) const CLAIMED: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_not_before, purge_attempts FROM files
     WHERE purge_claimed AND storage_provider = $1 AND purge_not_before <= $4 AND purge_marked_at <= $2
     ORDER BY purge_not_before LIMIT $3 FOR UPDATE SKIP LOCKED"
);

pub(super) const ANY_UNCLAIMED: &str = "SELECT 1 FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1
     AND purge_marked_at <= $2 ORDER BY purge_marked_at LIMIT 1";

pub(super) const ANY_UNCLAIMED_BEHIND: &str = "SELECT 1 FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1
     AND row_id > $3 AND purge_marked_at <= $2 ORDER BY row_id LIMIT 1";

pub(super) const ANY_CLAIMED: &str = "SELECT 1 FROM files
     WHERE purge_claimed AND storage_provider = $1 AND purge_not_before <= $3 AND purge_marked_at <= $2
     ORDER BY purge_not_before LIMIT 1";

/// The rows are locked by the claim.
pub(super) const CLAIM: &str = "UPDATE files
     SET purge_claimed = true, purge_owner = $2, purge_not_before = $3 WHERE file_id = ANY ($1)";

/// The receipt of each file takes its place; one of an earlier life of the same id makes room.
pub(super) const FINISH: &str = "WITH locked AS MATERIALIZED (
     SELECT file_id FROM files WHERE file_id = ANY ($1) AND purge_claimed AND purge_owner = $2
     ORDER BY file_id FOR UPDATE
     ), gone AS (
     DELETE FROM files USING locked WHERE files.file_id = locked.file_id
     RETURNING files.file_id, organization_id, created_at, updated_at, deleted_at, deleted_by)
     INSERT INTO purge_receipts (file_id, organization_id, created_at, deleted_at, deleted_by, purged_at)
     SELECT file_id, organization_id, created_at, coalesce(deleted_at, updated_at),
     coalesce(deleted_by, 'unknown'), $3 FROM gone
     ON CONFLICT (file_id) DO UPDATE SET organization_id = excluded.organization_id,
     created_at = excluded.created_at, deleted_at = excluded.deleted_at,
     deleted_by = excluded.deleted_by, purged_at = excluded.purged_at RETURNING file_id";

pub(super) const FAIL: &str = "UPDATE files
     SET purge_owner = NULL, purge_not_before = $3, purge_attempts = purge_attempts + 1
     WHERE file_id = $1 AND purge_claimed AND purge_owner = $2";

pub(super) const AWAIT: &str = "UPDATE files SET purge_owner = NULL, purge_not_before = $3
     WHERE file_id = $1 AND purge_claimed AND purge_owner = $2";

/// Ends the wait of claimed files of which a dropped blob has gone.
pub(super) const GO_ON: &str = "UPDATE files SET purge_not_before = 0
     WHERE file_id = ANY ($1) AND purge_claimed AND purge_owner IS NULL";

pub(super) const LOCK_THEM: &str =
    "SELECT 1 FROM files WHERE file_id = ANY ($1) ORDER BY file_id FOR UPDATE";

pub(super) const RENEW: &str = "UPDATE files SET purge_not_before = $2 WHERE purge_owner = $1";

pub(super) const RELEASE: &str =
    "UPDATE files SET purge_owner = NULL, purge_not_before = 0 WHERE purge_owner = $1";

pub(super) const CLEAR_LEASES: &str =
    "UPDATE files SET purge_owner = NULL, purge_not_before = 0 WHERE purge_owner IS NOT NULL";

pub(super) const END_WAITS: &str = "WITH waiting AS MATERIALIZED (
     SELECT file_id FROM files WHERE purge_claimed AND storage_provider = $1 AND purge_not_before > $2
     AND purge_owner IS NULL LIMIT $3 FOR UPDATE SKIP LOCKED)
     UPDATE files SET purge_not_before = $2 FROM waiting WHERE files.file_id = waiting.file_id";

pub(super) const EXPIRED: &str = "SELECT count(*) FROM files
     WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= $1";

pub(super) const NEXT_UNCLAIMED: &str = "SELECT storage_provider FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider > $1
     ORDER BY storage_provider LIMIT 1";

pub(super) const NEXT_CLAIMED: &str = "SELECT storage_provider FROM files
     WHERE purge_claimed AND storage_provider > $1 ORDER BY storage_provider LIMIT 1";

pub(super) const COUNT_UNCLAIMED: &str =
    "SELECT count(*), coalesce(sum(size_bytes), 0)::bigint FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1
     AND purge_marked_at > $2 AND purge_marked_at <= $3";

pub(super) const COUNT_CLAIMED: &str =
    "SELECT count(*), coalesce(sum(size_bytes), 0)::bigint FROM files
     WHERE purge_claimed AND storage_provider = $1 AND purge_marked_at > $2 AND purge_marked_at <= $3";

pub(super) async fn expire_temp(sql: &Sql, now: Timestamp, limit: usize) -> Result<u64, Fault> {
    sql.execute(EXPIRE, &[&now.as_millis(), &row::limit(limit)]).await
}

/// A deleted row with the instant from which it can be purged, and its attempts.
struct Candidate {
    record: FileRecord,
    due: i64,
    attempts: u32,
}

fn candidate(row: &Row) -> Result<Candidate, Fault> {
    Ok(Candidate {
        record: row::record(row)?,
        due: row.try_get(COLUMNS)?,
        attempts: row::attempts(row, COLUMNS + 1)?,
    })
}

/// Tells if a claim would find anything. Only reads, so that looking in vain costs no transaction.
pub(super) async fn is_any_due(
    sql: &Sql,
    holder: &ProviderCode,
    marked_before: Timestamp,
    now: Timestamp,
) -> Result<bool, Fault> {
    let holder = holder.as_str();
    let held = holds::last_held_row(sql, now).await?;
    let (before, now) = (marked_before.as_millis(), now.as_millis());
    let unclaimed = if held > 0 {
        sql.exists(ANY_UNCLAIMED_BEHIND, &[&holder, &before, &held]).await?
    } else {
        sql.exists(ANY_UNCLAIMED, &[&holder, &before]).await?
    };
    Ok(unclaimed || sql.exists(ANY_CLAIMED, &[&holder, &before, &now]).await?)
}

/// Claims up to `limit` files that `holder` holds, in the order in which they came due. Files that a
/// snapshot under way may name are left out, unless they were claimed before, and not even looked at:
/// meanwhile newer ones are claimed in the order of their rows. Those whose records are damaged are set aside: no later claim meets them.
pub(super) async fn claim(
    sql: &Sql,
    lease: Lease<'_>,
    holder: &ProviderCode,
    marked_before: Timestamp,
    limit: usize,
) -> Result<Vec<PurgeClaim>, Fault> {
    sql.lock_shared(Lock::Holds).await?;
    loop {
        let claims = claim_readable(sql, lease, holder, marked_before, limit).await?;
        let aside = damage::set_aside(sql, damage::PURGE_NEVER).await?;
        if !claims.is_empty() || aside == 0 {
            return Ok(claims);
        }
    }
}

async fn claim_readable(
    sql: &Sql,
    lease: Lease<'_>,
    holder: &ProviderCode,
    marked_before: Timestamp,
    limit: usize,
) -> Result<Vec<PurgeClaim>, Fault> {
    let (before, now) = (marked_before.as_millis(), lease.now.as_millis());
    let (holder, rows) = (holder.as_str(), row::limit(limit));
    let grace = now.saturating_sub(before);
    let held = holds::last_held_row(sql, lease.now).await?;

    let mut due = if held > 0 {
        sql.collect(UNCLAIMED_BEHIND, &[&holder, &before, &rows, &held], candidate).await?
    } else {
        sql.collect(UNCLAIMED, &[&holder, &before, &rows], candidate).await?
    };
    for marked in &mut due {
        marked.due = marked.due.saturating_add(grace);
    }
    due.extend(sql.collect(CLAIMED, &[&holder, &before, &rows, &now], candidate).await?);
    due.sort_by_key(|candidate| candidate.due);
    due.truncate(limit);

    let claims = with_dropped(sql, due).await?;
    let ids: Vec<String> = claims.iter().map(|claim| id(claim.record.file_id)).collect();
    if !ids.is_empty() {
        sql.execute(CLAIM, &[&ids, &lease.owner, &lease.until.as_millis()]).await?;
    }
    Ok(claims)
}

/// Adds the blobs that the files dropped. A file of which one is damaged is passed over: bytes that it
/// dropped are not to outlive the record unseen.
async fn with_dropped(sql: &Sql, due: Vec<Candidate>) -> Result<Vec<PurgeClaim>, Fault> {
    let ids: Vec<String> = due.iter().map(|candidate| id(candidate.record.file_id)).collect();
    let (mut all, mut damaged): (Vec<DroppedBlob>, Vec<String>) = (Vec::new(), Vec::new());
    for (file, blob) in dropped::of_files(sql, &ids).await? {
        match sql.pass_over(blob)? {
            Some(blob) => all.push(blob),
            None => damaged.push(file),
        }
    }

    let sound = due.into_iter().filter(|file| !damaged.contains(&id(file.record.file_id)));
    let claims = sound.map(|Candidate { record, attempts, .. }| {
        let own = all.iter().filter(|blob| blob.file_id == record.file_id);
        PurgeClaim { dropped: own.cloned().collect(), record, attempts }
    });
    Ok(claims.collect())
}

pub(super) async fn finish(
    sql: &Sql,
    owner: &str,
    purged: &[Purged],
    now: Timestamp,
) -> Result<u64, Fault> {
    let ids: Vec<String> = purged.iter().map(|one| id(one.file_id)).collect();
    let mut gone: Vec<String> = Vec::new();
    for row in sql.rows(FINISH, &[&ids, &owner, &now.as_millis()]).await? {
        gone.push(row.try_get(0)?);
    }
    if gone.is_empty() {
        return Ok(0);
    }

    let known: HashSet<&str> = gone.iter().map(String::as_str).collect();
    let noted = ids.iter().zip(purged).filter(|(id, _)| known.contains(id.as_str()));
    let noted: Vec<&Purged> = noted.map(|(_, one)| one).collect();
    receipts::note(sql, &noted, now).await?;
    dropped::forget_files(sql, &gone).await?;
    Ok(gone.len() as u64)
}

pub(super) async fn postpone(
    sql: &Sql,
    owner: &str,
    file: FileId,
    retry_at: Timestamp,
) -> Result<(), Fault> {
    sql.execute(FAIL, &[&id(file), &owner, &retry_at.as_millis()]).await.map(drop)
}

/// Postpones a claimed file until its dropped blobs at other providers are gone, which come due now.
/// Those that went since the file was claimed ended no wait: if they were all, there is none.
pub(super) async fn await_dropped(
    sql: &Sql,
    lease: Lease<'_>,
    record: &FileRecord,
) -> Result<(), Fault> {
    let file = record.file_id;
    if sql.execute(AWAIT, &[&id(file), &lease.owner, &lease.until.as_millis()]).await? == 0 {
        return Ok(());
    }
    if dropped::hasten(sql, file, &record.blob.provider, lease.now).await? == 0 {
        go_on(sql, &[id(file)]).await?;
    }
    Ok(())
}

/// Ends the waits of claimed files.
pub(super) async fn go_on(sql: &Sql, files: &[String]) -> Result<(), Fault> {
    sql.execute(GO_ON, &[&files]).await.map(drop)
}

/// Locks the rows of files.
pub(super) async fn lock(sql: &Sql, files: &[String]) -> Result<(), Fault> {
    sql.execute(LOCK_THEM, &[&files]).await.map(drop)
}

pub(super) async fn renew(sql: &Sql, owner: &str, until: Timestamp) -> Result<(), Fault> {
    sql.execute(RENEW, &[&owner, &until.as_millis()]).await.map(drop)
}

pub(super) async fn release(sql: &Sql, owner: &str) -> Result<(), Fault> {
    sql.execute(RELEASE, &[&owner]).await.map(drop)
}

pub(super) async fn clear_leases(sql: &Sql) -> Result<(), Fault> {
    sql.execute(CLEAR_LEASES, &[]).await.map(drop)
}

/// Ends the waits of up to `limit` files that `holder` holds; returns how many.
pub(super) async fn end_waits(
    sql: &Sql,
    holder: &ProviderCode,
    now: Timestamp,
    limit: usize,
) -> Result<u64, Fault> {
    let rows = row::limit(limit);
    sql.execute(END_WAITS, &[&holder.as_str(), &now.as_millis(), &rows]).await
}

pub(super) async fn backlog(
    sql: &Sql,
    marked_before: Timestamp,
    now: Timestamp,
) -> Result<PurgeBacklog, Fault> {
    let grace_end = marked_before.as_millis();
    let expired = sql.first(EXPIRED, &[&now.as_millis()]).await?;
    let mut found = PurgeBacklog {
        expired: expired.map_or(Ok(0), |row| row::count(&row, 0))?,
        due_blobs: dropped::count_due(sql, now).await?,
        ..PurgeBacklog::default()
    };

    for (next, query) in [(NEXT_UNCLAIMED, COUNT_UNCLAIMED), (NEXT_CLAIMED, COUNT_CLAIMED)] {
        for holder in backlog::holders(sql, next).await? {
            let (due, bytes) = totals(sql, query, &holder, (i64::MIN, grace_end)).await?;
            found.due += due;
            found.due_bytes += bytes;
            // Claimed ones too: those that were claimed under a shorter grace period than this one.
            found.waiting += totals(sql, query, &holder, (grace_end, i64::MAX)).await?.0;
        }
    }
    Ok(found)
}

/// Counts the files of `holder` marked after the first and up to the second of `marked`, and their
/// bytes.
async fn totals(
    sql: &Sql,
    query: &str,
    holder: &ProviderCode,
    marked: (i64, i64),
) -> Result<(u64, u64), Fault> {
    let row = sql.first(query, &[&holder.as_str(), &marked.0, &marked.1]).await?;
    row.map_or(Ok((0, 0)), |row| Ok((row::count(&row, 0)?, row::count(&row, 1)?)))
}
