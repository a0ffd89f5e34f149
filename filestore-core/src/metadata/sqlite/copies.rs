//! Copies to providers: claims of the sync worker, files that are elsewhere, what each provider holds.
//!
//! A SYNCING row is leased to `sync_owner` until `sync_not_before`; a PENDING one is not to be tried
//! before it.

use rusqlite::{Connection, params};

use crate::domain::clock::Timestamp;
use crate::domain::id::{BlobId, FileId, OrganizationId};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::metadata::{Holding, SyncClaim, WriteIntent};

use super::fault::{Fault, Source};
use super::intents;
use super::row::{self, COLUMNS, columns, id};
use super::sync;
use super::writer::WriteTx;

pub(super) const DUE: &str = "SELECT file_id FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = ?1 AND storage_provider = ?2
     AND sync_not_before <= ?3 ORDER BY sync_not_before, file_id LIMIT ?4";

pub(super) const OVERDUE: &str = "SELECT file_id FROM files INDEXED BY files_syncing
     WHERE sync_status = 'SYNCING' AND sync_not_before <= ?1";

pub(super) const RELEASE: &str =
    "UPDATE files SET sync_status = 'PENDING', sync_owner = NULL, sync_not_before = 0
     WHERE file_id = ?1 AND sync_status = 'SYNCING'";

pub(super) const CLAIM: &str =
    "UPDATE files SET sync_status = 'SYNCING', sync_owner = ?2, sync_not_before = ?3
     WHERE file_id = ?1 AND sync_status = 'PENDING' AND purge_status IS NULL AND storage_provider = ?4
     AND sync_not_before <= ?5";

pub(super) const CLAIMED: &str =
    concat!("SELECT ", columns!(), ", sync_attempts FROM files WHERE file_id = ?1");

pub(super) const RENEW: &str = "UPDATE files SET sync_not_before = ?2
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_syncing
     WHERE sync_status = 'SYNCING' AND sync_not_before >= 0 AND sync_owner = ?1)";

pub(super) const OWNED: &str = "SELECT file_id FROM files INDEXED BY files_syncing
     WHERE sync_status = 'SYNCING' AND sync_not_before >= 0 AND sync_owner = ?1";

pub(super) const FAIL: &str = "UPDATE files SET sync_status = ?3, sync_owner = NULL, sync_not_before = ?4,
     sync_attempts = sync_attempts + 1 WHERE file_id = ?1 AND sync_status = 'SYNCING' AND sync_owner = ?2";

pub(super) const ENQUEUE: &str =
    "UPDATE files SET sync_status = 'PENDING', sync_attempts = 0, sync_not_before = 0
     WHERE file_id = ?1 AND sync_status IN ('NONE', 'SYNCED', 'FAILED')";

pub(super) const FAILED: &str = "SELECT file_id FROM files INDEXED BY files_failed
     WHERE sync_status = 'FAILED' AND purge_status IS NULL AND organization_id >= ?1 AND organization_id <= ?2
     ORDER BY organization_id, file_id LIMIT ?3";

pub(super) const ELSEWHERE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM files INDEXED BY files_by_organization WHERE organization_id = ?1 AND purge_status IS NULL
     AND status = 'READY' AND file_id > ?3 AND storage_provider <> ?2 ORDER BY file_id LIMIT ?4"
);

/// Groups what one range of the index gives, so it sorts no more rows than there are groups.
pub(super) const HOLDINGS: &str = "SELECT storage_provider, status, count(*), sum(size_bytes)
     FROM files INDEXED BY files_by_organization WHERE organization_id = ?1 AND purge_status IS NULL
     GROUP BY status, storage_provider";

/// Finds up to `limit` files to claim, a quarter of that of one organization and holder. Only reads.
pub(super) fn find(
    sql: &Connection,
    targets: &[ProviderCode],
    after: Option<&OrganizationId>,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<FileId>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let mut found = row::collect(&snapshot, OVERDUE, [now.as_millis()], |row| {
        row::parse(row, 0).map_err(broken)
    })?;
    // Once round: from behind `after` to the end, then from the beginning up to it.
    let after = after.map_or("", OrganizationId::as_str);
    let mut pair = sync::next_pair(&snapshot, after, LAST)?;
    let mut wrapped = false;
    while found.len() < limit {
        let Some((organization, holder)) = pair else {
            if wrapped {
                break;
            }
            wrapped = true;
            pair = sync::next_pair(&snapshot, "", "")?;
            continue;
        };
        if wrapped && organization.as_str() > after {
            break;
        }
        if let Some(target) = sync::destination(&snapshot, &organization, &holder)?
            && targets.contains(&target)
        {
            let share = limit.div_ceil(4).min(limit - found.len());
            let params =
                params![organization.as_str(), holder.as_str(), now.as_millis(), row::limit(share)];
            let due = row::collect(&snapshot, DUE, params, |row| {
                row::parse::<FileId>(row, 0).map_err(broken)
            })?;
            found.extend(due);
        }
        pair = sync::next_pair(&snapshot, organization.as_str(), holder.as_str())?;
    }
    Ok(found)
}

/// Sorts behind every provider code.
const LAST: &str = "\u{10ffff}";

/// Claims what was found, where it still holds.
pub(super) fn claim(
    tx: &mut WriteTx<'_>,
    found: &[FileId],
    owner: &str,
    targets: &[ProviderCode],
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Vec<SyncClaim>, Fault> {
    let mut claims = Vec::new();
    for overdue in row::collect(tx.sql, OVERDUE, [now.as_millis()], |row| {
        row::parse::<FileId>(row, 0).map_err(broken)
    })? {
        release(tx, overdue)?;
    }
    for &file in found {
        let Some((record, attempts)) = read(tx.sql, file)? else { continue };
        let holder = record.blob.provider.clone();
        let target = sync::destination(tx.sql, &record.organization_id, &holder)?;
        let Some(target) = target.filter(|target| targets.contains(target)) else { continue };
        let params =
            params![id(file), owner, lease_until.as_millis(), holder.as_str(), now.as_millis()];
        if row::execute(tx.sql, CLAIM, params)? > 0 {
            tx.touch(file);
            let state = record.state.claim().map_err(|source| Fault::Row {
                what: format!("file {file}"),
                source: source.into(),
            })?;
            let FileRecord { organization_id, sub_system, created_at, .. } = &record;
            let key = BlobKey::new(organization_id, sub_system, *created_at, BlobId::generate(now));
            let (provider, begun_at) = (target.clone(), now);
            let intent = WriteIntent { file_id: file, provider, key: key.clone(), begun_at };
            intents::begin(tx.sql, &[intent])?;
            claims.push(SyncClaim {
                record: FileRecord { state, ..record },
                target,
                key,
                attempts,
            });
        }
    }
    Ok(claims)
}

fn read(sql: &Connection, file: FileId) -> Result<Option<(FileRecord, u32)>, Fault> {
    row::first(sql, CLAIMED, [id(file)], |row| Ok((row::record(row)?, row.get(COLUMNS)?)))
}

fn release(tx: &mut WriteTx<'_>, file: FileId) -> Result<(), Fault> {
    row::execute(tx.sql, RELEASE, [id(file)])?;
    tx.touch(file);
    Ok(())
}

pub(super) fn clear_leases(tx: &mut WriteTx<'_>) -> Result<(), Fault> {
    let syncing =
        row::collect(tx.sql, OVERDUE, [i64::MAX], |row| row::parse(row, 0).map_err(broken))?;
    syncing.into_iter().try_for_each(|file| release(tx, file))
}

pub(super) fn release_all(tx: &mut WriteTx<'_>, owner: &str) -> Result<(), Fault> {
    let owned = row::collect(tx.sql, OWNED, [owner], |row| row::parse(row, 0).map_err(broken))?;
    owned.into_iter().try_for_each(|file| release(tx, file))
}

pub(super) fn renew(sql: &Connection, owner: &str, lease_until: Timestamp) -> Result<(), Fault> {
    row::execute(sql, RENEW, params![owner, lease_until.as_millis()]).map(drop)
}

pub(super) fn fail(
    tx: &mut WriteTx<'_>,
    owner: &str,
    file: FileId,
    retry_at: Option<Timestamp>,
) -> Result<(), Fault> {
    let status = if retry_at.is_some() { "PENDING" } else { "FAILED" };
    let not_before = retry_at.map_or(0, Timestamp::as_millis);
    row::execute(tx.sql, FAIL, params![id(file), owner, status, not_before])?;
    tx.touch(file);
    Ok(())
}

pub(super) fn enqueue(
    tx: &mut WriteTx<'_>,
    organization: &OrganizationId,
    target: &ProviderCode,
    after: Option<FileId>,
    limit: usize,
) -> Result<(u64, Option<FileId>), Fault> {
    let found = elsewhere(tx.sql, organization, target, after, limit)?;
    let next = if found.len() < limit { None } else { found.last().map(|record| record.file_id) };
    let mut queued = 0;
    for record in found {
        queued += queue(tx, record.file_id)?;
    }
    Ok((queued, next))
}

pub(super) fn retry(
    tx: &mut WriteTx<'_>,
    organization: Option<&OrganizationId>,
    limit: usize,
) -> Result<u64, Fault> {
    let (from, to) = organization.map_or(("", LAST), |one| (one.as_str(), one.as_str()));
    let found = row::collect(tx.sql, FAILED, params![from, to, row::limit(limit)], |row| {
        row::parse(row, 0).map_err(broken)
    })?;
    let mut queued = 0;
    for file in found {
        queued += queue(tx, file)?;
    }
    Ok(queued)
}

fn queue(tx: &mut WriteTx<'_>, file: FileId) -> Result<u64, Fault> {
    let changed = row::execute(tx.sql, ENQUEUE, [id(file)])?;
    tx.touch(file);
    Ok(changed as u64)
}

pub(super) fn elsewhere(
    sql: &Connection,
    organization: &OrganizationId,
    target: &ProviderCode,
    after: Option<FileId>,
    limit: usize,
) -> Result<Vec<FileRecord>, Fault> {
    let after = after.map(id).unwrap_or_default();
    let params = params![organization.as_str(), target.as_str(), after, row::limit(limit)];
    row::collect(sql, ELSEWHERE, params, row::record)
}

pub(super) fn holdings(
    sql: &Connection,
    organization: &OrganizationId,
) -> Result<Vec<Holding>, Fault> {
    row::collect(sql, HOLDINGS, [organization.as_str()], |row| {
        let broken = |source| Fault::Row { what: "a holding".into(), source };
        Ok(Holding {
            provider: row::parse(row, 0).map_err(broken)?,
            status: row::parse(row, 1).map_err(broken)?,
            files: row::count(row, 2)?,
            bytes: row::count(row, 3)?,
        })
    })
}

fn broken(source: Source) -> Fault {
    Fault::Row { what: "a file to copy".into(), source }
}
