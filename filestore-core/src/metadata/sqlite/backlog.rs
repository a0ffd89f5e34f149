//! Counts of the work that waits, by the provider that has it to do.
//!
//! Each count reads one range of an index and no row, so that it may be asked for every few seconds;
//! only files whose copies are under way, which are few, are read one by one.

use std::collections::BTreeMap;

use rusqlite::{Connection, Params};

use crate::domain::backlog::{ProviderBacklog, Waiting};
use crate::domain::clock::Timestamp;
use crate::domain::error::Error;
use crate::domain::provider::ProviderCode;

use super::fault::{Fault, Source};
use super::{damage, purge, row, sync};

pub(super) const UNCLAIMED: &str =
    "SELECT count(*), min(purge_marked_at) FROM files INDEXED BY files_unclaimed
     WHERE purge_status = 'SYSTEM_PURGE' AND purge_claimed = 0 AND storage_provider = ?1 AND purge_marked_at <= ?2";

pub(super) const CLAIMED: &str =
    "SELECT count(*), min(purge_marked_at) FROM files INDEXED BY files_claimed
     WHERE purge_claimed = 1 AND storage_provider = ?1 AND purge_not_before >= 0 AND purge_marked_at <= ?2";

pub(super) const NEXT_DROPPED: &str =
    "SELECT storage_provider FROM blob_gc INDEXED BY blob_gc_by_provider
     WHERE storage_provider > ?1 ORDER BY storage_provider LIMIT 1";

pub(super) const DROPPED: &str =
    "SELECT count(*), min(kept_until) FROM blob_gc INDEXED BY blob_gc_by_provider
     WHERE storage_provider = ?1 AND kept_until <= ?2";

pub(super) const PENDING: &str = "SELECT count(*), min(stored_at) FROM files INDEXED BY files_pending
     WHERE sync_status = 'PENDING' AND purge_status IS NULL AND organization_id = ?1 AND storage_provider = ?2";

/// Files that a sync has claimed wait as well, for as long as their copies take.
pub(super) const SYNCING: &str =
    "SELECT organization_id, storage_provider, stored_at FROM files INDEXED BY files_syncing
     WHERE sync_status = 'SYNCING' AND sync_not_before >= 0 AND purge_status IS NULL";

/// Counts of several providers.
#[derive(Default)]
struct Tally(BTreeMap<ProviderCode, ProviderBacklog>);

impl Tally {
    fn of(&mut self, provider: ProviderCode) -> &mut ProviderBacklog {
        self.0.entry(provider.clone()).or_insert_with(|| ProviderBacklog::new(provider))
    }
}

/// Counts what waits at `now`, deleted files by their mark at or before `marked_before`. Providers
/// for which nothing waits are left out.
pub(super) fn count(
    sql: &Connection,
    marked_before: Timestamp,
    now: Timestamp,
) -> Result<Vec<ProviderBacklog>, Fault> {
    let snapshot = sql.unchecked_transaction()?;
    let mut tally = Tally::default();

    let mut pair = sync::next_pair(&snapshot, "", "")?;
    while let Some((organization, holder)) = pair {
        let target = damage::pass_over(sync::destination(&snapshot, &organization, &holder))?;
        if let Some(target) = target.flatten() {
            let params = [organization.as_str(), holder.as_str()];
            tally.of(target).sync.add(waiting(&snapshot, PENDING, params)?);
        }
        pair = sync::next_pair(&snapshot, organization.as_str(), holder.as_str())?;
    }

    let claimed = row::collect(&snapshot, SYNCING, [], |row| {
        let stored_at = Timestamp::from_millis(row.get(2)?);
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, stored_at))
    })?;
    for (organization, holder, stored_at) in claimed {
        let pair = damage::pass_over(sync::parse_pair(&organization, &holder))?;
        let Some((organization, holder)) = pair else { continue };
        let target = damage::pass_over(sync::destination(&snapshot, &organization, &holder))?;
        if let Some(target) = target.flatten() {
            tally.of(target).sync.add(Waiting { count: 1, oldest: Some(stored_at) });
        }
    }

    for (next, query) in [(purge::NEXT_UNCLAIMED, UNCLAIMED), (purge::NEXT_CLAIMED, CLAIMED)] {
        for provider in holders(&snapshot, next)? {
            let params = (provider.as_str(), marked_before.as_millis());
            let purge = waiting(&snapshot, query, params)?;
            tally.of(provider).purge.add(purge);
        }
    }

    for provider in holders(&snapshot, NEXT_DROPPED)? {
        let params = (provider.as_str(), now.as_millis());
        let dropped = waiting(&snapshot, DROPPED, params)?;
        tally.of(provider).dropped.add(dropped);
    }

    Ok(tally.0.into_values().filter(|backlog| !backlog.is_empty()).collect())
}

/// Lists the providers that a query gives one after the other. Codes that cannot be read are passed
/// over.
pub(super) fn holders(sql: &Connection, next: &str) -> Result<Vec<ProviderCode>, Fault> {
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
