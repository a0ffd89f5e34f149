//! Deleted files: expiry and claims.
//!
//! A deleted row is *unclaimed* (it can be restored) or *claimed* (it can never be restored). A claimed row
//! must not be processed before `purge_not_before`, which is the end of its lease or of the wait after a
//! failure. `purge_owner` is set during a lease.
//!
//! A claimed row is always due, independently of its mark. A run without the grace period may have claimed
//! it, and it can no longer be restored.
//!
//! Claims are made for one holder at a time, so that a holder that does not answer does not delay files of
//! other holders. Claims have the order of the due times. A failed file becomes due again after files that
//! were deleted in the meantime, and does not starve them.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};

use crate::domain::error::Result;
use crate::domain::file::record::FileRecord;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{DueFiles, Lease, PurgeClaim, Purged, Purges};

use super::{dropped, holds, receipts};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::Fault;
use crate::metadata::sqlite::tables::damage;
use crate::metadata::sqlite::tables::row;
use crate::metadata::sqlite::tables::row::{COLUMNS, columns, id};

pub(in crate::metadata::sqlite) const EXPIRE: &str =
    "UPDATE files SET purge_status = 'SYSTEM_PURGE', purge_marked_at = ?1, updated_at = ?1,
     deleted_at = ?1, deleted_by = 'expiry'
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_expiring
     WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
     RETURNING file_id";

/// The same for one organization.
pub(in crate::metadata::sqlite) const EXPIRE_OF: &str =
    "UPDATE files SET purge_status = 'SYSTEM_PURGE', purge_marked_at = ?1, updated_at = ?1,
     deleted_at = ?1, deleted_by = 'expiry'
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_by_organization
     WHERE organization_id = ?3 AND purge_status IS NULL AND status = 'TEMP' AND expires_at <= ?1 LIMIT ?2)
     RETURNING file_id";

pub(in crate::metadata::sqlite) const ANY_EXPIRED: &str =
    "SELECT 1 FROM files INDEXED BY files_expiring
     WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= ?1 LIMIT 1";

pub(in crate::metadata::sqlite) const UNCLAIMED: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1 AND purge_marked_at <= ?2
     ORDER BY purge_marked_at LIMIT ?3"
);

/// Selects files behind the held rows, in row order. Held rows are not read.
pub(in crate::metadata::sqlite) const UNCLAIMED_BEHIND: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files INDEXED BY files_unclaimed_rows
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1 AND rowid > ?4
     AND purge_marked_at <= ?2 ORDER BY rowid LIMIT ?3"
);

pub(in crate::metadata::sqlite) const CLAIMED: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_not_before, purge_attempts FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider = ?1 AND purge_not_before <= ?2
     ORDER BY purge_not_before LIMIT ?3"
);

/// Selects files of one organization only. The query reads held rows.
pub(in crate::metadata::sqlite) const UNCLAIMED_OF: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_marked_at, purge_attempts FROM files INDEXED BY files_by_organization
     WHERE organization_id = ?5 AND purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0
     AND storage_provider = ?1 AND rowid > ?4 AND purge_marked_at <= ?2 LIMIT ?3"
);

pub(in crate::metadata::sqlite) const CLAIMED_OF: &str = concat!(
    "SELECT ",
    columns!(),
    ", purge_not_before, purge_attempts FROM files INDEXED BY files_by_organization
     WHERE organization_id = ?4 AND purge_status = 'SYSTEM_PURGE' AND purge_claimed = 1
     AND storage_provider = ?1 AND purge_not_before <= ?2 LIMIT ?3"
);

pub(in crate::metadata::sqlite) const ANY_UNCLAIMED: &str =
    "SELECT 1 FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1
     AND purge_marked_at <= ?2 LIMIT 1";

pub(in crate::metadata::sqlite) const ANY_UNCLAIMED_BEHIND: &str = "SELECT 1 FROM files INDEXED BY files_unclaimed_rows
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1 AND rowid > ?3
     AND purge_marked_at <= ?2 LIMIT 1";

pub(in crate::metadata::sqlite) const ANY_CLAIMED: &str =
    "SELECT 1 FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider = ?1 AND purge_not_before <= ?2 LIMIT 1";

pub(in crate::metadata::sqlite) const ANY_OF: &str = "SELECT 1 FROM files INDEXED BY files_by_organization
     WHERE organization_id = ?5 AND purge_status = 'SYSTEM_PURGE' AND storage_provider = ?1
     AND CASE purge_claimed WHEN 0 THEN rowid > ?4 AND purge_marked_at <= ?2 ELSE purge_not_before <= ?3 END LIMIT 1";

pub(in crate::metadata::sqlite) const ANY_DELETED: &str =
    "SELECT 1 FROM files INDEXED BY files_by_organization
     WHERE organization_id = ?1 AND purge_status = 'SYSTEM_PURGE' LIMIT 1";

pub(in crate::metadata::sqlite) const CLAIM: &str = "UPDATE files SET purge_claimed = 1, purge_owner = ?2, purge_not_before = ?3 WHERE file_id = ?1";

pub(in crate::metadata::sqlite) const FINISH: &str =
    "DELETE FROM files WHERE file_id = ?1 AND purge_claimed = 1 AND purge_owner = ?2";

pub(in crate::metadata::sqlite) const FAIL: &str = "UPDATE files
     SET purge_owner = NULL, purge_not_before = ?3, purge_attempts = purge_attempts + 1
     WHERE file_id = ?1 AND purge_claimed = 1 AND purge_owner = ?2";

pub(in crate::metadata::sqlite) const AWAIT: &str =
    "UPDATE files SET purge_owner = NULL, purge_not_before = ?3
     WHERE file_id = ?1 AND purge_claimed = 1 AND purge_owner = ?2";

#[async_trait]
impl Purges for SqliteMetadata {
    async fn expire_temp(
        &self,
        organization: Option<&OrganizationId>,
        now: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let (organization, now) = (organization.cloned(), now.as_millis());
        // On a reader, so that looking in vain costs the writer nothing.
        let looking = self.readers.run("looking for expired files", move |sql| {
            Ok(row::first(sql, ANY_EXPIRED, [now], |_| Ok(()))?.is_some())
        });
        if !looking.await? {
            return Ok(0);
        }

        self.writer
            .run("expiring files", move |tx| {
                let limit = row::limit(limit);
                let expired = match &organization {
                    None => row::collect(tx.sql, EXPIRE, params![now, limit], expired_id)?,
                    Some(one) => {
                        let params = params![now, limit, one.as_str()];
                        row::collect(tx.sql, EXPIRE_OF, params, expired_id)?
                    }
                };
                for &id in &expired {
                    tx.touch(id);
                }
                Ok(expired.len() as u64)
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
        let Lease { owner, now, until } = lease;
        let (owner, holder) = (owner.to_owned(), holder.clone());
        let DueFiles { marked_before, organization } = due;
        let organization = organization.cloned();

        let looked_at = (holder.clone(), organization.clone());
        let is_due = self
            .readers
            .run("looking for deleted files", move |sql| {
                let (holder, organization) = &looked_at;
                let due = DueFiles { marked_before, organization: organization.as_ref() };
                is_any_due(sql, holder, due, now)
            })
            .await?;
        if !is_due {
            return Ok(Vec::new());
        }

        self.writer
            .run("claiming deleted files", move |tx| {
                let lease = Lease { owner: &owner, now, until };
                let due = DueFiles { marked_before, organization: organization.as_ref() };
                claim(tx.sql, lease, &holder, due, limit)
            })
            .await
    }

    async fn await_dropped(&self, lease: Lease<'_>, record: &FileRecord) -> Result<()> {
        let Lease { owner, now, until } = lease;
        let (owner, file, holder) =
            (owner.to_owned(), record.file_id, record.blob.provider.clone());
        self.writer
            .run("postponing a purge", move |tx| {
                let params = params![id(file), owner, until.as_millis()];
                if row::execute(tx.sql, AWAIT, params)? == 0 {
                    return Ok(());
                }
                // Blobs that went since the file was claimed ended no wait: if they were all, there is none.
                if dropped::hasten(tx.sql, file, &holder, now)? == 0 {
                    dropped::go_on(tx.sql, file)?;
                }
                Ok(())
            })
            .await
    }

    async fn finish_purges(&self, owner: &str, purged: &[Purged], now: Timestamp) -> Result<u64> {
        let (owner, purged) = (owner.to_owned(), purged.to_vec());
        self.writer
            .run("deleting records", move |tx| {
                let mut gone = 0;
                for one in &purged {
                    if receipts::put(tx.sql, &owner, one, now)? {
                        row::execute(tx.sql, FINISH, params![id(one.file_id), owner])?;
                        dropped::forget_file(tx.sql, one.file_id)?;
                        tx.touch(one.file_id);
                        gone += 1;
                    }
                }
                Ok(gone)
            })
            .await
    }

    async fn postpone_purge(&self, owner: &str, file: FileId, retry_at: Timestamp) -> Result<()> {
        let owner = owner.to_owned();
        self.writer
            .run("postponing a purge", move |tx| {
                row::execute(tx.sql, FAIL, params![id(file), owner, retry_at.as_millis()]).map(drop)
            })
            .await
    }

    async fn has_deleted(&self, organization: &OrganizationId) -> Result<bool> {
        let organization = organization.clone();
        self.readers
            .run("looking for deleted files", move |sql| {
                Ok(row::first(sql, ANY_DELETED, [organization.as_str()], |_| Ok(()))?.is_some())
            })
            .await
    }
}

fn expired_id(row: &Row<'_>) -> Result<FileId, Fault> {
    row::parse(row, 0).map_err(|source| Fault::Row { what: "an expired file".into(), source })
}

/// A deleted row with the time at which it can be purged, and its attempts.
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

/// Returns true if a claim would find files. The query only reads, so that an unsuccessful search does not
/// use the writer.
pub(in crate::metadata::sqlite) fn is_any_due(
    sql: &Connection,
    holder: &ProviderCode,
    due: DueFiles<'_>,
    now: Timestamp,
) -> Result<bool, Fault> {
    let holder = holder.as_str();
    let held = holds::last_held_row(sql, now)?;
    let (before, now) = (due.marked_before.as_millis(), now.as_millis());
    if let Some(organization) = due.organization {
        let params = params![holder, before, now, held, organization.as_str()];
        return Ok(row::first(sql, ANY_OF, params, |_| Ok(()))?.is_some());
    }

    let unclaimed = if held > 0 {
        row::first(sql, ANY_UNCLAIMED_BEHIND, params![holder, before, held], |_| Ok(()))?
    } else {
        row::first(sql, ANY_UNCLAIMED, params![holder, before], |_| Ok(()))?
    };
    if unclaimed.is_some() {
        return Ok(true);
    }

    let claimed = row::first(sql, ANY_CLAIMED, params![holder, now], |_| Ok(()))?;
    Ok(claimed.is_some())
}

/// Claims at most `limit` files at `holder`, in the order of their due times. Omits files that a running
/// snapshot can name, unless they were claimed before. The query does not even read these files. Newer files
/// are then claimed in row order. Damaged records are set aside, and later claims skip them.
pub(in crate::metadata::sqlite) fn claim(
    sql: &Connection,
    lease: Lease<'_>,
    holder: &ProviderCode,
    due: DueFiles<'_>,
    limit: usize,
) -> Result<Vec<PurgeClaim>, Fault> {
    loop {
        let claims = claim_readable(sql, lease, holder, due, limit)?;
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
    due: DueFiles<'_>,
    limit: usize,
) -> Result<Vec<PurgeClaim>, Fault> {
    let (before, now) = (due.marked_before.as_millis(), lease.now.as_millis());
    let (holder, rows) = (holder.as_str(), row::limit(limit));
    let grace = now.saturating_sub(before);
    let held = holds::last_held_row(sql, lease.now)?;

    let mut found = match due.organization {
        Some(one) => {
            let unclaimed = params![holder, before, rows, held, one.as_str()];
            row::collect(sql, UNCLAIMED_OF, unclaimed, candidate)?
        }
        None if held > 0 => {
            let unclaimed = params![holder, before, rows, held];
            row::collect(sql, UNCLAIMED_BEHIND, unclaimed, candidate)?
        }
        None => row::collect(sql, UNCLAIMED, params![holder, before, rows], candidate)?,
    };
    for marked in &mut found {
        marked.due = marked.due.saturating_add(grace);
    }
    found.extend(match due.organization {
        Some(one) => {
            row::collect(sql, CLAIMED_OF, params![holder, now, rows, one.as_str()], candidate)?
        }
        None => row::collect(sql, CLAIMED, params![holder, now, rows], candidate)?,
    });
    found.sort_by_key(|candidate| candidate.due);
    found.truncate(limit);

    let mut claims = Vec::with_capacity(found.len());
    for Candidate { record, attempts, .. } in found {
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
