//! Counts the waiting work of a purge and of each provider.
//!
//! Each count reads one range of an index and no row, so it can be queried every few seconds. Only the few
//! files with running copies are read one by one.

use std::collections::BTreeMap;

use async_trait::async_trait;
use rusqlite::{Connection, Params, Row, params};

use crate::domain::error::{Error, Result};
use crate::domain::id::OrganizationId;
use crate::domain::provider::ProviderCode;
use crate::domain::provider::backlog::{ProviderBacklog, Waiting};
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Backlog, DueFiles, PurgeBacklog};

use super::destinations::{Destination, destination, next_pair, parse_pair};
use crate::metadata::sqlite::SqliteMetadata;
use crate::metadata::sqlite::session::fault::{Fault, Source};
use crate::metadata::sqlite::tables::{damage, row};

pub(in crate::metadata::sqlite) const UNCLAIMED: &str =
    "SELECT count(*), min(purge_marked_at) FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1 AND purge_marked_at <= ?2";

pub(in crate::metadata::sqlite) const CLAIMED: &str =
    "SELECT count(*), min(purge_marked_at) FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider = ?1 AND purge_not_before >= 0";

pub(in crate::metadata::sqlite) const NEXT_DROPPED: &str =
    "SELECT storage_provider FROM blob_gc INDEXED BY blob_gc_by_provider
     WHERE storage_provider > ?1 ORDER BY storage_provider LIMIT 1";

pub(in crate::metadata::sqlite) const DROPPED: &str =
    "SELECT count(*), min(kept_until) FROM blob_gc INDEXED BY blob_gc_by_provider
     WHERE storage_provider = ?1 AND kept_until <= ?2";

pub(in crate::metadata::sqlite) const PENDING: &str = "SELECT count(*), min(stored_at) FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = ?1 AND storage_provider = ?2";

/// Files that a sync has claimed also wait until their copies are done.
pub(in crate::metadata::sqlite) const SYNCING: &str =
    "SELECT organization_id, storage_provider, stored_at FROM files INDEXED BY files_syncing
     WHERE sync_status = 'SYNCING' AND sync_not_before >= 0 AND purge_status IS NULL";

pub(in crate::metadata::sqlite) const EXPIRED: &str =
    "SELECT count(*) FROM files INDEXED BY files_expiring
     WHERE status = 'TEMP' AND purge_status IS NULL AND expires_at <= ?1";

pub(in crate::metadata::sqlite) const EXPIRED_OF: &str =
    "SELECT count(*) FROM files INDEXED BY files_by_organization
     WHERE organization_id = ?2 AND purge_status IS NULL AND status = 'TEMP' AND expires_at <= ?1";

pub(in crate::metadata::sqlite) const NEXT_UNCLAIMED: &str =
    "SELECT storage_provider FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider > ?1
     ORDER BY storage_provider LIMIT 1";

pub(in crate::metadata::sqlite) const NEXT_CLAIMED: &str =
    "SELECT storage_provider FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider > ?1 ORDER BY storage_provider LIMIT 1";

pub(in crate::metadata::sqlite) const COUNT_UNCLAIMED: &str =
    "SELECT count(*), coalesce(sum(size_bytes), 0), min(purge_marked_at) FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1
     AND purge_marked_at > ?2 AND purge_marked_at <= ?3";

pub(in crate::metadata::sqlite) const COUNT_CLAIMED: &str =
    "SELECT count(*), coalesce(sum(size_bytes), 0) FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider = ?1 AND purge_not_before >= 0";

/// Selects each deleted file of one organization, and whether it is due.
pub(in crate::metadata::sqlite) const ALL_OF: &str =
    "SELECT size_bytes, purge_claimed = 1 OR purge_marked_at <= ?2, purge_marked_at, storage_provider
     FROM files INDEXED BY files_by_organization WHERE organization_id = ?1 AND purge_status = 'SYSTEM_PURGE'";

pub(in crate::metadata::sqlite) const COUNT_DUE: &str =
    "SELECT count(*) FROM blob_gc INDEXED BY blob_gc_due
     WHERE storage_provider = ?1 AND not_before <= ?2";

/// Counts of several providers.
#[derive(Default)]
struct Tally(BTreeMap<ProviderCode, ProviderBacklog>);

impl Tally {
    fn of(&mut self, provider: ProviderCode) -> &mut ProviderBacklog {
        self.0.entry(provider.clone()).or_insert_with(|| ProviderBacklog::new(provider))
    }
}

#[async_trait]
impl Backlog for SqliteMetadata {
    async fn purge_backlog(&self, due: DueFiles<'_>, now: Timestamp) -> Result<PurgeBacklog> {
        let grace_end = due.marked_before.as_millis();
        let organization = due.organization.cloned();
        self.readers
            .run("counting deleted files", move |sql| {
                let snapshot = sql.unchecked_transaction()?;
                match &organization {
                    Some(one) => purge_backlog_of(&snapshot, one, grace_end, now),
                    None => purge_backlog(&snapshot, grace_end, now),
                }
            })
            .await
    }

    async fn backlog(
        &self,
        marked_before: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<ProviderBacklog>> {
        self.readers
            .run("counting what waits", move |sql| {
                let snapshot = sql.unchecked_transaction()?;
                let mut tally = Tally::default();
                count_syncs(&snapshot, &mut tally)?;

                let due = |marked: Waiting| marked.due_after(marked_before, now);
                for provider in holders(&snapshot, NEXT_UNCLAIMED)? {
                    let params = (provider.as_str(), marked_before.as_millis());
                    let purge = waiting(&snapshot, UNCLAIMED, params)?;
                    tally.of(provider).purge.add(due(purge));
                }
                for provider in holders(&snapshot, NEXT_CLAIMED)? {
                    let purge = waiting(&snapshot, CLAIMED, [provider.as_str()])?;
                    tally.of(provider).purge.add(due(purge));
                }

                for provider in holders(&snapshot, NEXT_DROPPED)? {
                    let params = (provider.as_str(), now.as_millis());
                    let dropped = waiting(&snapshot, DROPPED, params)?;
                    tally.of(provider).dropped.add(dropped);
                }
                Ok(tally.0.into_values().filter(|backlog| !backlog.is_empty()).collect())
            })
            .await
    }
}

/// Counts the files that wait for their copies or are being copied.
fn count_syncs(sql: &Connection, tally: &mut Tally) -> Result<(), Fault> {
    let mut pair = next_pair(sql, "", "")?;
    while let Some((organization, holder)) = pair {
        if let Destination::Provider(target) = destination(sql, &organization, &holder)? {
            let params = [organization.as_str(), holder.as_str()];
            tally.of(target).sync.add(waiting(sql, PENDING, params)?);
        }
        pair = next_pair(sql, organization.as_str(), holder.as_str())?;
    }

    let claimed = row::collect(sql, SYNCING, [], |row| {
        let stored_at = Timestamp::from_millis(row.get(2)?);
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, stored_at))
    })?;
    for (organization, holder, stored_at) in claimed {
        let pair = damage::pass_over(parse_pair(&organization, &holder))?;
        let Some((organization, holder)) = pair else { continue };
        if let Destination::Provider(target) = destination(sql, &organization, &holder)? {
            tally.of(target).sync.add(Waiting { count: 1, oldest: Some(stored_at) });
        }
    }
    Ok(())
}

/// Counts the purge work of all organizations.
fn purge_backlog(sql: &Connection, grace_end: i64, now: Timestamp) -> Result<PurgeBacklog, Fault> {
    let mut found = PurgeBacklog {
        expired: count(sql, EXPIRED, [now.as_millis()])?,
        ..PurgeBacklog::default()
    };
    for holder in holders(sql, NEXT_DROPPED)? {
        found.due_blobs += count(sql, COUNT_DUE, params![holder.as_str(), now.as_millis()])?;
    }
    for holder in holders(sql, NEXT_UNCLAIMED)? {
        let waiting = params![holder.as_str(), grace_end, i64::MAX];
        let first = |row: &Row<'_>| Ok((totals(row, 0)?, row.get(2)?));
        if let Some((waiting, first)) = row::first(sql, COUNT_UNCLAIMED, waiting, first)? {
            found.add_waiting(waiting, first);
        }
        let due = params![holder.as_str(), i64::MIN, grace_end];
        let due = row::first(sql, COUNT_UNCLAIMED, due, |row| totals(row, 0))?;
        found.add_due(holder, due.unwrap_or_default());
    }
    for holder in holders(sql, NEXT_CLAIMED)? {
        let due = row::first(sql, COUNT_CLAIMED, [holder.as_str()], |row| totals(row, 0))?;
        found.add_due(holder, due.unwrap_or_default());
    }
    Ok(found)
}

/// Counts the purge work of one organization.
fn purge_backlog_of(
    sql: &Connection,
    organization: &OrganizationId,
    grace_end: i64,
    now: Timestamp,
) -> Result<PurgeBacklog, Fault> {
    let mut found = PurgeBacklog {
        expired: count(sql, EXPIRED_OF, params![now.as_millis(), organization.as_str()])?,
        ..PurgeBacklog::default()
    };
    row::collect(sql, ALL_OF, params![organization.as_str(), grace_end], |row| {
        let one = (1, row::count(row, 0)?);
        if row.get(1)? {
            let holder = row::parse(row, 3).map_err(|source| damaged_file(row, source))?;
            found.add_due(holder, one);
        } else {
            found.add_waiting(one, row.get(2)?);
        }
        Ok(())
    })?;
    Ok(found)
}

fn damaged_file(row: &Row<'_>, source: Source) -> Fault {
    let holder: String = row.get(3).unwrap_or_default();
    Fault::Row { what: format!("a deleted file of {holder}"), source }
}

/// Reads a number of files and their bytes, from two columns.
fn totals(row: &Row<'_>, first: usize) -> Result<(u64, u64), Fault> {
    Ok((row::count(row, first)?, row::count(row, first + 1)?))
}

fn count(sql: &Connection, query: &str, params: impl Params) -> Result<u64, Fault> {
    Ok(row::first(sql, query, params, |row| row::count(row, 0))?.unwrap_or(0))
}

/// Lists the providers that a query returns one by one. Skips unreadable codes.
fn holders(sql: &Connection, next: &str) -> Result<Vec<ProviderCode>, Fault> {
    let (mut holders, mut after) = (Vec::new(), String::new());
    while let Some(code) = row::first(sql, next, [&after], |row| Ok(row.get::<_, String>(0)?))? {
        let holder = code.parse().map_err(|error: Error| inconsistent(error.into()));
        holders.extend(damage::pass_over(holder)?);
        after = code;
    }
    Ok(holders)
}

fn waiting(sql: &Connection, query: &str, params: impl Params) -> Result<Waiting, Fault> {
    let found = row::first(sql, query, params, |row| {
        let oldest: Option<i64> = row.get(1)?;
        Ok(Waiting { count: row::count(row, 0)?, oldest: oldest.map(Timestamp::from_millis) })
    })?;
    Ok(found.unwrap_or_default())
}

fn inconsistent(source: Source) -> Fault {
    Fault::Row { what: "a provider with waiting work".into(), source }
}
