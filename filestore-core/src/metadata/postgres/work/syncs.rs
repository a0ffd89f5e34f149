//! Files that wait for the sync worker: settling, claims, queueing and counts.
//!
//! A SYNCING row is leased to `sync_owner` until `sync_not_before`. A PENDING row waits until
//! `sync_not_before`.
//!
//! Only the organization and the holder decide if a waiting file needs a copy. Settling therefore reads one
//! row for each such pair, not for each file. Many files that wait for their provider do not slow down files
//! that need not wait. Settling does not change `updated_at`, because no client changed the files.
//!
//! # Locking
//! Rows that are found without a lock are checked again under their locks. Rows that another run is claiming
//! are skipped.

use async_trait::async_trait;
use tokio_postgres::Row;

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

use super::destinations::{Destination, Destinations, Pair, pairs};
use super::intents;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::{Lock, OwnedLease, Param, Sql};
use crate::metadata::postgres::tables::damage;
use crate::metadata::postgres::tables::row::{self, COLUMNS, columns, id};

pub(in crate::metadata::postgres) const WAITING: &str = "SELECT file_id FROM files
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = $1 AND storage_provider = $2
     ORDER BY sync_not_before, file_id LIMIT $3";

pub(in crate::metadata::postgres) const SETTLE: &str = "WITH waiting AS MATERIALIZED (
     SELECT file_id FROM files WHERE file_id = ANY ($1) AND sync_status = 'PENDING'
     AND purge_status IS NULL AND storage_provider = $2 ORDER BY file_id FOR UPDATE SKIP LOCKED)
     UPDATE files SET sync_status = 'NONE', sync_attempts = 0, sync_error = NULL FROM waiting WHERE files.file_id = waiting.file_id
     RETURNING files.file_id";

/// Selects the first due files of several pairs, pair by pair.
pub(in crate::metadata::postgres) const DUE: &str = "SELECT due.file_id
     FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS pair (organization, holder, number)
     CROSS JOIN LATERAL (SELECT file_id, sync_not_before FROM files
      WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = pair.organization
      AND storage_provider = pair.holder AND sync_not_before <= $3
      ORDER BY sync_not_before, file_id LIMIT $4) AS due
     ORDER BY pair.number, due.sync_not_before, due.file_id LIMIT $5";

pub(in crate::metadata::postgres) const OVERDUE: &str = "SELECT file_id FROM files
     WHERE sync_status = 'SYNCING' AND sync_not_before <= $1 ORDER BY sync_not_before";

pub(in crate::metadata::postgres) const RELEASE_OVERDUE: &str = "WITH ended AS MATERIALIZED (
     SELECT file_id FROM files WHERE sync_status = 'SYNCING' AND sync_not_before <= $1
     FOR UPDATE SKIP LOCKED)
     UPDATE files SET sync_status = 'PENDING', sync_owner = NULL, sync_not_before = 0
     FROM ended WHERE files.file_id = ended.file_id";

/// Selects and locks the rows that still wait.
pub(in crate::metadata::postgres) const CLAIMABLE: &str = concat!(
    "SELECT ",
    columns!(),
    ", sync_attempts FROM files WHERE file_id = ANY ($1) AND sync_status = 'PENDING'
     AND purge_status IS NULL AND sync_not_before <= $2 ORDER BY file_id FOR UPDATE SKIP LOCKED"
);

/// The claim locks the rows.
pub(in crate::metadata::postgres) const CLAIM: &str = "UPDATE files
     SET sync_status = 'SYNCING', sync_owner = $2, sync_not_before = $3 WHERE file_id = ANY ($1)";

pub(in crate::metadata::postgres) const FAIL: &str = "UPDATE files SET sync_status = $3, sync_owner = NULL, sync_not_before = $4,
     sync_attempts = sync_attempts + $5, sync_error = $6 WHERE file_id = $1 AND sync_status = 'SYNCING' AND sync_owner = $2";

pub(in crate::metadata::postgres) const ENQUEUE_TO: &str = "WITH elsewhere AS MATERIALIZED (
     SELECT file_id FROM files WHERE file_id = ANY ($1) AND sync_status IN ('NONE', 'SYNCED', 'FAILED')
     AND status = 'READY' AND purge_status IS NULL AND storage_provider <> $2
     ORDER BY file_id FOR UPDATE)
     UPDATE files SET sync_status = 'PENDING', sync_attempts = 0, sync_error = NULL, sync_not_before = 0
     FROM elsewhere WHERE files.file_id = elsewhere.file_id";

pub(in crate::metadata::postgres) const RETRY: &str = "WITH failed AS MATERIALIZED (
     SELECT file_id FROM files WHERE sync_status = 'FAILED' AND purge_status IS NULL
     AND organization_id >= $1 AND organization_id <= $2
     ORDER BY organization_id, file_id LIMIT $3 FOR UPDATE)
     UPDATE files SET sync_status = 'PENDING', sync_attempts = 0, sync_error = NULL, sync_not_before = 0
     FROM failed WHERE files.file_id = failed.file_id";

pub(in crate::metadata::postgres) const COUNTS: &str =
    "SELECT sync_status, sum(files)::bigint FROM sync_totals GROUP BY sync_status";

/// Counts the files of an organization in the index of its sync queue.
pub(in crate::metadata::postgres) const QUEUE_OF: &str = "SELECT sync_status, count(*) FROM files
     WHERE organization_id = $1 AND sync_status IN ('PENDING', 'SYNCING', 'FAILED') AND NOT is_deleted
     GROUP BY sync_status";

/// A text that sorts behind every organization.
const LAST: &str = "\u{10ffff}";

/// The number of pairs in one query.
const PAIRS_AT_ONCE: usize = 64;

/// Files of one organization at one provider that need not wait.
#[derive(Debug)]
struct Settled {
    pair: Pair,
    ids: Vec<String>,
}

#[async_trait]
impl Syncs for PostgresMetadata {
    async fn settle_sync(&self, limit: usize) -> Result<Vec<FileId>> {
        let found = self
            .engine
            .read_snapshot("looking for files to settle", &limit, |sql, limit| {
                Box::pin(find_settled(sql, *limit))
            })
            .await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // What still holds is settled.
        self.engine
            .write("settling files", found, |sql, found| {
                Box::pin(async move {
                    sql.lock_shared(Lock::Bindings).await?;
                    let organizations = found.iter().map(|settled| &settled.pair.0);
                    let destinations = Destinations::read(sql, organizations).await?;

                    let mut settled = Vec::new();
                    for Settled { pair: (organization, holder), ids } in found {
                        if destinations.of(organization, holder) == Destination::Nowhere {
                            settled.extend(
                                sql.collect(SETTLE, &[&ids, &holder.as_str()], file_id).await?,
                            );
                        }
                    }
                    Ok(settled)
                })
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
        let wanted = (CopyProviders { targets, unreadable }, after, lease.now, limit);
        let found = self
            .engine
            .read_snapshot(
                "looking for files to sync",
                &wanted,
                |sql, (providers, after, now, limit)| {
                    Box::pin(find_due(sql, *providers, *after, *now, *limit))
                },
            )
            .await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }

        let wanted = (found, targets.to_vec(), OwnedLease::of(lease));
        self.engine
            .write("claiming files to sync", wanted, |sql, (found, targets, lease)| {
                Box::pin(claim(sql, found, targets, lease.lease()))
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
        let (status, not_before, attempts) = match next {
            AfterFailure::Postpone(retry_at) => ("PENDING", retry_at.as_millis(), 1),
            AfterFailure::Excuse(retry_at) => ("PENDING", retry_at.as_millis(), 0),
            AfterFailure::GiveUp(at) => ("FAILED", at.as_millis(), 1),
        };
        let claimed = (id(file), owner.to_owned());
        let failed = (claimed, status, not_before, attempts, reason.to_owned());
        self.engine
            .write(
                "giving a sync back",
                failed,
                |sql, (claimed, status, wait, attempts, reason)| {
                    Box::pin(async move {
                        let (file, owner) = claimed;
                        sql.execute(FAIL, &[file, owner, status, wait, attempts, reason])
                            .await
                            .map(drop)
                    })
                },
            )
            .await
    }

    async fn enqueue_sync(
        &self,
        organization: &OrganizationId,
        target: &ProviderCode,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<(u64, Option<FileId>)> {
        let found = self.files_elsewhere(organization, target, after, limit).await?;
        let next = if found.len() < limit { None } else { found.last().map(|last| last.file_id) };
        if found.is_empty() {
            return Ok((0, next));
        }

        let files: Vec<String> = found.iter().map(|record| id(record.file_id)).collect();
        let queued =
            self.engine.write("queueing files", (target.clone(), files), |sql, (target, files)| {
                Box::pin(async move { sql.execute(ENQUEUE_TO, &[files, &target.as_str()]).await })
            });
        Ok((queued.await?, next))
    }

    async fn retry_sync(&self, organization: Option<&OrganizationId>, limit: usize) -> Result<u64> {
        let failed = (organization.cloned(), row::limit(limit));
        self.engine
            .write("queueing failed files", failed, |sql, (organization, limit)| {
                Box::pin(async move {
                    let one = organization.as_ref().map(OrganizationId::as_str);
                    let (from, to) = one.map_or(("", LAST), |one| (one, one));
                    sql.execute(RETRY, &[&from, &to, limit]).await
                })
            })
            .await
    }

    async fn sync_counts(&self) -> Result<SyncCounts> {
        self.engine
            .read("counting files", &(), |sql, ()| {
                Box::pin(async move {
                    let mut counts = SyncCounts::default();
                    for row in sql.rows(COUNTS, &[]).await? {
                        let status: SyncStatus = row::parse(&row, 0).map_err(inconsistent)?;
                        *counts.of_mut(status) = row::count(&row, 1)?;
                    }
                    Ok(counts)
                })
            })
            .await
    }

    async fn sync_queue_of(&self, organization: &OrganizationId) -> Result<SyncCounts> {
        self.engine
            .read("counting files", &organization.as_str(), |sql, organization| {
                Box::pin(async move {
                    let mut counts = SyncCounts::default();
                    for row in sql.rows(QUEUE_OF, &[organization]).await? {
                        let status: SyncStatus = row::parse(&row, 0).map_err(inconsistent)?;
                        *counts.of_mut(status) = row::count(&row, 1)?;
                    }
                    Ok(counts)
                })
            })
            .await
    }
}

/// Finds at most `limit` files to settle. The query only reads, so that an unsuccessful search costs no
/// transaction.
async fn find_settled(sql: &Sql, limit: usize) -> Result<Vec<Settled>, Fault> {
    let pairs = pairs(sql).await?;
    let destinations = Destinations::read(sql, pairs.iter().map(|(one, _)| one)).await?;

    let (mut found, mut left) = (Vec::new(), limit);
    for (organization, holder) in pairs {
        if left == 0 {
            break;
        }
        if destinations.of(&organization, &holder) != Destination::Nowhere {
            continue;
        }

        let params: [Param<'_>; 3] = [&organization.as_str(), &holder.as_str(), &row::limit(left)];
        let ids = texts(sql, WAITING, &params).await?;
        left = left.saturating_sub(ids.len());
        found.push(Settled { pair: (organization, holder), ids });
    }
    Ok(found)
}

/// Finds at most `limit` files to claim that can be copied to a target and are not at an unreadable provider.
/// The query first takes a quarter of the limit from each organization and holder in turn, and then more from
/// the larger ones. It only reads.
async fn find_due(
    sql: &Sql,
    providers: CopyProviders<'_>,
    after: Option<&OrganizationId>,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<String>, Fault> {
    let mut found = texts(sql, OVERDUE, &[&now.as_millis()]).await?;

    let all = pairs(sql).await?;
    let destinations = Destinations::read(sql, all.iter().map(|(one, _)| one)).await?;
    let may_go = |(organization, holder): &&Pair| {
        let target = destinations.of(organization, holder).provider();
        target.is_some_and(|target| providers.connect(holder, target))
    };

    // Once round: from behind `after` to the end, then from the beginning up to it.
    let (before, behind): (Vec<_>, Vec<_>) = all
        .iter()
        .filter(may_go)
        .partition(|(organization, _)| after.is_some_and(|after| organization <= after));
    let in_turn: Vec<&Pair> = behind.into_iter().chain(before).collect();

    for share in [limit.div_ceil(4), limit] {
        for some in in_turn.chunks(PAIRS_AT_ONCE) {
            if found.len() >= limit {
                break;
            }
            let organizations: Vec<&str> = some.iter().map(|(one, _)| one.as_str()).collect();
            let holders: Vec<&str> = some.iter().map(|(_, holder)| holder.as_str()).collect();
            let params: [Param<'_>; 5] = [
                &organizations,
                &holders,
                &now.as_millis(),
                &row::limit(share),
                &row::limit(limit),
            ];
            let due = texts(sql, DUE, &params).await?;
            let new: Vec<_> = due.into_iter().filter(|file| !found.contains(file)).collect();
            found.extend(new);
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// Claims the found files that are still due, and records write intents for the copies.
async fn claim(
    sql: &Sql,
    found: &[String],
    targets: &[ProviderCode],
    lease: Lease<'_>,
) -> Result<Vec<SyncClaim>, Fault> {
    sql.lock_shared(Lock::Bindings).await?;
    sql.execute(RELEASE_OVERDUE, &[&lease.now.as_millis()]).await?;

    let params: [Param<'_>; 2] = [&found, &lease.now.as_millis()];
    let waiting = sql
        .collect(CLAIMABLE, &params, |row| Ok((row::record(row)?, row::attempts(row, COLUMNS)?)))
        .await?;
    damage::set_aside(sql, damage::SYNC_NEVER).await?;

    let organizations = waiting.iter().map(|(record, _)| &record.organization_id);
    let destinations = Destinations::read(sql, organizations).await?;
    let mut claims = Vec::new();
    for (record, attempts) in waiting {
        let target = destinations.of(&record.organization_id, &record.blob.provider).provider();
        if let Some(target) = target.filter(|target| targets.contains(target)) {
            claims.push(claim_of(record, target.clone(), attempts, lease.now)?);
        }
    }
    claims.sort_by_key(|claim| {
        let file = id(claim.record.file_id);
        found.iter().position(|found| *found == file)
    });

    note(sql, &claims, lease).await?;
    Ok(claims)
}

/// Creates the claim of a waiting record.
fn claim_of(
    record: FileRecord,
    target: ProviderCode,
    attempts: u32,
    now: Timestamp,
) -> Result<SyncClaim, Fault> {
    let state = record.state.claim().map_err(|source| Fault::Record {
        file_id: record.file_id.to_string(),
        source: source.into(),
    })?;
    let FileRecord { organization_id, sub_system, created_at, .. } = &record;
    let key = BlobKey::new(organization_id, sub_system, *created_at, BlobId::generate(now));
    Ok(SyncClaim { record: FileRecord { state, ..record }, target, key, attempts })
}

/// Stores claims, with the write intents of their copies.
async fn note(sql: &Sql, claims: &[SyncClaim], lease: Lease<'_>) -> Result<(), Fault> {
    if claims.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = claims.iter().map(|claim| id(claim.record.file_id)).collect();
    sql.execute(CLAIM, &[&ids, &lease.owner, &lease.until.as_millis()]).await?;

    let intent = |claim: &SyncClaim| WriteIntent {
        file_id: claim.record.file_id,
        provider: claim.target.clone(),
        key: claim.key.clone(),
        begun_at: lease.now,
        owner: Some(lease.owner.to_owned()),
    };
    let intents: Vec<_> = claims.iter().map(intent).collect();
    intents::begin(sql, &intents, None).await
}

/// Reads the ids that a query selects, as stored.
async fn texts(sql: &Sql, query: &str, params: &[Param<'_>]) -> Result<Vec<String>, Fault> {
    let rows = sql.rows(query, params).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

fn file_id(row: &Row) -> Result<FileId, Fault> {
    row::parse(row, 0).map_err(inconsistent)
}

fn inconsistent(source: Source) -> Fault {
    Fault::Row { what: "a file that waits for sync".into(), source }
}
