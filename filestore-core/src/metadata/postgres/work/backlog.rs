//! Counts the waiting work of a purge and of each provider.
//!
//! Each count reads one range of an index, so it can be queried every few seconds. Only the few files with
//! running copies are read one by one.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tokio_postgres::Row;

use crate::domain::error::{Error, Result};
use crate::domain::id::OrganizationId;
use crate::domain::provider::ProviderCode;
use crate::domain::provider::backlog::{ProviderBacklog, Waiting};
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Backlog, DueFiles, PurgeBacklog};

use super::destinations::{Destinations, pair};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::{Fault, Source};
use crate::metadata::postgres::session::sql::{Param, Sql};
use crate::metadata::postgres::tables::row;

pub(in crate::metadata::postgres) const UNCLAIMED: &str = "SELECT count(*), min(purge_marked_at) FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1 AND purge_marked_at <= $2";

pub(in crate::metadata::postgres) const CLAIMED: &str =
    "SELECT count(*), min(purge_marked_at) FROM files
     WHERE purge_claimed AND storage_provider = $1";

pub(in crate::metadata::postgres) const NEXT_DROPPED: &str = "SELECT storage_provider FROM blob_gc
     WHERE storage_provider > $1 ORDER BY storage_provider LIMIT 1";

pub(in crate::metadata::postgres) const DROPPED: &str = "SELECT count(*), min(kept_until) FROM blob_gc WHERE storage_provider = $1 AND kept_until <= $2";

pub(in crate::metadata::postgres) const PENDING: &str =
    "SELECT organization_id, storage_provider, count(*), min(stored_at)
     FROM files WHERE sync_status = 'PENDING' AND purge_status IS NULL
     GROUP BY organization_id, storage_provider";

/// Files that a sync has claimed also wait until their copies are done.
pub(in crate::metadata::postgres) const SYNCING: &str =
    "SELECT organization_id, storage_provider, count(*), min(stored_at)
     FROM files WHERE sync_status = 'SYNCING' AND purge_status IS NULL
     GROUP BY organization_id, storage_provider";

pub(in crate::metadata::postgres) const EXPIRED: &str = "SELECT count(*) FROM files
     WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= $1";

pub(in crate::metadata::postgres) const EXPIRED_OF: &str = "SELECT count(*) FROM files
     WHERE organization_id = $2 AND NOT is_deleted AND status = 'TEMP' AND expires_at <= $1";

pub(in crate::metadata::postgres) const NEXT_UNCLAIMED: &str = "SELECT storage_provider FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider > $1
     ORDER BY storage_provider LIMIT 1";

pub(in crate::metadata::postgres) const NEXT_CLAIMED: &str = "SELECT storage_provider FROM files
     WHERE purge_claimed AND storage_provider > $1 ORDER BY storage_provider LIMIT 1";

pub(in crate::metadata::postgres) const COUNT_UNCLAIMED: &str =
    "SELECT count(*), coalesce(sum(size_bytes), 0)::bigint, min(purge_marked_at) FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1
     AND purge_marked_at > $2 AND purge_marked_at <= $3";

pub(in crate::metadata::postgres) const COUNT_CLAIMED: &str =
    "SELECT count(*), coalesce(sum(size_bytes), 0)::bigint FROM files
     WHERE purge_claimed AND storage_provider = $1";

/// Counts the due files of one organization and their bytes, and the waiting files with their first mark,
/// with one row for each holder.
pub(in crate::metadata::postgres) const COUNT_OF: &str = "SELECT count(*) FILTER (WHERE is_due),
     coalesce(sum(size_bytes) FILTER (WHERE is_due), 0)::bigint,
     count(*) FILTER (WHERE NOT is_due), coalesce(sum(size_bytes) FILTER (WHERE NOT is_due), 0)::bigint,
     min(purge_marked_at) FILTER (WHERE NOT is_due), storage_provider
     FROM (SELECT storage_provider, size_bytes, purge_marked_at, purge_claimed OR purge_marked_at <= $2 AS is_due
     FROM files WHERE organization_id = $1 AND is_deleted) AS deleted GROUP BY storage_provider";

pub(in crate::metadata::postgres) const COUNT_DUE: &str =
    "SELECT count(*) FROM blob_gc WHERE storage_provider = $1 AND not_before <= $2";

/// Counts of several providers.
#[derive(Default)]
struct Tally(BTreeMap<ProviderCode, ProviderBacklog>);

impl Tally {
    fn of(&mut self, provider: ProviderCode) -> &mut ProviderBacklog {
        self.0.entry(provider.clone()).or_insert_with(|| ProviderBacklog::new(provider))
    }
}

#[async_trait]
impl Backlog for PostgresMetadata {
    async fn purge_backlog(&self, due: DueFiles<'_>, now: Timestamp) -> Result<PurgeBacklog> {
        let wanted = (due.organization, due.marked_before.as_millis(), now);
        self.engine
            .read_snapshot("counting deleted files", &wanted, |sql, &(organization, end, now)| {
                Box::pin(async move {
                    match organization {
                        Some(one) => purge_backlog_of(sql, one, end, now).await,
                        None => purge_backlog(sql, end, now).await,
                    }
                })
            })
            .await
    }

    async fn backlog(
        &self,
        marked_before: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<ProviderBacklog>> {
        let wanted = (marked_before, now);
        self.engine
            .read_snapshot("counting what waits", &wanted, |sql, &(marked_before, now)| {
                Box::pin(async move {
                    let mut tally = Tally::default();
                    count_syncs(sql, &mut tally).await?;

                    let due = |marked: Waiting| marked.due_after(marked_before, now);
                    for provider in holders(sql, NEXT_UNCLAIMED).await? {
                        let params: [Param<'_>; 2] =
                            [&provider.as_str(), &marked_before.as_millis()];
                        let purge = waiting(sql, UNCLAIMED, &params).await?;
                        tally.of(provider).purge.add(due(purge));
                    }
                    for provider in holders(sql, NEXT_CLAIMED).await? {
                        let purge = waiting(sql, CLAIMED, &[&provider.as_str()]).await?;
                        tally.of(provider).purge.add(due(purge));
                    }

                    for provider in holders(sql, NEXT_DROPPED).await? {
                        let dropped =
                            waiting(sql, DROPPED, &[&provider.as_str(), &now.as_millis()]).await?;
                        tally.of(provider).dropped.add(dropped);
                    }

                    Ok(tally.0.into_values().filter(|backlog| !backlog.is_empty()).collect())
                })
            })
            .await
    }
}

/// Counts the purge work of all organizations.
async fn purge_backlog(sql: &Sql, grace_end: i64, now: Timestamp) -> Result<PurgeBacklog, Fault> {
    let expired = sql.first(EXPIRED, &[&now.as_millis()]).await?;
    let mut found = PurgeBacklog {
        expired: expired.map_or(Ok(0), |row| row::count(&row, 0))?,
        ..PurgeBacklog::default()
    };
    for holder in holders(sql, NEXT_DROPPED).await? {
        let row = sql.first(COUNT_DUE, &[&holder.as_str(), &now.as_millis()]).await?;
        found.due_blobs += row.map_or(Ok(0), |row| row::count(&row, 0))?;
    }
    for holder in holders(sql, NEXT_UNCLAIMED).await? {
        let code = holder.as_str();
        let waiting = sql.first(COUNT_UNCLAIMED, &[&code, &grace_end, &i64::MAX]).await?;
        if let Some(row) = waiting {
            found.add_waiting(totals(&row, 0)?, row.try_get(2)?);
        }
        if let Some(row) = sql.first(COUNT_UNCLAIMED, &[&code, &i64::MIN, &grace_end]).await? {
            found.add_due(holder, totals(&row, 0)?);
        }
    }
    for holder in holders(sql, NEXT_CLAIMED).await? {
        if let Some(row) = sql.first(COUNT_CLAIMED, &[&holder.as_str()]).await? {
            found.add_due(holder, totals(&row, 0)?);
        }
    }
    Ok(found)
}

/// Counts the purge work of one organization.
async fn purge_backlog_of(
    sql: &Sql,
    organization: &OrganizationId,
    grace_end: i64,
    now: Timestamp,
) -> Result<PurgeBacklog, Fault> {
    let name = organization.as_str();
    let expired = sql.first(EXPIRED_OF, &[&now.as_millis(), &name]).await?;
    let mut found = PurgeBacklog {
        expired: expired.map_or(Ok(0), |row| row::count(&row, 0))?,
        ..PurgeBacklog::default()
    };
    for row in sql.rows(COUNT_OF, &[&name, &grace_end]).await? {
        let holder = row::parse(&row, 5)
            .map_err(|source| Fault::Row { what: "a provider with deleted files".into(), source });
        if let Some(holder) = sql.pass_over(holder)? {
            found.add_due(holder, totals(&row, 0)?);
            found.add_waiting(totals(&row, 2)?, row.try_get(4)?);
        }
    }
    Ok(found)
}

/// Reads a number of files and their bytes, from two columns.
fn totals(row: &Row, first: usize) -> Result<(u64, u64), Fault> {
    Ok((row::count(row, first)?, row::count(row, first + 1)?))
}

/// Counts the files that wait for their copies or are being copied.
async fn count_syncs(sql: &Sql, tally: &mut Tally) -> Result<(), Fault> {
    let mut found = Vec::new();
    for query in [PENDING, SYNCING] {
        for row in sql.rows(query, &[]).await? {
            let Some(pair) = sql.pass_over(pair(&row))? else { continue };
            let oldest = row.try_get::<_, Option<i64>>(3)?.map(Timestamp::from_millis);
            found.push((pair, Waiting { count: row::count(&row, 2)?, oldest }));
        }
    }

    let organizations = found.iter().map(|((organization, _), _)| organization);
    let destinations = Destinations::read(sql, organizations).await?;
    for ((organization, holder), waiting) in found {
        if let Some(target) = destinations.of(&organization, &holder).provider() {
            tally.of(target.clone()).sync.add(waiting);
        }
    }
    Ok(())
}

/// Lists the providers that a query returns one by one. Skips unreadable codes.
async fn holders(sql: &Sql, next: &str) -> Result<Vec<ProviderCode>, Fault> {
    let (mut holders, mut after) = (Vec::new(), String::new());
    while let Some(row) = sql.first(next, &[&after]).await? {
        let code: String = row.try_get(0)?;
        let holder = code.parse().map_err(|error: Error| inconsistent(error.into()));
        holders.extend(sql.pass_over(holder)?);
        after = code;
    }
    Ok(holders)
}

async fn waiting(sql: &Sql, query: &str, params: &[Param<'_>]) -> Result<Waiting, Fault> {
    let Some(row) = sql.first(query, params).await? else { return Ok(Waiting::default()) };
    let oldest: Option<i64> = row.try_get(1)?;
    Ok(Waiting { count: row::count(&row, 0)?, oldest: oldest.map(Timestamp::from_millis) })
}

fn inconsistent(source: Source) -> Fault {
    Fault::Row { what: "a provider with waiting work".into(), source }
}
