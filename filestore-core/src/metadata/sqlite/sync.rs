//! Files that wait for the sync worker: settling, claims, queueing, counts.
//!
//! A SYNCING row is leased to `sync_owner` until `sync_not_before`; a PENDING row waits until
//! `sync_not_before`.
//!
//! A waiting file has somewhere to go or not by its organization and the holder of its blob alone.
//! So settling looks at one row of each such pair, not at each file: many files that wait for their
//! provider do not slow down those that need not wait. Settling leaves `updated_at` alone: no
//! client has changed anything.
//!
//! A claim is one transaction with the intents of its copies, and organizations take turns. A queue
//! in memory would forget its work at a crash and serve the loudest organization first.

use rusqlite::{Connection, Params, Row, params};

use crate::domain::clock::Timestamp;
use crate::domain::id::{BlobId, FileId, OrganizationId};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::domain::status::SyncStatus;
use crate::metadata::{AfterFailure, Lease, SyncClaim, SyncCounts, WriteIntent, stored};

use super::fault::{Fault, Source};
use super::row::{self, COLUMNS, columns, id};
use super::writer::WriteTx;
use super::{bindings, damage, intents};

/// The third value puts the search behind the last row of the pair: with two it would begin at the first, and
/// pass all that wait.
pub(super) const NEXT_PAIR: &str =
    "SELECT organization_id, storage_provider FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL
     AND (organization_id, storage_provider, sync_not_before) > (?1, ?2, 9223372036854775807)
     ORDER BY organization_id, storage_provider LIMIT 1";

pub(super) const WAITING: &str = "SELECT file_id FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = ?1 AND storage_provider = ?2
     ORDER BY sync_not_before, file_id LIMIT ?3";

pub(super) const SETTLE: &str =
    "UPDATE files SET sync_status = 'NONE' WHERE file_id = ?1 AND sync_status = 'PENDING'
     AND purge_status IS NULL AND storage_provider = ?2";

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
     sync_attempts = sync_attempts + ?5 WHERE file_id = ?1 AND sync_status = 'SYNCING' AND sync_owner = ?2";

pub(super) const END_WAITS: &str = "UPDATE files SET sync_not_before = ?3
     WHERE rowid IN (SELECT rowid FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = ?1 AND storage_provider = ?2
     AND sync_not_before > ?3 LIMIT ?4)";

pub(super) const ENQUEUE: &str =
    "UPDATE files SET sync_status = 'PENDING', sync_attempts = 0, sync_not_before = 0
     WHERE file_id = ?1 AND sync_status IN ('NONE', 'SYNCED', 'FAILED')";

pub(super) const ENQUEUE_TO: &str =
    "UPDATE files SET sync_status = 'PENDING', sync_attempts = 0, sync_not_before = 0
     WHERE file_id = ?1 AND sync_status IN ('NONE', 'SYNCED', 'FAILED') AND status = 'READY'
     AND purge_status IS NULL AND storage_provider <> ?2";

pub(super) const FAILED: &str = "SELECT file_id FROM files INDEXED BY files_failed
     WHERE sync_status = 'FAILED' AND purge_status IS NULL AND organization_id >= ?1 AND organization_id <= ?2
     ORDER BY organization_id, file_id LIMIT ?3";

pub(super) const COUNTS: &str = "SELECT files FROM sync_totals WHERE sync_status = ?1";

/// Sorts behind every provider code.
const LAST: &str = "\u{10ffff}";

/// Files of one organization whose blobs one provider holds, and that need not wait.
#[derive(Debug)]
pub(super) struct Settled {
    organization: OrganizationId,
    holder: ProviderCode,
    ids: Vec<FileId>,
}

/// Finds up to `limit` files to settle. Only reads, so that looking in vain costs the writer
/// nothing.
pub(super) fn find_settled(sql: &Connection, limit: usize) -> Result<Vec<Settled>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let mut found = Vec::new();
    let mut left = limit;
    let mut pair = next_pair(&snapshot, "", "")?;

    while let Some((organization, holder)) = pair
        && left > 0
    {
        pair = next_pair(&snapshot, organization.as_str(), holder.as_str())?;
        let to = damage::pass_over(destination(&snapshot, &organization, &holder))?;
        if to != Some(None) {
            continue;
        }

        let params = params![organization.as_str(), holder.as_str(), row::limit(left)];
        let ids = file_ids(&snapshot, WAITING, params)?;
        left = left.saturating_sub(ids.len());
        found.push(Settled { organization, holder, ids });
    }
    Ok(found)
}

/// Settles what was found, where it still holds.
pub(super) fn settle(tx: &mut WriteTx<'_>, found: &[Settled]) -> Result<Vec<FileId>, Fault> {
    let mut settled = Vec::new();
    for Settled { organization, holder, ids } in found {
        if destination(tx.sql, organization, holder)?.is_some() {
            continue;
        }

        for &id in ids {
            if row::execute(tx.sql, SETTLE, params![row::id(id), holder.as_str()])? > 0 {
                tx.touch(id);
                settled.push(id);
            }
        }
    }
    Ok(settled)
}

/// Finds up to `limit` files to claim that may go to a target and are not at an unreadable provider: first a
/// quarter of the limit of each organization and holder in turn, then more of those that have more. Only reads.
pub(super) fn find_due(
    sql: &Connection,
    (targets, unreadable): (&[ProviderCode], &[ProviderCode]),
    after: Option<&OrganizationId>,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<FileId>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let mut found = file_ids(&snapshot, OVERDUE, [now.as_millis()])?;

    // Once round: from behind `after` to the end, then from the beginning up to it.
    let after = after.map_or("", OrganizationId::as_str);
    let mut pair = next_pair(&snapshot, after, LAST)?;
    let mut wrapped = false;
    let mut more = Vec::new();

    while found.len() < limit {
        let Some((organization, holder)) = pair else {
            if wrapped {
                break;
            }
            wrapped = true;
            pair = next_pair(&snapshot, "", "")?;
            continue;
        };
        if wrapped && organization.as_str() > after {
            break;
        }

        let target = damage::pass_over(destination(&snapshot, &organization, &holder))?.flatten();
        if target.is_some_and(|target| targets.contains(&target)) && !unreadable.contains(&holder) {
            let left = limit - found.len();
            let params =
                params![organization.as_str(), holder.as_str(), now.as_millis(), row::limit(left)];
            let mut due = file_ids(&snapshot, DUE, params)?;
            more.extend(due.drain(due.len().min(limit.div_ceil(4))..));
            found.extend(due);
        }

        pair = next_pair(&snapshot, organization.as_str(), holder.as_str())?;
    }

    more.truncate(limit.saturating_sub(found.len()));
    found.extend(more);
    Ok(found)
}

/// Claims what was found, where it still holds.
pub(super) fn claim(
    tx: &mut WriteTx<'_>,
    found: &[FileId],
    targets: &[ProviderCode],
    lease: Lease<'_>,
) -> Result<Vec<SyncClaim>, Fault> {
    for overdue in file_ids(tx.sql, OVERDUE, [lease.now.as_millis()])? {
        release_one(tx, overdue)?;
    }

    let mut claims = Vec::new();
    for &file in found {
        let claim = damage::pass_over(claim_one(tx, file, targets, lease))?;
        claims.extend(claim.flatten());
    }
    damage::set_aside(tx.sql, damage::SYNC_NEVER)?;
    Ok(claims)
}

/// Claims one file and notes the write of its copy, if the file still waits for one of `targets`.
fn claim_one(
    tx: &mut WriteTx<'_>,
    file: FileId,
    targets: &[ProviderCode],
    lease: Lease<'_>,
) -> Result<Option<SyncClaim>, Fault> {
    let Some((record, attempts)) =
        row::first(tx.sql, CLAIMED, [id(file)], |row| Ok((row::record(row)?, row.get(COLUMNS)?)))?
    else {
        return Ok(None);
    };
    let holder = record.blob.provider.clone();
    let target = destination(tx.sql, &record.organization_id, &holder)?;
    let Some(target) = target.filter(|target| targets.contains(target)) else { return Ok(None) };

    let (now, until) = (lease.now.as_millis(), lease.until.as_millis());
    let params = params![id(file), lease.owner, until, holder.as_str(), now];
    if row::execute(tx.sql, CLAIM, params)? == 0 {
        return Ok(None);
    }
    tx.touch(file);

    let state = record
        .state
        .claim()
        .map_err(|source| Fault::Record { file_id: file.to_string(), source: source.into() })?;
    let FileRecord { organization_id, sub_system, created_at, .. } = &record;
    let blob = BlobId::generate(lease.now);
    let key = BlobKey::new(organization_id, sub_system, *created_at, blob);

    let intent = WriteIntent {
        file_id: file,
        provider: target.clone(),
        key: key.clone(),
        begun_at: lease.now,
        owner: Some(lease.owner.to_owned()),
    };
    intents::begin(tx.sql, &[intent])?;

    let record = FileRecord { state, ..record };
    Ok(Some(SyncClaim { record, target, key, attempts }))
}

/// Makes the leases of an owner last until the end of `lease`, and its notes as young as it.
pub(super) fn renew(sql: &Connection, lease: Lease<'_>) -> Result<(), Fault> {
    row::execute(sql, RENEW, params![lease.owner, lease.until.as_millis()])?;
    intents::renew(sql, lease.owner, lease.now)
}

/// Ends the waits of up to `limit` files that are to go to `target`; returns how many.
pub(super) fn end_waits(
    sql: &Connection,
    target: &ProviderCode,
    now: Timestamp,
    limit: usize,
) -> Result<u64, Fault> {
    let mut ended = 0;
    let mut pair = next_pair(sql, "", "")?;
    while let Some((organization, holder)) = pair
        && ended < limit
    {
        let to = damage::pass_over(destination(sql, &organization, &holder))?.flatten();
        if to.is_some_and(|to| to == *target) {
            let left = row::limit(limit - ended);
            let params = params![organization.as_str(), holder.as_str(), now.as_millis(), left];
            ended += row::execute(sql, END_WAITS, params)?;
        }
        pair = next_pair(sql, organization.as_str(), holder.as_str())?;
    }
    Ok(ended as u64)
}

/// Releases the claims of `owner`.
pub(super) fn release(tx: &mut WriteTx<'_>, owner: &str) -> Result<(), Fault> {
    let owned = file_ids(tx.sql, OWNED, [owner])?;
    owned.into_iter().try_for_each(|file| release_one(tx, file))
}

/// Releases every claim of every owner.
pub(super) fn clear_leases(tx: &mut WriteTx<'_>) -> Result<(), Fault> {
    let syncing = file_ids(tx.sql, OVERDUE, [i64::MAX])?;
    syncing.into_iter().try_for_each(|file| release_one(tx, file))
}

fn release_one(tx: &mut WriteTx<'_>, file: FileId) -> Result<(), Fault> {
    row::execute(tx.sql, RELEASE, [id(file)])?;
    tx.touch(file);
    Ok(())
}

/// Ends a claim after a failed attempt, as `next` says.
pub(super) fn fail(
    tx: &mut WriteTx<'_>,
    owner: &str,
    file: FileId,
    next: AfterFailure,
) -> Result<(), Fault> {
    let (status, not_before, attempts) = match next {
        AfterFailure::Postpone(retry_at) => ("PENDING", retry_at.as_millis(), 1),
        AfterFailure::Excuse(retry_at) => ("PENDING", retry_at.as_millis(), 0),
        AfterFailure::GiveUp => ("FAILED", 0, 1),
    };
    row::execute(tx.sql, FAIL, params![id(file), owner, status, not_before, attempts])?;
    tx.touch(file);
    Ok(())
}

/// Queues those of the files that `target` still does not hold; returns how many.
pub(super) fn enqueue(
    tx: &mut WriteTx<'_>,
    target: &ProviderCode,
    files: impl Iterator<Item = FileId>,
) -> Result<u64, Fault> {
    let mut queued = 0;
    for file in files {
        queued += row::execute(tx.sql, ENQUEUE_TO, params![id(file), target.as_str()])? as u64;
        tx.touch(file);
    }
    Ok(queued)
}

/// Queues FAILED files again, of one organization or of all; returns how many.
pub(super) fn retry(
    tx: &mut WriteTx<'_>,
    organization: Option<&OrganizationId>,
    limit: usize,
) -> Result<u64, Fault> {
    let (from, to) = organization.map_or(("", LAST), |one| (one.as_str(), one.as_str()));
    let found = file_ids(tx.sql, FAILED, params![from, to, row::limit(limit)])?;

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

/// Counts files by sync status, all from one snapshot.
pub(super) fn counts(sql: &Connection) -> Result<SyncCounts, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let mut counts = SyncCounts::default();
    for &status in SyncStatus::ALL {
        let count = row::first(&snapshot, COUNTS, [status.as_str()], |row| row::count(row, 0))?;
        *counts.of_mut(status) = count.unwrap_or(0);
    }
    Ok(counts)
}

/// Returns the provider to which the files of `organization` that `holder` holds are to go: the
/// provider of the active binding, unless that is LOCAL or `holder` itself. The provider may be
/// gone from the configuration: then the files wait.
pub(super) fn destination(
    sql: &Connection,
    organization: &OrganizationId,
    holder: &ProviderCode,
) -> Result<Option<ProviderCode>, Fault> {
    let Some(number) = organization.number() else { return Ok(None) };
    let bound = bindings::active(sql, number)?.map(|binding| binding.provider);
    Ok(bound.filter(|provider| !provider.is_local() && provider != holder))
}

/// Returns the next pair of organization and holder that has waiting files. Pairs that cannot be read
/// are passed over.
pub(super) fn next_pair(
    sql: &Connection,
    organization: &str,
    holder: &str,
) -> Result<Option<(OrganizationId, ProviderCode)>, Fault> {
    let (mut organization, mut holder) = (organization.to_owned(), holder.to_owned());
    loop {
        let next = row::first(sql, NEXT_PAIR, [&organization, &holder], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        let Some(next) = next else { return Ok(None) };

        (organization, holder) = next;
        if let Some(pair) = damage::pass_over(parse_pair(&organization, &holder))? {
            return Ok(Some(pair));
        }
    }
}

pub(super) fn parse_pair(
    organization: &str,
    holder: &str,
) -> Result<(OrganizationId, ProviderCode), Fault> {
    stored::pair(organization, holder).map_err(|source| Fault::Row {
        what: format!("files of organization {organization:?} at provider {holder:?}"),
        source,
    })
}

/// Reads the ids that a query selects.
fn file_ids(sql: &Connection, query: &str, params: impl Params) -> Result<Vec<FileId>, Fault> {
    row::collect(sql, query, params, file_id)
}

fn file_id(row: &Row<'_>) -> Result<FileId, Fault> {
    row::parse(row, 0).map_err(inconsistent)
}

fn inconsistent(source: Source) -> Fault {
    Fault::Row { what: "a file that waits for sync".into(), source }
}
