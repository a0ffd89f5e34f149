//! Deleted files: expiry and claims.
//!
//! A deleted row is *unclaimed* (it can be restored) or *claimed* (it can never be restored). A claimed row
//! must not be processed before `purge_not_before`, which is the end of its lease or of the wait after a
//! failure. `purge_owner` is set during a lease.
//!
//! # Locking
//! Runs of several servers claim at the same time. Each skips rows that another run is claiming
//! (`SKIP LOCKED`). A hold of a snapshot waits for running claims, and claims wait for it. A file is
//! therefore either claimed before the snapshot begins, or known to be held.

use std::collections::HashSet;

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::error::Result;
use crate::domain::file::record::FileRecord;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{DroppedBlob, DueFiles, Lease, PurgeClaim, Purged, Purges};

use super::{dropped, holds, receipts};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::{Lock, OwnedLease, Param, Sql};
use crate::metadata::postgres::tables::damage;
use crate::metadata::postgres::tables::row::{self, COLUMNS, columns, id};

pub(in crate::metadata::postgres) const EXPIRE: &str = "WITH expired AS MATERIALIZED (
     SELECT file_id FROM files WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= $1
     ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
     UPDATE files SET purge_status = 'SYSTEM_PURGE', purge_marked_at = $1, updated_at = $1,
     deleted_at = $1, deleted_by = 'expiry' FROM expired WHERE files.file_id = expired.file_id";

/// The same for one organization.
pub(in crate::metadata::postgres) const EXPIRE_OF: &str = "WITH expired AS MATERIALIZED (
     SELECT file_id FROM files WHERE organization_id = $3 AND NOT is_deleted AND status = 'TEMP' AND expires_at <= $1
     ORDER BY file_id LIMIT $2 FOR UPDATE SKIP LOCKED)
     UPDATE files SET purge_status = 'SYSTEM_PURGE', purge_marked_at = $1, updated_at = $1,
     deleted_at = $1, deleted_by = 'expiry' FROM expired WHERE files.file_id = expired.file_id";

pub(in crate::metadata::postgres) const UNCLAIMED: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1
     AND purge_marked_at <= $2 ORDER BY purge_marked_at LIMIT $3 FOR UPDATE SKIP LOCKED"
);

/// Selects files behind the held rows, in row order. Held rows are not read.
pub(in crate::metadata::postgres) const UNCLAIMED_BEHIND: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1
     AND row_id > $4 AND purge_marked_at <= $2 ORDER BY row_id LIMIT $3 FOR UPDATE SKIP LOCKED"
);

pub(in crate::metadata::postgres) const CLAIMED: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_not_before, purge_attempts FROM files
     WHERE purge_claimed AND storage_provider = $1 AND purge_not_before <= $2
     ORDER BY purge_not_before LIMIT $3 FOR UPDATE SKIP LOCKED"
);

/// Selects files of one organization only. The query reads held rows.
pub(in crate::metadata::postgres) const UNCLAIMED_OF: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files
     WHERE organization_id = $5 AND is_deleted AND NOT purge_claimed AND storage_provider = $1
     AND row_id > $4 AND purge_marked_at <= $2 ORDER BY status, file_id LIMIT $3 FOR UPDATE SKIP LOCKED"
);

pub(in crate::metadata::postgres) const CLAIMED_OF: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_not_before, purge_attempts FROM files
     WHERE organization_id = $4 AND is_deleted AND purge_claimed AND storage_provider = $1
     AND purge_not_before <= $2 ORDER BY status, file_id LIMIT $3 FOR UPDATE SKIP LOCKED"
);

pub(in crate::metadata::postgres) const ANY_UNCLAIMED: &str = "SELECT 1 FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1
     AND purge_marked_at <= $2 ORDER BY purge_marked_at LIMIT 1";

pub(in crate::metadata::postgres) const ANY_UNCLAIMED_BEHIND: &str = "SELECT 1 FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1
     AND row_id > $3 AND purge_marked_at <= $2 ORDER BY row_id LIMIT 1";

pub(in crate::metadata::postgres) const ANY_CLAIMED: &str = "SELECT 1 FROM files
     WHERE purge_claimed AND storage_provider = $1 AND purge_not_before <= $2
     ORDER BY purge_not_before LIMIT 1";

pub(in crate::metadata::postgres) const ANY_OF: &str = "SELECT 1 FROM files
     WHERE organization_id = $5 AND is_deleted AND storage_provider = $1
     AND CASE WHEN purge_claimed THEN purge_not_before <= $3 ELSE row_id > $4 AND purge_marked_at <= $2 END
     ORDER BY status, file_id LIMIT 1";

pub(in crate::metadata::postgres) const ANY_DELETED: &str = "SELECT 1 FROM files
     WHERE organization_id = $1 AND is_deleted ORDER BY status, file_id LIMIT 1";

/// The claim locks the rows.
pub(in crate::metadata::postgres) const CLAIM: &str = "UPDATE files
     SET purge_claimed = true, purge_owner = $2, purge_not_before = $3 WHERE file_id = ANY ($1)";

/// The receipt of each file replaces its record. The receipt also replaces a receipt from an earlier life of
/// the same id.
pub(in crate::metadata::postgres) const FINISH: &str = "WITH locked AS MATERIALIZED (
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

pub(in crate::metadata::postgres) const FAIL: &str = "UPDATE files
     SET purge_owner = NULL, purge_not_before = $3, purge_attempts = purge_attempts + 1
     WHERE file_id = $1 AND purge_claimed AND purge_owner = $2";

pub(in crate::metadata::postgres) const AWAIT: &str =
    "UPDATE files SET purge_owner = NULL, purge_not_before = $3
     WHERE file_id = $1 AND purge_claimed AND purge_owner = $2";

#[async_trait]
impl Purges for PostgresMetadata {
    async fn expire_temp(
        &self,
        organization: Option<&OrganizationId>,
        now: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let wanted = (organization.cloned(), now.as_millis(), row::limit(limit));
        self.engine
            .write("expiring files", wanted, |sql, (organization, now, limit)| {
                Box::pin(async move {
                    match organization {
                        None => sql.execute(EXPIRE, &[now, limit]).await,
                        Some(one) => sql.execute(EXPIRE_OF, &[now, limit, &one.as_str()]).await,
                    }
                })
            })
            .await
    }

    async fn claim_purges(
        &self,
        lease: Lease<'_>,
        holder: &ProviderCode,
        due: DueFiles<'_>,
        limit: usize,
    ) -> Result<Vec<PurgeClaim>> {
        let wanted = (holder, due, lease.now);
        let is_due = self
            .engine
            .read("looking for deleted files", &wanted, |sql, (holder, due, now)| {
                Box::pin(is_any_due(sql, holder, *due, *now))
            })
            .await?;
        if !is_due {
            return Ok(Vec::new());
        }

        let DueFiles { marked_before, organization } = due;
        let due = (marked_before, organization.cloned());
        let wanted = (OwnedLease::of(lease), holder.clone(), due, limit);
        self.engine
            .write("claiming deleted files", wanted, |sql, (lease, holder, due, limit)| {
                let (marked_before, organization) = due;
                let due =
                    DueFiles { marked_before: *marked_before, organization: organization.as_ref() };
                Box::pin(claim(sql, lease.lease(), holder, due, *limit))
            })
            .await
    }

    async fn await_dropped(&self, lease: Lease<'_>, record: &FileRecord) -> Result<()> {
        let wait = (OwnedLease::of(lease), record.file_id, record.blob.provider.clone());
        self.engine
            .write("postponing a purge", wait, |sql, (lease, file, holder)| {
                Box::pin(async move {
                    let until = lease.until.as_millis();
                    if sql.execute(AWAIT, &[&id(*file), &lease.owner, &until]).await? == 0 {
                        return Ok(());
                    }
                    // Blobs that went since the file was claimed ended no wait: if they were all, there is none.
                    if dropped::hasten(sql, *file, holder, lease.now).await? == 0 {
                        dropped::go_on(sql, &[id(*file)]).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    async fn finish_purges(&self, owner: &str, purged: &[Purged], now: Timestamp) -> Result<u64> {
        let finished = (owner.to_owned(), purged.to_vec(), now);
        self.engine
            .write("deleting records", finished, |sql, (owner, purged, now)| {
                Box::pin(async move {
                    let ids: Vec<String> = purged.iter().map(|one| id(one.file_id)).collect();
                    let mut gone: Vec<String> = Vec::new();
                    for row in sql.rows(FINISH, &[&ids, owner, &now.as_millis()]).await? {
                        gone.push(row.try_get(0)?);
                    }
                    if gone.is_empty() {
                        return Ok(0);
                    }

                    let known: HashSet<&str> = gone.iter().map(String::as_str).collect();
                    let noted =
                        ids.iter().zip(purged).filter(|(id, _)| known.contains(id.as_str()));
                    let noted: Vec<&Purged> = noted.map(|(_, one)| one).collect();
                    receipts::note(sql, &noted, *now).await?;
                    dropped::forget_files(sql, &gone).await?;
                    Ok(gone.len() as u64)
                })
            })
            .await
    }

    async fn postpone_purge(&self, owner: &str, file: FileId, retry_at: Timestamp) -> Result<()> {
        let failed = (owner.to_owned(), id(file), retry_at.as_millis());
        self.engine
            .write("postponing a purge", failed, |sql, (owner, file, retry_at)| {
                Box::pin(async move { sql.execute(FAIL, &[file, owner, retry_at]).await.map(drop) })
            })
            .await
    }

    async fn has_deleted(&self, organization: &OrganizationId) -> Result<bool> {
        self.engine
            .read("looking for deleted files", organization, |sql, organization| {
                Box::pin(async move { sql.exists(ANY_DELETED, &[&organization.as_str()]).await })
            })
            .await
    }
}

/// A deleted row with the time at which it can be purged, and its attempts.
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

/// Returns true if a claim would find files. The query only reads, so that an unsuccessful search costs no
/// transaction.
async fn is_any_due(
    sql: &Sql,
    holder: &ProviderCode,
    due: DueFiles<'_>,
    now: Timestamp,
) -> Result<bool, Fault> {
    let holder = holder.as_str();
    let held = holds::last_held_row(sql, now).await?;
    let (before, now) = (due.marked_before.as_millis(), now.as_millis());
    if let Some(organization) = due.organization {
        let params: [Param<'_>; 5] = [&holder, &before, &now, &held, &organization.as_str()];
        return sql.exists(ANY_OF, &params).await;
    }

    let unclaimed = if held > 0 {
        sql.exists(ANY_UNCLAIMED_BEHIND, &[&holder, &before, &held]).await?
    } else {
        sql.exists(ANY_UNCLAIMED, &[&holder, &before]).await?
    };
    Ok(unclaimed || sql.exists(ANY_CLAIMED, &[&holder, &now]).await?)
}

/// Claims at most `limit` files at `holder`, in the order of their due times. Omits files that a running
/// snapshot can name, unless they were claimed before. The query does not even read these files. Newer files
/// are then claimed in row order. Damaged records are set aside, and later claims skip them.
async fn claim(
    sql: &Sql,
    lease: Lease<'_>,
    holder: &ProviderCode,
    due: DueFiles<'_>,
    limit: usize,
) -> Result<Vec<PurgeClaim>, Fault> {
    sql.lock_shared(Lock::Holds).await?;
    loop {
        let claims = claim_readable(sql, lease, holder, due, limit).await?;
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
    due: DueFiles<'_>,
    limit: usize,
) -> Result<Vec<PurgeClaim>, Fault> {
    let (before, now) = (due.marked_before.as_millis(), lease.now.as_millis());
    let (holder, rows) = (holder.as_str(), row::limit(limit));
    let grace = now.saturating_sub(before);
    let held = holds::last_held_row(sql, lease.now).await?;

    let mut found = match due.organization {
        Some(one) => {
            let params: [Param<'_>; 5] = [&holder, &before, &rows, &held, &one.as_str()];
            sql.collect(UNCLAIMED_OF, &params, candidate).await?
        }
        None if held > 0 => {
            sql.collect(UNCLAIMED_BEHIND, &[&holder, &before, &rows, &held], candidate).await?
        }
        None => sql.collect(UNCLAIMED, &[&holder, &before, &rows], candidate).await?,
    };
    for marked in &mut found {
        marked.due = marked.due.saturating_add(grace);
    }
    found.extend(match due.organization {
        Some(one) => {
            let params: [Param<'_>; 4] = [&holder, &now, &rows, &one.as_str()];
            sql.collect(CLAIMED_OF, &params, candidate).await?
        }
        None => sql.collect(CLAIMED, &[&holder, &now, &rows], candidate).await?,
    });
    found.sort_by_key(|candidate| candidate.due);
    found.truncate(limit);

    let claims = with_dropped(sql, found).await?;
    let ids: Vec<String> = claims.iter().map(|claim| id(claim.record.file_id)).collect();
    if !ids.is_empty() {
        sql.execute(CLAIM, &[&ids, &lease.owner, &lease.until.as_millis()]).await?;
    }
    Ok(claims)
}

/// Adds the dropped blobs of the files. Skips a file with a damaged dropped blob, because its bytes must not
/// outlive the record unnoticed.
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
