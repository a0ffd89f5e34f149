//! Counts of the work that waits, by the provider that has it to do.
//!
//! Each count reads one range of an index, so that it may be asked for every few seconds; only files whose
//! copies are under way, which are few, are read one by one.

use std::collections::BTreeMap;

use crate::domain::backlog::{ProviderBacklog, Waiting};
use crate::domain::clock::Timestamp;
use crate::domain::error::Error;
use crate::domain::provider::ProviderCode;

use super::fault::{Fault, Source};
use super::sql::{Param, Sql};
use super::sync::Destinations;
use super::{purge, row, sync};

pub(super) const UNCLAIMED: &str = "SELECT count(*), min(purge_marked_at) FROM files
     WHERE purge_status = 'SYSTEM_PURGE' AND NOT purge_claimed AND storage_provider = $1 AND purge_marked_at <= $2";

pub(super) const CLAIMED: &str = "SELECT count(*), min(purge_marked_at) FROM files
     WHERE purge_claimed AND storage_provider = $1 AND purge_marked_at <= $2";

pub(super) const NEXT_DROPPED: &str = "SELECT storage_provider FROM blob_gc
     WHERE storage_provider > $1 ORDER BY storage_provider LIMIT 1";

pub(super) const DROPPED: &str = "SELECT count(*), min(kept_until) FROM blob_gc WHERE storage_provider = $1 AND kept_until <= $2";

pub(super) const PENDING: &str =
    "SELECT organization_id, storage_provider, count(*), min(stored_at)
     FROM files WHERE sync_status = 'PENDING' AND purge_status IS NULL
     GROUP BY organization_id, storage_provider";

/// Files that a sync has claimed wait as well, for as long as their copies take.
pub(super) const SYNCING: &str =
    "SELECT organization_id, storage_provider, count(*), min(stored_at)
     FROM files WHERE sync_status = 'SYNCING' AND purge_status IS NULL
     GROUP BY organization_id, storage_provider";

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
pub(super) async fn count(
    sql: &Sql,
    marked_before: Timestamp,
    now: Timestamp,
) -> Result<Vec<ProviderBacklog>, Fault> {
    let mut tally = Tally::default();
    count_syncs(sql, &mut tally).await?;

    for (next, query) in [(purge::NEXT_UNCLAIMED, UNCLAIMED), (purge::NEXT_CLAIMED, CLAIMED)] {
        for provider in holders(sql, next).await? {
            let params: [Param<'_>; 2] = [&provider.as_str(), &marked_before.as_millis()];
            let purge = waiting(sql, query, &params).await?;
            tally.of(provider).purge.add(purge);
        }
    }

    for provider in holders(sql, NEXT_DROPPED).await? {
        let dropped = waiting(sql, DROPPED, &[&provider.as_str(), &now.as_millis()]).await?;
        tally.of(provider).dropped.add(dropped);
    }

    Ok(tally.0.into_values().filter(|backlog| !backlog.is_empty()).collect())
}

/// Counts the files that wait for their copies, or have them made.
async fn count_syncs(sql: &Sql, tally: &mut Tally) -> Result<(), Fault> {
    let mut found = Vec::new();
    for query in [PENDING, SYNCING] {
        for row in sql.rows(query, &[]).await? {
            let Some(pair) = sql.pass_over(sync::pair(&row))? else { continue };
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

/// Lists the providers that a query gives one after the other. Codes that cannot be read are passed
/// over.
pub(super) async fn holders(sql: &Sql, next: &str) -> Result<Vec<ProviderCode>, Fault> {
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
