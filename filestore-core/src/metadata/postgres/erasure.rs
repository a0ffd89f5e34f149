//! The removal of everything that the database has of an organization.

use crate::domain::clock::Timestamp;
use crate::domain::erasure::{LeftInDatabase, Removed};
use crate::domain::id::OrganizationId;

use super::fault::Fault;
use super::row;
use super::sql::Sql;

/// Deleted files that no purge has claimed are due at once.
pub(super) const HASTEN_FILES: &str = "UPDATE files SET purge_marked_at = 0
     WHERE organization_id = $1 AND is_deleted AND NOT purge_claimed AND purge_marked_at > 0";

/// Claimed ones do not wait any longer after a failure.
pub(super) const HASTEN_CLAIMED: &str =
    "UPDATE files SET purge_not_before = least(purge_not_before, $2)
     WHERE organization_id = $1 AND is_deleted AND purge_claimed AND purge_owner IS NULL";

/// A slash is followed by a zero: this is the range of the keys of one organization.
pub(super) const HASTEN_DROPPED: &str = "UPDATE blob_gc SET not_before = least(not_before, $2)
     WHERE blob_key > $1::text || '/' AND blob_key < $1::text || '0' AND NOT is_absent";

const FORGET_BINDINGS: &str = "DELETE FROM bindings WHERE organization_id = $1";

const FORGET_REPLIES: &str = "DELETE FROM idempotency WHERE organization_id = $1";

/// All slots of totals in which nothing is left. They are locked: what is added to one of them meanwhile is
/// added to a new one.
const FORGET_USAGE: &str = "WITH slots AS MATERIALIZED (
     SELECT storage_location, slot, files FROM organization_usage WHERE organization_id = $1
     ORDER BY storage_location, slot FOR UPDATE
     ), empty AS (
     SELECT storage_location FROM slots GROUP BY storage_location HAVING sum(files) = 0)
     DELETE FROM organization_usage USING empty WHERE organization_usage.organization_id = $1
     AND organization_usage.storage_location = empty.storage_location
     AND organization_usage.slot IN (SELECT slot FROM slots WHERE slots.storage_location = empty.storage_location)";

const COUNTS: [&str; 5] = [
    "SELECT count(*) FROM files WHERE organization_id = $1 OR (blob_key > $1::text || '/' AND blob_key < $1::text || '0')",
    "SELECT count(*) FROM blob_gc WHERE blob_key > $1::text || '/' AND blob_key < $1::text || '0'",
    "SELECT count(*) FROM write_intents WHERE blob_key > $1::text || '/' AND blob_key < $1::text || '0'",
    "SELECT count(*) FROM bindings WHERE organization_id::text = $1",
    "SELECT count(*) FROM idempotency WHERE organization_id = $1",
];

pub(super) async fn hasten(
    sql: &Sql,
    organization: &OrganizationId,
    now: Timestamp,
) -> Result<(), Fault> {
    let (name, now) = (organization.as_str(), now.as_millis());
    sql.be_patient().await?;
    sql.execute(HASTEN_FILES, &[&name]).await?;
    sql.execute(HASTEN_CLAIMED, &[&name, &now]).await?;
    sql.execute(HASTEN_DROPPED, &[&name, &now]).await.map(drop)
}

/// Forgets bindings, replies and totals. Organizations that are no numbers have no bindings.
pub(super) async fn forget(sql: &Sql, organization: &OrganizationId) -> Result<Removed, Fault> {
    let name = organization.as_str();
    sql.be_patient().await?;
    let bindings = match name.parse::<i64>() {
        Ok(number) => sql.execute(FORGET_BINDINGS, &[&number]).await?,
        Err(_) => 0,
    };
    let replies = sql.execute(FORGET_REPLIES, &[&name]).await?;
    sql.execute(FORGET_USAGE, &[&name]).await?;
    Ok(Removed { bindings, replies, ..Removed::default() })
}

/// Counts what is left. Reads every row of the tables, and so finds rows that are damaged as well.
pub(super) async fn left(
    sql: &Sql,
    organization: &OrganizationId,
) -> Result<LeftInDatabase, Fault> {
    sql.be_patient().await?;
    let mut counts = [0; COUNTS.len()];
    for (count, query) in counts.iter_mut().zip(COUNTS) {
        let row = sql.first(query, &[&organization.as_str()]).await?;
        *count = row.map_or(Ok(0), |row| row::count(&row, 0))?;
    }
    let [files, dropped, notes, bindings, replies] = counts;
    Ok(LeftInDatabase { files, dropped, notes, bindings, replies })
}
