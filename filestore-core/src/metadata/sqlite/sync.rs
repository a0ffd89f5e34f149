//! Files that wait for the sync worker.
//!
//! Whether a waiting file has somewhere to go depends only on its organization and on who holds its
//! blob. So settling looks at one row of each such pair, not at each file: many files that wait for
//! their provider do not slow down those that need not wait.

use rusqlite::{Connection, params};

use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::domain::status::SyncStatus;
use crate::metadata::SyncCounts;

use super::bindings;
use super::fault::{Fault, Source};
use super::row;
use super::writer::WriteTx;

pub(super) const NEXT_PAIR: &str =
    "SELECT organization_id, storage_provider FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND (organization_id, storage_provider) > (?1, ?2)
     ORDER BY organization_id, storage_provider LIMIT 1";

pub(super) const WAITING: &str = "SELECT file_id FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = ?1 AND storage_provider = ?2
     ORDER BY sync_not_before, file_id LIMIT ?3";

pub(super) const SETTLE: &str =
    "UPDATE files SET sync_status = 'NONE' WHERE file_id = ?1 AND sync_status = 'PENDING'
     AND purge_status IS NULL AND storage_provider = ?2";

pub(super) const COUNTS: &str = "SELECT files FROM sync_totals WHERE sync_status = ?1";

/// Files of one organization whose blobs one provider holds, and that need not wait.
#[derive(Debug)]
pub(super) struct Settled {
    organization: OrganizationId,
    holder: ProviderCode,
    ids: Vec<FileId>,
}

/// Finds up to `limit` files to settle. Only reads, so that looking in vain costs the writer nothing.
pub(super) fn find(sql: &Connection, limit: usize) -> Result<Vec<Settled>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let mut found = Vec::new();
    let mut left = limit;
    let mut pair = next_pair(&snapshot, "", "")?;
    while let Some((organization, holder)) = pair
        && left > 0
    {
        pair = next_pair(&snapshot, organization.as_str(), holder.as_str())?;
        if destination(&snapshot, &organization, &holder)?.is_some() {
            continue;
        }
        let params = params![organization.as_str(), holder.as_str(), row::limit(left)];
        let ids =
            row::collect(&snapshot, WAITING, params, |row| row::parse(row, 0).map_err(broken))?;
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

/// Where the files of `organization` that `holder` holds are to go: the provider it is bound to,
/// unless that is LOCAL or `holder` itself. It may be gone from the configuration: then they wait.
pub(super) fn destination(
    sql: &Connection,
    organization: &OrganizationId,
    holder: &ProviderCode,
) -> Result<Option<ProviderCode>, Fault> {
    let Some(number) = organization.number() else { return Ok(None) };
    let bound = bindings::active(sql, number)?.map(|binding| binding.provider);
    Ok(bound.filter(|provider| !provider.is_local() && provider != holder))
}

pub(super) fn next_pair(
    sql: &Connection,
    organization: &str,
    holder: &str,
) -> Result<Option<(OrganizationId, ProviderCode)>, Fault> {
    row::first(sql, NEXT_PAIR, [organization, holder], |row| {
        Ok((row::parse(row, 0).map_err(broken)?, row::parse(row, 1).map_err(broken)?))
    })
}

fn broken(source: Source) -> Fault {
    Fault::Row { what: "a file that waits for sync".into(), source }
}

pub(super) fn counts(sql: &Connection) -> Result<SyncCounts, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let mut counts = SyncCounts::default();
    for (count, status) in counts.iter_mut().zip(SyncStatus::ALL) {
        *count = row::first(&snapshot, COUNTS, [status.as_str()], |row| row::count(row, 0))?
            .unwrap_or(0);
    }
    Ok(counts)
}
