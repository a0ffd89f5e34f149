//! Removes all data of an organization from the database.

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::id::OrganizationId;
use crate::domain::report::erasure::{Era, LeftInDatabase, Removed};
use crate::domain::time::clock::Timestamp;
use crate::metadata::Erasures;

use super::{resumables, row};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::{Lock, Sql};

/// Selects the last era of all organizations.
pub(in crate::metadata::postgres) const LAST: &str = "SELECT coalesce(max(era), 0) FROM erasures";

const ERA_OF: &str = "SELECT era FROM erasures WHERE organization_id = $1";

/// Selects the era after the end of an erasure that is being committed. Other queries wait for the end of
/// this transaction.
const ERA_KEPT: &str = "SELECT era_of($1, $2)";

const END: &str = "INSERT INTO erasures (organization_id, era) VALUES ($1, $2)
     ON CONFLICT (organization_id) DO UPDATE SET era = excluded.era";

/// Makes deleted files that no purge has claimed due at once.
pub(in crate::metadata::postgres) const HASTEN_FILES: &str = "UPDATE files SET purge_marked_at = 0
     WHERE organization_id = $1 AND is_deleted AND NOT purge_claimed AND purge_marked_at > 0";

/// Ends the waits of claimed files after failures.
pub(in crate::metadata::postgres) const HASTEN_CLAIMED: &str =
    "UPDATE files SET purge_not_before = least(purge_not_before, $2)
     WHERE organization_id = $1 AND is_deleted AND purge_claimed AND purge_owner IS NULL";

/// Selects one organization's range of keys. The character after the slash is zero.
pub(in crate::metadata::postgres) const HASTEN_DROPPED: &str =
    "UPDATE blob_gc SET not_before = least(not_before, $2)
     WHERE blob_key > $1::text || '/' AND blob_key < $1::text || '0' AND NOT is_absent";

const FORGET_BINDINGS: &str = "DELETE FROM bindings WHERE organization_id = $1";

const FORGET_REPLIES: &str = "DELETE FROM idempotency WHERE organization_id = $1";

/// Locks and removes the rows of totals that are zero. A concurrent change adds to a new row.
const FORGET_USAGE: &str = "WITH slots AS MATERIALIZED (
     SELECT storage_location, slot, files FROM organization_usage WHERE organization_id = $1
     ORDER BY storage_location, slot FOR UPDATE
     ), empty AS (
     SELECT storage_location FROM slots GROUP BY storage_location HAVING sum(files) = 0)
     DELETE FROM organization_usage USING empty WHERE organization_usage.organization_id = $1
     AND organization_usage.storage_location = empty.storage_location
     AND organization_usage.slot IN (SELECT slot FROM slots WHERE slots.storage_location = empty.storage_location)";

/// As [`FORGET_USAGE`].
const FORGET_PARTS: &str = "WITH slots AS MATERIALIZED (
     SELECT sub_system, standing, slot, files FROM sub_system_usage WHERE organization_id = $1
     ORDER BY sub_system, standing, slot FOR UPDATE
     ), empty AS (
     SELECT sub_system, standing FROM slots GROUP BY sub_system, standing HAVING sum(files) = 0)
     DELETE FROM sub_system_usage AS t USING slots, empty WHERE t.organization_id = $1
     AND slots.sub_system = empty.sub_system AND slots.standing = empty.standing
     AND t.sub_system = slots.sub_system AND t.standing = slots.standing AND t.slot = slots.slot";

/// Counts of the remaining rows. Each reads its whole table, so damaged rows count too.
const COUNTS: [&str; 8] = [
    "SELECT count(*) FROM files WHERE organization_id = $1 OR (blob_key > $1::text || '/' AND blob_key < $1::text || '0')",
    "SELECT count(*) FROM blob_gc WHERE blob_key > $1::text || '/' AND blob_key < $1::text || '0'",
    "SELECT count(*) FROM write_intents WHERE blob_key > $1::text || '/' AND blob_key < $1::text || '0'",
    "SELECT count(*) FROM bindings WHERE organization_id::text = $1",
    "SELECT count(*) FROM idempotency WHERE organization_id = $1",
    "SELECT count(*) FROM resumable_uploads WHERE organization_id = $1",
    "SELECT count(*) FROM events WHERE organization_id = $1 AND kind <> 'organization.erased'
     AND NOT EXISTS (SELECT 1 FROM files WHERE files.file_id = events.file_id)",
    "SELECT (SELECT count(*) FROM webhooks WHERE organization_id = $1)
     + (SELECT count(*) FROM webhook_failures WHERE organization_id = $1 AND kind <> 'organization.erased'
     AND NOT EXISTS (SELECT 1 FROM files WHERE files.file_id = webhook_failures.file_id))",
];

#[async_trait]
impl Erasures for PostgresMetadata {
    fn era(&self) -> Era {
        self.engine.era()
    }

    async fn end_era(&self, organization: &OrganizationId, now: Timestamp) -> Result<u64> {
        let (era, replies) = self
            .engine
            .write("ending an era", (organization.clone(), now), |sql, (organization, now)| {
                Box::pin(async move {
                    let name = organization.as_str();
                    sql.be_patient().await?;
                    // Inserts that have looked at the era before are waited for. Numbers are given one at a time.
                    sql.lock(Lock::Erasures).await?;
                    sql.lock(Lock::Erasure(organization)).await?;
                    let era = last_era(sql).await?.next(*now);
                    sql.execute(END, &[&name, &era.number()]).await?;

                    let now = now.as_millis();
                    sql.execute(HASTEN_FILES, &[&name]).await?;
                    sql.execute(HASTEN_CLAIMED, &[&name, &now]).await?;
                    sql.execute(HASTEN_DROPPED, &[&name, &now]).await?;
                    sql.execute(resumables::ERASE, &[&name]).await?;
                    Ok((era, sql.execute(FORGET_REPLIES, &[&name]).await?))
                })
            })
            .await?;
        // A caller that has gone away leaves it to the watch.
        self.engine.learn(era);
        Ok(replies)
    }

    async fn is_erased_since(&self, organization: &OrganizationId, era: Era) -> Result<bool> {
        self.engine
            .read("looking for an erasure", &(organization, era), |sql, &(organization, era)| {
                Box::pin(async move {
                    let row = sql.first(ERA_OF, &[&organization.as_str()]).await?;
                    let ended: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
                    Ok(ended.is_some_and(|ended| Era::from_number(ended) > era))
                })
            })
            .await
    }

    async fn forget_organization(&self, organization: &OrganizationId) -> Result<Removed> {
        self.engine
            .write("forgetting an organization", organization.clone(), |sql, organization| {
                Box::pin(async move {
                    let name = organization.as_str();
                    sql.be_patient().await?;
                    // An organization that is no number has no bindings.
                    let bindings = match name.parse::<i64>() {
                        Ok(number) => sql.execute(FORGET_BINDINGS, &[&number]).await?,
                        Err(_) => 0,
                    };
                    let replies = sql.execute(FORGET_REPLIES, &[&name]).await?;
                    sql.execute(resumables::FORGET_OF, &[&name]).await?;
                    sql.execute(FORGET_USAGE, &[&name]).await?;
                    sql.execute(FORGET_PARTS, &[&name]).await?;
                    Ok(Removed { bindings, replies, ..Removed::default() })
                })
            })
            .await
    }

    async fn left_of(&self, organization: &OrganizationId) -> Result<LeftInDatabase> {
        self.engine
            .read_snapshot("looking for an organization", organization, |sql, organization| {
                Box::pin(async move {
                    sql.be_patient().await?;
                    let mut counts = [0; COUNTS.len()];
                    for (count, query) in counts.iter_mut().zip(COUNTS) {
                        let row = sql.first(query, &[&organization.as_str()]).await?;
                        *count = row.map_or(Ok(0), |row| row::count(&row, 0))?;
                    }
                    let [files, dropped, notes, bindings, replies, uploads, events, webhooks] =
                        counts;
                    Ok(LeftInDatabase {
                        files,
                        dropped,
                        notes,
                        bindings,
                        replies,
                        uploads,
                        events,
                        webhooks,
                    })
                })
            })
            .await
    }
}

/// Returns the last era of all organizations.
async fn last_era(sql: &Sql) -> Result<Era, Fault> {
    let row = sql.first(LAST, &[]).await?;
    Ok(Era::from_number(row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default()))
}

/// Returns true if the organization was erased after `era`. Otherwise it stays so until the commit.
pub(in crate::metadata::postgres) async fn is_since_kept(
    sql: &Sql,
    organization: &OrganizationId,
    era: Era,
) -> Result<bool, Fault> {
    let lock = Lock::Erasure(organization).number(sql.store());
    let row = sql.first(ERA_KEPT, &[&lock, &organization.as_str()]).await?;
    let ended: i64 = row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    Ok(Era::from_number(ended) > era)
}
