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
//! # Locking
//! Rows that are found without a lock are looked at again under the rows' locks. Rows that another run is about
//! to claim are passed over.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use crate::domain::clock::Timestamp;
use crate::domain::id::{BlobId, FileId, OrganizationId, OrganizationNumber};
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::domain::record::FileRecord;
use crate::domain::status::SyncStatus;
use crate::metadata::{AfterFailure, Lease, SyncClaim, SyncCounts, WriteIntent, stored};

use super::fault::{Fault, Source};
use super::row::{self, COLUMNS, columns, id};
use super::sql::{Lock, Param, Sql};
use super::{bindings, damage, intents};

/// Jumps from pair to pair, however many files each of them has.
pub(super) const PAIRS: &str = "WITH RECURSIVE pairs AS (
     (SELECT organization_id, storage_provider FROM files
      WHERE sync_status = 'PENDING' AND purge_status IS NULL
      ORDER BY organization_id, storage_provider LIMIT 1)
     UNION ALL
     SELECT next.organization_id, next.storage_provider FROM pairs CROSS JOIN LATERAL (
      SELECT organization_id, storage_provider FROM files
      WHERE sync_status = 'PENDING' AND purge_status IS NULL
      AND (organization_id, storage_provider) > (pairs.organization_id, pairs.storage_provider)
      ORDER BY organization_id, storage_provider LIMIT 1) AS next)
     SELECT organization_id, storage_provider FROM pairs";

pub(super) const WAITING: &str = "SELECT file_id FROM files
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = $1 AND storage_provider = $2
     ORDER BY sync_not_before, file_id LIMIT $3";

pub(super) const SETTLE: &str = "WITH waiting AS MATERIALIZED (
     SELECT file_id FROM files WHERE file_id = ANY ($1) AND sync_status = 'PENDING'
     AND purge_status IS NULL AND storage_provider = $2 ORDER BY file_id FOR UPDATE SKIP LOCKED)
     UPDATE files SET sync_status = 'NONE' FROM waiting WHERE files.file_id = waiting.file_id
     RETURNING files.file_id";

/// The first due files of several pairs, pair by pair.
pub(super) const DUE: &str = "SELECT due.file_id
     FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS pair (organization, holder, number)
     CROSS JOIN LATERAL (SELECT file_id, sync_not_before FROM files
      WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = pair.organization
      AND storage_provider = pair.holder AND sync_not_before <= $3
      ORDER BY sync_not_before, file_id LIMIT $4) AS due
     ORDER BY pair.number, due.sync_not_before, due.file_id LIMIT $5";

pub(super) const OVERDUE: &str = "SELECT file_id FROM files
     WHERE sync_status = 'SYNCING' AND sync_not_before <= $1 ORDER BY sync_not_before";

pub(super) const RELEASE_OVERDUE: &str = "WITH ended AS MATERIALIZED (
     SELECT file_id FROM files WHERE sync_status = 'SYNCING' AND sync_not_before <= $1
     FOR UPDATE SKIP LOCKED)
     UPDATE files SET sync_status = 'PENDING', sync_owner = NULL, sync_not_before = 0
     FROM ended WHERE files.file_id = ended.file_id";

pub(super) const RELEASE: &str =
    "UPDATE files SET sync_status = 'PENDING', sync_owner = NULL, sync_not_before = 0
     WHERE sync_owner = $1 AND sync_status = 'SYNCING'";

/// The rows that still wait, locked.
pub(super) const CLAIMABLE: &str = concat!(
    "SELECT ",
    columns!(),
    ", sync_attempts FROM files WHERE file_id = ANY ($1) AND sync_status = 'PENDING'
     AND purge_status IS NULL AND sync_not_before <= $2 ORDER BY file_id FOR UPDATE SKIP LOCKED"
);

/// The rows are locked by the claim.
pub(super) const CLAIM: &str = "UPDATE files
     SET sync_status = 'SYNCING', sync_owner = $2, sync_not_before = $3 WHERE file_id = ANY ($1)";

pub(super) const RENEW: &str =
    "UPDATE files SET sync_not_before = $2 WHERE sync_owner = $1 AND sync_status = 'SYNCING'";

pub(super) const FAIL: &str = "UPDATE files SET sync_status = $3, sync_owner = NULL, sync_not_before = $4,
     sync_attempts = sync_attempts + $5 WHERE file_id = $1 AND sync_status = 'SYNCING' AND sync_owner = $2";

pub(super) const END_WAITS: &str = "WITH waiting AS MATERIALIZED (
     SELECT file_id FROM files WHERE sync_status = 'PENDING' AND purge_status IS NULL
     AND organization_id = $1 AND storage_provider = $2 AND sync_not_before > $3 LIMIT $4
     FOR UPDATE SKIP LOCKED)
     UPDATE files SET sync_not_before = $3 FROM waiting WHERE files.file_id = waiting.file_id";

pub(super) const ENQUEUE_TO: &str = "WITH elsewhere AS MATERIALIZED (
     SELECT file_id FROM files WHERE file_id = ANY ($1) AND sync_status IN ('NONE', 'SYNCED', 'FAILED')
     AND status = 'READY' AND purge_status IS NULL AND storage_provider <> $2
     ORDER BY file_id FOR UPDATE)
     UPDATE files SET sync_status = 'PENDING', sync_attempts = 0, sync_not_before = 0
     FROM elsewhere WHERE files.file_id = elsewhere.file_id";

pub(super) const RETRY: &str = "WITH failed AS MATERIALIZED (
     SELECT file_id FROM files WHERE sync_status = 'FAILED' AND purge_status IS NULL
     AND organization_id >= $1 AND organization_id <= $2
     ORDER BY organization_id, file_id LIMIT $3 FOR UPDATE)
     UPDATE files SET sync_status = 'PENDING', sync_attempts = 0, sync_not_before = 0
     FROM failed WHERE files.file_id = failed.file_id";

pub(super) const COUNTS: &str =
    "SELECT sync_status, sum(files)::bigint FROM sync_totals GROUP BY sync_status";

/// Sorts behind every organization.
const LAST: &str = "\u{10ffff}";

/// The number of pairs that are looked at together.
const PAIRS_AT_ONCE: usize = 64;

/// An organization, and the holder of its files.
pub(super) type Pair = (OrganizationId, ProviderCode);

/// Files of one organization whose blobs one provider holds, and that need not wait.
#[derive(Debug)]
pub(super) struct Settled {
    pair: Pair,
    ids: Vec<String>,
}

/// The providers of the active bindings of organizations.
pub(super) struct Destinations {
    /// By the number of the organization; `None` for a binding that cannot be read.
    bound: BTreeMap<i64, Option<ProviderCode>>,
}

impl Destinations {
    /// Reads the bindings of organizations. Damaged ones are passed over.
    pub(super) async fn read<'o>(
        sql: &Sql,
        organizations: impl Iterator<Item = &'o OrganizationId>,
    ) -> Result<Self, Fault> {
        let mut numbers: Vec<i64> =
            organizations.filter_map(OrganizationId::number).map(OrganizationNumber::get).collect();
        numbers.sort_unstable();
        numbers.dedup();

        let mut bound = BTreeMap::new();
        if !numbers.is_empty() {
            for (number, binding) in bindings::all_active(sql, &numbers).await? {
                let binding = sql.pass_over(binding)?;
                bound.insert(number, binding.map(|binding| binding.provider));
            }
        }
        Ok(Self { bound })
    }

    /// Returns where the files of `organization` that `holder` holds are to go: to the provider of the
    /// active binding, unless that is LOCAL or `holder` itself. The provider may be gone from the
    /// configuration: then the files wait.
    pub(super) fn of(
        &self,
        organization: &OrganizationId,
        holder: &ProviderCode,
    ) -> Destination<'_> {
        let number = organization.number().map(OrganizationNumber::get);
        match number.and_then(|number| self.bound.get(&number)) {
            Some(None) => Destination::Unreadable,
            Some(Some(provider)) if !provider.is_local() && provider != holder => {
                Destination::Provider(provider)
            }
            _ => Destination::Nowhere,
        }
    }
}

/// The place to which files are to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination<'d> {
    Provider(&'d ProviderCode),
    Nowhere,
    /// The binding says it, and is damaged.
    Unreadable,
}

impl<'d> Destination<'d> {
    pub(super) fn provider(self) -> Option<&'d ProviderCode> {
        match self {
            Self::Provider(provider) => Some(provider),
            Self::Nowhere | Self::Unreadable => None,
        }
    }
}

/// Finds up to `limit` files to settle. Only reads, so that looking in vain costs no transaction.
pub(super) async fn find_settled(sql: &Sql, limit: usize) -> Result<Vec<Settled>, Fault> {
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

/// Settles what was found, where it still holds.
pub(super) async fn settle(sql: &Sql, found: &[Settled]) -> Result<Vec<FileId>, Fault> {
    sql.lock_shared(Lock::Bindings).await?;
    let organizations = found.iter().map(|settled| &settled.pair.0);
    let destinations = Destinations::read(sql, organizations).await?;

    let mut settled = Vec::new();
    for Settled { pair: (organization, holder), ids } in found {
        if destinations.of(organization, holder) == Destination::Nowhere {
            settled.extend(sql.collect(SETTLE, &[&ids, &holder.as_str()], file_id).await?);
        }
    }
    Ok(settled)
}

/// Finds up to `limit` files to claim that may go to a target and are not at an unreadable provider: first a
/// quarter of the limit of each organization and holder in turn, then more of those that have more. Only reads.
pub(super) async fn find_due(
    sql: &Sql,
    (targets, unreadable): (&[ProviderCode], &[ProviderCode]),
    after: Option<&OrganizationId>,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<String>, Fault> {
    let mut found = texts(sql, OVERDUE, &[&now.as_millis()]).await?;

    let all = pairs(sql).await?;
    let destinations = Destinations::read(sql, all.iter().map(|(one, _)| one)).await?;
    let may_go = |(organization, holder): &&Pair| {
        let target = destinations.of(organization, holder).provider();
        target.is_some_and(|target| targets.contains(target)) && !unreadable.contains(holder)
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

/// Claims what was found, where it still holds, and notes the writes of the copies.
pub(super) async fn claim(
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

/// Makes the claim of a record that waits.
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

/// Writes claims down, with the writes of their copies.
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

/// Makes the leases of an owner last until the end of `lease`, and its notes as young as it.
pub(super) async fn renew(sql: &Sql, lease: Lease<'_>) -> Result<(), Fault> {
    sql.execute(RENEW, &[&lease.owner, &lease.until.as_millis()]).await?;
    intents::renew(sql, lease.owner, lease.now).await
}

/// Ends the waits of up to `limit` files that are to go to `target`; returns how many.
pub(super) async fn end_waits(
    sql: &Sql,
    target: &ProviderCode,
    now: Timestamp,
    limit: usize,
) -> Result<u64, Fault> {
    let pairs = pairs(sql).await?;
    let destinations = Destinations::read(sql, pairs.iter().map(|(one, _)| one)).await?;

    let (mut ended, limit) = (0, limit as u64);
    for (organization, holder) in pairs {
        if ended == limit {
            break;
        }
        if destinations.of(&organization, &holder) == Destination::Provider(target) {
            let left = i64::try_from(limit - ended).unwrap_or(i64::MAX);
            let params: [Param<'_>; 4] =
                [&organization.as_str(), &holder.as_str(), &now.as_millis(), &left];
            ended += sql.execute(END_WAITS, &params).await?;
        }
    }
    Ok(ended)
}

/// Releases the claims of `owner`.
pub(super) async fn release(sql: &Sql, owner: &str) -> Result<(), Fault> {
    sql.execute(RELEASE, &[&owner]).await.map(drop)
}

/// Releases every claim of every owner.
pub(super) async fn clear_leases(sql: &Sql) -> Result<(), Fault> {
    sql.execute(RELEASE_OVERDUE, &[&i64::MAX]).await.map(drop)
}

/// Ends a claim after a failed attempt, as `next` says.
pub(super) async fn fail(
    sql: &Sql,
    owner: &str,
    file: FileId,
    next: AfterFailure,
) -> Result<(), Fault> {
    let (status, not_before, attempts) = match next {
        AfterFailure::Postpone(retry_at) => ("PENDING", retry_at.as_millis(), 1),
        AfterFailure::Excuse(retry_at) => ("PENDING", retry_at.as_millis(), 0),
        AfterFailure::GiveUp => ("FAILED", 0, 1),
    };
    sql.execute(FAIL, &[&id(file), &owner, &status, &not_before, &attempts]).await.map(drop)
}

/// Queues those of the files that `target` still does not hold; returns how many.
pub(super) async fn enqueue(
    sql: &Sql,
    target: &ProviderCode,
    files: &[String],
) -> Result<u64, Fault> {
    sql.execute(ENQUEUE_TO, &[&files, &target.as_str()]).await
}

/// Queues FAILED files again, of one organization or of all; returns how many.
pub(super) async fn retry(
    sql: &Sql,
    organization: Option<&OrganizationId>,
    limit: usize,
) -> Result<u64, Fault> {
    let (from, to) = organization.map_or(("", LAST), |one| (one.as_str(), one.as_str()));
    sql.execute(RETRY, &[&from, &to, &row::limit(limit)]).await
}

/// Counts files by sync status.
pub(super) async fn counts(sql: &Sql) -> Result<SyncCounts, Fault> {
    let mut counts = SyncCounts::default();
    for row in sql.rows(COUNTS, &[]).await? {
        let status: SyncStatus = row::parse(&row, 0).map_err(inconsistent)?;
        *counts.of_mut(status) = row::count(&row, 1)?;
    }
    Ok(counts)
}

/// Lists the pairs of organization and holder that have waiting files. Pairs that cannot be read are
/// passed over.
async fn pairs(sql: &Sql) -> Result<Vec<Pair>, Fault> {
    sql.collect(PAIRS, &[], pair).await
}

/// Reads the pair in the first two columns.
pub(super) fn pair(row: &Row) -> Result<Pair, Fault> {
    let (organization, holder): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
    stored::pair(organization, holder).map_err(|source| Fault::Row {
        what: format!("files of organization {organization:?} at provider {holder:?}"),
        source,
    })
}

/// Reads the ids that a query selects, as they are stored.
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
