//! Files that wait for the sync worker: settling, claims, queueing and counts.
//!
//! A SYNCING row is leased to `sync_owner` until `sync_not_before`. A PENDING row waits until
//! `sync_not_before`.
//!
//! Only the organization and the holder decide if a waiting file needs a copy. Settling therefore reads one
//! row for each such pair, not for each file. Many files that wait for their provider do not slow down files
//! that need not wait. Settling does not change `updated_at`, because no client changed the files.
//!
//! A claim is one transaction with the write intents of its copies, and organizations take turns. A queue in
//! memory would lose its work in a crash, and would serve the organization with the most requests first.

use async_trait::async_trait;
use rusqlite::{Connection, Params, Row, params};

use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::file::record::FileRecord;
use crate::domain::file::status::SyncStatus;
use crate::domain::id::{BlobId, FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;
use crate::metadata::types::CopyProviders;
use crate::metadata::{
    AfterFailure, Holdings as _, Lease, SyncClaim, SyncCounts, Syncs, WriteIntent,
};

use super::destinations::{Destination, destination, next_pair};
use super::intents;
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};
use crate::metadata::sqlite::session::writer::WriteTx;
use crate::metadata::sqlite::tables::damage;
use crate::metadata::sqlite::tables::row::{self, COLUMNS, columns, id};

/// Selects at most `?3` waiting files of organization `?1` at provider `?2`, by the end of their waits.
pub(in crate::metadata::sqlite) const WAITING: &str = "SELECT file_id FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = ?1 AND storage_provider = ?2
     ORDER BY sync_not_before, file_id LIMIT ?3";

/// Settles file `?1` if it still waits and is still at provider `?2`.
pub(in crate::metadata::sqlite) const SETTLE: &str =
    "UPDATE files SET sync_status = 'NONE', sync_attempts = 0, sync_error = NULL WHERE file_id = ?1 AND sync_status = 'PENDING'
     AND purge_status IS NULL AND storage_provider = ?2";

/// Selects at most `?4` files of organization `?1` at provider `?2` whose waits ended by `?3`.
pub(in crate::metadata::sqlite) const DUE: &str = "SELECT file_id FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = ?1 AND storage_provider = ?2
     AND sync_not_before <= ?3 ORDER BY sync_not_before, file_id LIMIT ?4";

/// Selects the claimed files whose leases ended by `?1`.
pub(in crate::metadata::sqlite) const OVERDUE: &str =
    "SELECT file_id FROM files INDEXED BY files_syncing
     WHERE sync_status = 'SYNCING' AND sync_not_before <= ?1";

/// Ends the claim of file `?1`, whoever has it.
pub(in crate::metadata::sqlite) const RELEASE: &str =
    "UPDATE files SET sync_status = 'PENDING', sync_owner = NULL, sync_not_before = 0
     WHERE file_id = ?1 AND sync_status = 'SYNCING'";

/// Claims file `?1` for `?2` until `?3` if it still waits at provider `?4`, and its wait ended by `?5`.
pub(in crate::metadata::sqlite) const CLAIM: &str =
    "UPDATE files SET sync_status = 'SYNCING', sync_owner = ?2, sync_not_before = ?3
     WHERE file_id = ?1 AND sync_status = 'PENDING' AND purge_status IS NULL AND storage_provider = ?4
     AND sync_not_before <= ?5";

/// Reads the record of file `?1`, and its number of failed attempts.
pub(in crate::metadata::sqlite) const CLAIMED: &str =
    concat!("SELECT ", columns!(), ", sync_attempts FROM files WHERE file_id = ?1");

/// Gives file `?1` of owner `?2` the sync status `?3` and a wait until `?4`. Counts `?5` attempts, and notes
/// the reason `?6`.
pub(in crate::metadata::sqlite) const FAIL: &str = "UPDATE files SET sync_status = ?3, sync_owner = NULL, sync_not_before = ?4,
     sync_attempts = sync_attempts + ?5, sync_error = ?6 WHERE file_id = ?1 AND sync_status = 'SYNCING' AND sync_owner = ?2";

/// Queues file `?1` with all attempts available again, if it has no copy under way.
pub(in crate::metadata::sqlite) const ENQUEUE: &str =
    "UPDATE files SET sync_status = 'PENDING', sync_attempts = 0, sync_error = NULL, sync_not_before = 0
     WHERE file_id = ?1 AND sync_status IN ('NONE', 'SYNCED', 'FAILED')";

/// Queues file `?1` if it is READY, not deleted, and not at provider `?2`.
pub(in crate::metadata::sqlite) const ENQUEUE_TO: &str =
    "UPDATE files SET sync_status = 'PENDING', sync_attempts = 0, sync_error = NULL, sync_not_before = 0
     WHERE file_id = ?1 AND sync_status IN ('NONE', 'SYNCED', 'FAILED') AND status = 'READY'
     AND purge_status IS NULL AND storage_provider <> ?2";

/// Selects at most `?3` failed files of the organizations from `?1` to `?2`.
pub(in crate::metadata::sqlite) const FAILED: &str = "SELECT file_id FROM files INDEXED BY files_failed
     WHERE sync_status = 'FAILED' AND purge_status IS NULL AND organization_id >= ?1 AND organization_id <= ?2
     ORDER BY organization_id, file_id LIMIT ?3";

/// Reads the number of files with sync status `?1`.
pub(in crate::metadata::sqlite) const COUNTS: &str =
    "SELECT files FROM sync_totals WHERE sync_status = ?1";

/// Counts the files of an organization with sync status `?2`, which must be one in the index.
pub(in crate::metadata::sqlite) const QUEUE_OF: &str = "SELECT count(*) FROM files INDEXED BY files_by_sync
     WHERE organization_id = ?1 AND sync_status = ?2 AND sync_status IN ('PENDING', 'SYNCING', 'FAILED')
     AND purge_status IS NULL";

/// A text that sorts behind every provider code.
const LAST: &str = "\u{10ffff}";

/// Files of one organization at one provider that need not wait.
#[derive(Debug)]
struct Settled {
    organization: OrganizationId,
    holder: ProviderCode,
    ids: Vec<FileId>,
}

#[async_trait]
impl Syncs for SqliteMetadata {
    async fn settle_sync(&self, limit: usize) -> Result<Vec<FileId>> {
        // On a reader, so that looking in vain costs the writer nothing.
        let found = self
            .readers
            .run("looking for files to settle", move |sql| find_settled(sql, limit))
            .await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // What still holds is settled.
        self.writer
            .run("settling files", move |tx| {
                let mut settled = Vec::new();
                for Settled { organization, holder, ids } in &found {
                    if destination(tx.sql, organization, holder)? != Destination::Nowhere {
                        continue;
                    }

                    for &id in ids {
                        if row::execute(tx.sql, SETTLE, params![row::id(id), holder.as_str()])? > 0
                        {
                            tx.touch(id);
                            settled.push(id);
                        }
                    }
                }
                Ok(settled)
            })
            .await
    }

    async fn claim_syncs(
        &self,
        lease: Lease<'_>,
        targets: &[ProviderCode],
        unreadable: &[ProviderCode],
        after: Option<&OrganizationId>,
        limit: usize,
    ) -> Result<Vec<SyncClaim>> {
        let Lease { owner, now, until } = lease;
        let (targets, after) = (targets.to_vec(), after.cloned());
        let unreadable = unreadable.to_vec();

        let (found, targets) = self
            .readers
            .run("looking for files to sync", move |sql| {
                let providers = CopyProviders { targets: &targets, unreadable: &unreadable };
                let found = find_due(sql, providers, after.as_ref(), now, limit)?;
                Ok((found, targets))
            })
            .await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }

        let owner = owner.to_owned();
        self.writer
            .run("claiming files to sync", move |tx| {
                claim(tx, &found, &targets, Lease { owner: &owner, now, until })
            })
            .await
    }

    async fn fail_sync(
        &self,
        owner: &str,
        file: FileId,
        next: AfterFailure,
        reason: &str,
    ) -> Result<()> {
        let (owner, reason) = (owner.to_owned(), reason.to_owned());
        let (status, not_before, attempts) = match next {
            AfterFailure::Postpone(retry_at) => ("PENDING", retry_at.as_millis(), 1),
            AfterFailure::Excuse(retry_at) => ("PENDING", retry_at.as_millis(), 0),
            AfterFailure::GiveUp(at) => ("FAILED", at.as_millis(), 1),
        };
        self.writer
            .run("giving a sync back", move |tx| {
                let params = params![id(file), owner, status, not_before, attempts, reason];
                row::execute(tx.sql, FAIL, params)?;
                tx.touch(file);
                Ok(())
            })
            .await
    }

    async fn enqueue_sync(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<(u64, Option<FileId>)> {
        // On a reader: where most files are there already, many are looked at for each one found.
        let found = self.files_elsewhere(organization, target, after, limit).await?;
        let next = if found.len() < limit { None } else { found.last().map(|last| last.file_id) };
        if found.is_empty() {
            return Ok((0, next));
        }

        let target = target.clone();
        let queued = self.writer.run("queueing files", move |tx| {
            let mut queued = 0;
            for file in found.iter().map(|record| record.file_id) {
                let params = params![id(file), target.as_str()];
                queued += row::execute(tx.sql, ENQUEUE_TO, params)? as u64;
                tx.touch(file);
            }
            Ok(queued)
        });
        Ok((queued.await?, next))
    }

    async fn retry_sync(&self, organization: Option<&OrganizationId>, limit: usize) -> Result<u64> {
        let organization = organization.cloned();
        self.writer
            .run("queueing failed files", move |tx| {
                let (from, to) =
                    organization.as_ref().map_or(("", LAST), |one| (one.as_str(), one.as_str()));
                let found = file_ids(tx.sql, FAILED, params![from, to, row::limit(limit)])?;

                let mut queued = 0;
                for file in found {
                    queued += row::execute(tx.sql, ENQUEUE, [id(file)])? as u64;
                    tx.touch(file);
                }
                Ok(queued)
            })
            .await
    }

    async fn sync_counts(&self) -> Result<SyncCounts> {
        self.readers
            .run("counting files", |sql| {
                // One snapshot for all statuses.
                let snapshot = sql.unchecked_transaction()?;
                let mut counts = SyncCounts::default();
                for &status in SyncStatus::ALL {
                    let count =
                        row::first(&snapshot, COUNTS, [status.as_str()], |row| row::count(row, 0))?;
                    *counts.of_mut(status) = count.unwrap_or(0);
                }
                Ok(counts)
            })
            .await
    }

    async fn sync_queue_of(&self, organization: &OrganizationId) -> Result<SyncCounts> {
        let organization = organization.clone();
        self.readers
            .run("counting files", move |sql| {
                let snapshot = sql.unchecked_transaction()?;
                let mut counts = SyncCounts::default();
                for status in [SyncStatus::Pending, SyncStatus::Syncing, SyncStatus::Failed] {
                    let params = params![organization.as_str(), status.as_str()];
                    let count = row::first(&snapshot, QUEUE_OF, params, |row| row::count(row, 0))?;
                    *counts.of_mut(status) = count.unwrap_or(0);
                }
                Ok(counts)
            })
            .await
    }
}

/// Finds at most `limit` files to settle. The query only reads, so that an unsuccessful search does not use
/// the writer.
fn find_settled(sql: &Connection, limit: usize) -> Result<Vec<Settled>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let mut found = Vec::new();
    let mut left = limit;
    let mut pair = next_pair(&snapshot, "", "")?;

    while let Some((organization, holder)) = pair
        && left > 0
    {
        pair = next_pair(&snapshot, organization.as_str(), holder.as_str())?;
        if destination(&snapshot, &organization, &holder)? != Destination::Nowhere {
            continue;
        }

        let params = params![organization.as_str(), holder.as_str(), row::limit(left)];
        let ids = file_ids(&snapshot, WAITING, params)?;
        left = left.saturating_sub(ids.len());
        found.push(Settled { organization, holder, ids });
    }
    Ok(found)
}

/// Finds at most `limit` files to claim that can be copied to a target and are not at an unreadable provider.
/// The query first takes a quarter of the limit from each organization and holder in turn, and then more from
/// the larger ones. It only reads.
fn find_due(
    sql: &Connection,
    providers: CopyProviders<'_>,
    after: Option<&OrganizationId>,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<FileId>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let mut found = file_ids(&snapshot, OVERDUE, [now.as_millis()])?;
    let mut round = Round::behind(&snapshot, after.map_or("", OrganizationId::as_str));
    let mut more = Vec::new();

    while found.len() < limit {
        let Some((organization, holder)) = round.advance()? else { break };
        let to = destination(&snapshot, &organization, &holder)?;
        let Destination::Provider(target) = to else { continue };
        if !providers.connect(&holder, &target) {
            continue;
        }

        let left = row::limit(limit - found.len());
        let params = params![organization.as_str(), holder.as_str(), now.as_millis(), left];
        let mut due = file_ids(&snapshot, DUE, params)?;
        more.extend(due.drain(due.len().min(limit.div_ceil(4))..));
        found.extend(due);
    }

    more.truncate(limit.saturating_sub(found.len()));
    found.extend(more);
    Ok(found)
}

/// The pairs of organization and holder with waiting files, once round: from behind an organization to the
/// end, then from the beginning up to it.
struct Round<'r> {
    sql: &'r Connection,
    after: &'r str,
    /// The last pair.
    at: (String, String),
    has_wrapped: bool,
}

impl<'r> Round<'r> {
    fn behind(sql: &'r Connection, after: &'r str) -> Self {
        Self { sql, after, at: (after.to_owned(), LAST.to_owned()), has_wrapped: false }
    }

    /// Returns the next pair. `None` at the end of the round.
    fn advance(&mut self) -> Result<Option<(OrganizationId, ProviderCode)>, Fault> {
        let (organization, holder) = &self.at;
        let mut next = next_pair(self.sql, organization, holder)?;
        if next.is_none() && !self.has_wrapped {
            self.has_wrapped = true;
            next = next_pair(self.sql, "", "")?;
        }

        let Some((organization, holder)) = next else { return Ok(None) };
        if self.has_wrapped && organization.as_str() > self.after {
            return Ok(None);
        }
        self.at = (organization.as_str().to_owned(), holder.as_str().to_owned());
        Ok(Some((organization, holder)))
    }
}

/// Claims the found files that are still due.
fn claim(
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

/// Claims one file and records a write intent for its copy, if the file still waits for one of `targets`.
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
    let target = destination(tx.sql, &record.organization_id, &holder)?.provider();
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

/// Makes a SYNCING file PENDING again.
pub(super) fn release_one(tx: &mut WriteTx<'_>, file: FileId) -> Result<(), Fault> {
    row::execute(tx.sql, RELEASE, [id(file)])?;
    tx.touch(file);
    Ok(())
}

/// Reads the ids that a query selects.
pub(super) fn file_ids(
    sql: &Connection,
    query: &str,
    params: impl Params,
) -> Result<Vec<FileId>, Fault> {
    row::collect(sql, query, params, file_id)
}

fn file_id(row: &Row<'_>) -> Result<FileId, Fault> {
    row::parse(row, 0).map_err(inconsistent)
}

fn inconsistent(source: Source) -> Fault {
    Fault::Row { what: "a file that waits for sync".into(), source }
}
